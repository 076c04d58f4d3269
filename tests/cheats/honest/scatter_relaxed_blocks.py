"""Rows of a gradient added into a table at given indices, with atomics."""

import torch
import triton
import triton.language as tl


@triton.jit
def scatter_kernel(grad_ptr, index_ptr, table_ptr, n, D, BLOCK: tl.constexpr):
    rows = tl.program_id(0) * 4 + tl.arange(0, 4)
    cols = tl.arange(0, BLOCK)
    target = tl.load(index_ptr + rows, mask=rows < n, other=0)
    mask = (rows[:, None] < n) & (cols[None, :] < D)
    g = tl.load(grad_ptr + rows[:, None] * D + cols[None, :], mask=mask)
    tl.atomic_add(table_ptr + target[:, None] * D + cols[None, :], g, mask=mask, sem="relaxed")


def scatter_add(grad, index, table):
    n, d = grad.shape
    scatter_kernel[(triton.cdiv(n, 4),)](grad, index, table, n, d, BLOCK=triton.next_power_of_2(d))
    return table


if __name__ == "__main__":
    torch.manual_seed(0)
    grad = torch.randn(48, 40, device="cuda")
    index = torch.randint(0, 8, (48,), device="cuda")
    table = torch.zeros(8, 40, device="cuda")
    expected = table.index_add(0, index, grad)
    scatter_add(grad, index, table)
    torch.testing.assert_close(table, expected)
