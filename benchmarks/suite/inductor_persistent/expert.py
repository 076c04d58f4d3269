"""By hand: several rows per program and a wave per row, exp2, one reciprocal per row."""

import torch
import triton
import triton.language as tl


@triton.jit
def triton_per_fused_softmax_mul(in_ptr0, in_ptr1, out_ptr0, xnumel, rnumel, XBLOCK: tl.constexpr, RBLOCK: tl.constexpr):
    xindex = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)[:, None]
    rindex = tl.arange(0, RBLOCK)[None, :]
    mask = (xindex < xnumel) & (rindex < rnumel)
    at = rindex + rnumel * xindex
    x = tl.load(in_ptr0 + at, mask, other=float("-inf")).to(tl.float32) * 1.44269504
    e = tl.exp2(x - tl.max(x, 1)[:, None])
    scale = 1.0 / tl.sum(e, 1)[:, None]
    keep = tl.load(in_ptr1 + at, mask, other=0.0).to(tl.float32)
    tl.store(out_ptr0 + at, e * scale * keep, mask)


def run(x, keep):
    rows, cols = x.shape
    out = torch.empty_like(x)
    block = triton.next_power_of_2(cols)
    per = max(1, 2048 // block)
    triton_per_fused_softmax_mul[(triton.cdiv(rows, per),)](x, keep, out, rows, cols, XBLOCK=per, RBLOCK=block, num_warps=4)
    return out
