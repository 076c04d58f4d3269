"""Grouped index select, backward: gradients of rows added to the table by sorted index, one atomic per element."""

import torch
import triton
import triton.language as tl


@triton.jit
def scatter_rows(idx_ptr, grad_ptr, out_ptr, n, D, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = cols < D
    for i in range(ROWS):
        row = tl.program_id(0) * ROWS + i
        if row < n:
            target = tl.load(idx_ptr + row)
            grad = tl.load(grad_ptr + row * D + cols, mask=mask, other=0.0)
            tl.atomic_add(out_ptr + target * D + cols, grad, mask=mask)


def run(idx, grad, rows):
    """idx: (n,) int64, sorted; grad: (n, d) fp32; returns (rows, d) with grad summed by index."""
    n, d = grad.shape
    out = torch.zeros((rows, d), device=grad.device, dtype=torch.float32)
    block = min(256, triton.next_power_of_2(d))
    scatter_rows[(triton.cdiv(n, 32), triton.cdiv(d, block))](idx, grad, out, n, d, ROWS=32, BLOCK=block, num_warps=4)
    return out


def make_inputs(n=500, d=64, rows=40):
    idx = torch.randint(0, rows, (n,), device="cuda").sort().values
    return idx, torch.randint(-8, 9, (n, d), device="cuda").float() / 8, rows


def make_large():
    return make_inputs(1_000_000, 128, 1000)


if __name__ == "__main__":
    torch.manual_seed(3)
    idx, grad, rows = make_inputs()
    expected = torch.zeros((rows, grad.shape[1]), device="cuda").index_add_(0, idx, grad)
    torch.testing.assert_close(run(idx, grad, rows), expected, atol=1e-3, rtol=1e-3)
    print("index select backward ok")
