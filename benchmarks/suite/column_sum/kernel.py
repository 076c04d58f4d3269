"""Sum of every column, as in a bias gradient: each program adds its rows to the result with one atomic per element."""

import torch
import triton
import triton.language as tl


@triton.jit
def column_sum_kernel(x_ptr, out_ptr, rows, cols, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    c = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = (r < rows)[:, None] & (c < cols)[None, :]
    x = tl.load(x_ptr + r[:, None] * cols + c[None, :], mask=mask, other=0.0).to(tl.float32)
    target = tl.zeros((ROWS, 1), tl.int32) + c[None, :]
    tl.atomic_add(out_ptr + target, x, mask=mask)


def run(x):
    """x: (rows, cols); returns (cols,) fp32."""
    rows, cols = x.shape
    out = torch.zeros(cols, device=x.device, dtype=torch.float32)
    column_sum_kernel[(triton.cdiv(rows, 16), triton.cdiv(cols, 128))](x, out, rows, cols, ROWS=16, BLOCK=128, num_warps=4)
    return out


def make_inputs(rows=90, cols=300):
    return ((torch.randint(-8, 9, (rows, cols), device="cuda").float() / 8).to(torch.bfloat16),)


def make_large():
    return make_inputs(65536, 2048)


if __name__ == "__main__":
    torch.manual_seed(14)
    (x,) = make_inputs()
    torch.testing.assert_close(run(x), x.float().sum(0), atol=1e-3, rtol=1e-3)
    print("column sum ok")
