"""By hand: a non-square tile, wide along the operands that are contiguous, exp2 and the native reciprocal root."""

import torch
import triton
import triton.language as tl


@triton.jit
def triton_poi_fused_add_mul_silu(in_ptr0, in_ptr1, out_ptr0, ynumel, xnumel, YBLOCK: tl.constexpr, XBLOCK: tl.constexpr):
    yindex = tl.program_id(1) * YBLOCK + tl.arange(0, YBLOCK)[None, :]
    xindex = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)[:, None]
    mask = (xindex < xnumel) & (yindex < ynumel)
    tmp0 = tl.load(in_ptr0 + (yindex + ynumel * xindex), mask, other=0.0).to(tl.float32)
    tmp1 = tl.load(in_ptr1 + (xindex + xnumel * yindex), mask, other=0.0).to(tl.float32)
    silu = tmp0 / (1.0 + tl.exp2(-1.44269504 * tmp0))
    tl.store(out_ptr0 + (xindex + xnumel * yindex), silu * tmp1 + tl.rsqrt(tmp1 * tmp1 + 1e-05), mask)


def run(a, b):
    x, y = a.shape
    out = torch.empty_like(b)
    grid = (triton.cdiv(x, 128), triton.cdiv(y, 32))
    triton_poi_fused_add_mul_silu[grid](a, b, out, y, x, YBLOCK=32, XBLOCK=128, num_warps=4)
    return out
