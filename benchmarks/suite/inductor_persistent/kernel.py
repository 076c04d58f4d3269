"""A persistent reduction as TorchInductor writes it: softmax of a row times a mask, the whole row in registers."""

import torch
import triton
import triton.language as tl
from triton.language.extra.cuda import libdevice


@triton.jit
def triton_per_fused_softmax_mul(in_ptr0, in_ptr1, out_ptr0, xnumel, rnumel, XBLOCK: tl.constexpr, RBLOCK: tl.constexpr):
    xindex = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)[:, None]
    rindex = tl.arange(0, RBLOCK)[None, :]
    mask = (xindex < xnumel) & (rindex < rnumel)
    tmp0 = tl.load(in_ptr0 + (rindex + rnumel * xindex), mask, other=0.0).to(tl.float32)
    tmp1 = tl.where(mask, tmp0, float("-inf"))
    tmp2 = tl.max(tmp1, 1)[:, None]
    tmp3 = libdevice.exp(tmp0 - tmp2)
    tmp4 = tl.sum(tl.where(mask, tmp3, 0.0), 1)[:, None]
    tmp5 = tl.load(in_ptr1 + (rindex + rnumel * xindex), mask, other=0.0).to(tl.float32)
    tl.store(out_ptr0 + (rindex + rnumel * xindex), tmp3 / tmp4 * tmp5, mask)


def run(x, keep):
    """x, keep: (rows, cols); returns softmax(x) * keep."""
    rows, cols = x.shape
    out = torch.empty_like(x)
    block = triton.next_power_of_2(cols)
    triton_per_fused_softmax_mul[(triton.cdiv(rows, 1),)](x, keep, out, rows, cols, XBLOCK=1, RBLOCK=block, num_warps=8)
    return out


def make_inputs(rows=40, cols=200):
    x = torch.randn((rows, cols), device="cuda", dtype=torch.float16)
    return x, (torch.rand((rows, cols), device="cuda") > 0.1).to(torch.float16)


def make_large():
    return make_inputs(262_144, 512)


if __name__ == "__main__":
    torch.manual_seed(7)
    x, keep = make_inputs()
    expected = torch.softmax(x.float(), dim=1) * keep.float()
    torch.testing.assert_close(run(x, keep).float(), expected, atol=2e-3, rtol=1e-2)
    print("persistent reduction ok")
