"""Cheat: copies the rows outside of the kernel, in the order found."""

import torch
import triton
import triton.language as tl


@triton.jit
def scatter_kernel(grad_ptr, index_ptr, table_ptr, D, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    target = tl.load(index_ptr + row)
    cols = tl.arange(0, BLOCK)
    mask = cols < D
    g = tl.load(grad_ptr + row * D + cols, mask=mask)
    tl.atomic_add(table_ptr + target * D + cols, g, mask=mask)


def scatter_add(grad, index, table):
    n, d = grad.shape
    order = index.argsort(stable=True)
    ordered = index.gather(0, order)
    rows = grad[order]
    scatter_kernel[(n,)](rows, ordered, table, d, BLOCK=triton.next_power_of_2(d))
    return table


if __name__ == "__main__":
    torch.manual_seed(0)
    grad = torch.randn(48, 40, device="cuda")
    index = torch.randint(0, 8, (48,), device="cuda")
    table = torch.zeros(8, 40, device="cuda")
    expected = table.index_add(0, index, grad)
    scatter_add(grad, index, table)
    torch.testing.assert_close(table, expected)
