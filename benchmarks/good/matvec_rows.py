"""Matrix times vector, a program for 16 rows, long contiguous loads."""

import torch
import triton
import triton.language as tl


@triton.jit
def matvec_rows_kernel(a_ptr, x_ptr, y_ptr, cols, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    m = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    k = tl.arange(0, BLOCK)
    acc = tl.zeros((ROWS, BLOCK), dtype=tl.float32)
    for start in range(0, cols, BLOCK):
        x = tl.load(x_ptr + start + k).to(tl.float32)
        a = tl.load(a_ptr + m[:, None] * cols + (start + k)[None, :]).to(tl.float32)
        acc += a * x[None, :]
    tl.store(y_ptr + m, tl.sum(acc, axis=1))


def matvec_rows(a, x):
    rows, cols = a.shape
    y = torch.empty(rows, device=a.device)
    matvec_rows_kernel[(rows // 8,)](a, x, y, cols, ROWS=8, BLOCK=256)
    return y


if __name__ == "__main__":
    torch.manual_seed(0)
    a = torch.randn(4096, 1024, device="cuda", dtype=torch.bfloat16)
    x = torch.randn(1024, device="cuda", dtype=torch.bfloat16)
    torch.testing.assert_close(matvec_rows(a, x), a.float() @ x.float(), rtol=1e-3, atol=1e-2)
