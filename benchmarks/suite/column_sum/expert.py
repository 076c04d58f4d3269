"""By hand: rows are summed in registers over a long strip, one relaxed atomic per column and strip."""

import torch
import triton
import triton.language as tl


@triton.jit
def column_sum_kernel(x_ptr, out_ptr, rows, cols, STRIP: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    c = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((ROWS, BLOCK), tl.float32)
    for start in range(0, STRIP, ROWS):
        r = tl.program_id(0) * STRIP + start + tl.arange(0, ROWS)
        mask = (r < rows)[:, None] & (c < cols)[None, :]
        total += tl.load(x_ptr + r[:, None] * cols + c[None, :], mask=mask, other=0.0).to(tl.float32)
    tl.atomic_add(out_ptr + c, tl.sum(total, axis=0), mask=c < cols, sem="relaxed")


def run(x):
    rows, cols = x.shape
    out = torch.zeros(cols, device=x.device, dtype=torch.float32)
    column_sum_kernel[(triton.cdiv(rows, 256), triton.cdiv(cols, 256))](
        x, out, rows, cols, STRIP=256, ROWS=16, BLOCK=256, num_warps=4
    )
    return out
