"""A reduction as TorchInductor writes it: a plain range loop, helper functions for minimum and maximum."""

import torch
import triton
import triton.language as tl
from triton.language.extra.cuda import libdevice


@triton.jit
def maximum(a, b):
    return tl.where(a > b, a, b)


@triton.jit
def triton_red_fused_rms_amax(in_ptr0, in_ptr1, out_ptr0, out_ptr1, xnumel, rnumel, XBLOCK: tl.constexpr, RBLOCK: tl.constexpr):
    xindex = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)[:, None]
    xmask = xindex < xnumel
    rbase = tl.arange(0, RBLOCK)[None, :]
    total = tl.full([XBLOCK, RBLOCK], 0, tl.float32)
    peak = tl.full([XBLOCK, RBLOCK], 0, tl.float32)
    for roffset in range(0, rnumel, RBLOCK):
        rindex = roffset + rbase
        mask = (rindex < rnumel) & xmask
        tmp0 = tl.load(in_ptr0 + (rindex + rnumel * xindex), mask, other=0.0).to(tl.float32)
        tmp1 = tl.load(in_ptr1 + rindex, rindex < rnumel, other=0.0).to(tl.float32)
        total = total + tmp0 * tmp0
        peak = maximum(peak, libdevice.abs(tmp0 * tmp1))
    rms = libdevice.rsqrt(tl.sum(total, 1)[:, None] / rnumel + 1e-06)
    tl.store(out_ptr0 + xindex, rms, xmask)
    tl.store(out_ptr1 + xindex, tl.max(peak, 1)[:, None], xmask)


def run(x, w):
    """x: (rows, cols) bf16; w: (cols,); returns the reciprocal rms and the largest |x w| of each row."""
    rows, cols = x.shape
    rms = torch.empty((rows, 1), device=x.device, dtype=torch.float32)
    peak = torch.empty_like(rms)
    triton_red_fused_rms_amax[(triton.cdiv(rows, 1),)](x, w, rms, peak, rows, cols, XBLOCK=1, RBLOCK=2048, num_warps=16)
    return rms, peak


def make_inputs(rows=24, cols=5000):
    return torch.randn((rows, cols), device="cuda", dtype=torch.bfloat16), torch.rand(cols, device="cuda", dtype=torch.bfloat16)


def make_large():
    return make_inputs(16384, 16384)


if __name__ == "__main__":
    torch.manual_seed(6)
    x, w = make_inputs()
    rms, peak = run(x, w)
    x32 = x.float()
    torch.testing.assert_close(rms, torch.rsqrt(x32.square().mean(1, keepdim=True) + 1e-6), atol=1e-3, rtol=1e-3)
    torch.testing.assert_close(peak, (x32 * w.float()).abs().amax(1, keepdim=True), atol=1e-3, rtol=1e-3)
    print("reduction ok")
