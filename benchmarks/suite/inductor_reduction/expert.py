"""By hand: a pipelined loop, native maximum and root, fewer warps with more work each."""

import torch
import triton
import triton.language as tl


@triton.jit
def triton_red_fused_rms_amax(in_ptr0, in_ptr1, out_ptr0, out_ptr1, xnumel, rnumel, XBLOCK: tl.constexpr, RBLOCK: tl.constexpr):
    xindex = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)[:, None]
    xmask = xindex < xnumel
    rbase = tl.arange(0, RBLOCK)[None, :]
    total = tl.full([XBLOCK, RBLOCK], 0, tl.float32)
    peak = tl.full([XBLOCK, RBLOCK], 0, tl.float32)
    for roffset in tl.range(0, rnumel, RBLOCK, num_stages=2):
        rindex = roffset + rbase
        mask = (rindex < rnumel) & xmask
        tmp0 = tl.load(in_ptr0 + (rindex + rnumel * xindex), mask, other=0.0).to(tl.float32)
        tmp1 = tl.load(in_ptr1 + rindex, rindex < rnumel, other=0.0).to(tl.float32)
        total += tmp0 * tmp0
        peak = tl.maximum(peak, tl.abs(tmp0 * tmp1))
    tl.store(out_ptr0 + xindex, tl.rsqrt(tl.sum(total, 1)[:, None] / rnumel + 1e-06), xmask)
    tl.store(out_ptr1 + xindex, tl.max(peak, 1)[:, None], xmask)


def run(x, w):
    rows, cols = x.shape
    rms = torch.empty((rows, 1), device=x.device, dtype=torch.float32)
    peak = torch.empty_like(rms)
    triton_red_fused_rms_amax[(rows,)](x, w, rms, peak, rows, cols, XBLOCK=1, RBLOCK=2048, num_warps=4)
    return rms, peak
