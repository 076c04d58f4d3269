"""By hand: all heads of a token in one program, the angles computed once for them."""

import torch
import triton
import triton.language as tl


@triton.jit
def rotary_kernel(x_ptr, out_ptr, seqlen, heads, HEADS: tl.constexpr, HALF: tl.constexpr):
    token = tl.program_id(0)
    i = tl.arange(0, HALF)
    h = tl.arange(0, HEADS)
    angle = (token % seqlen).to(tl.float32) * tl.exp2(-13.287712379549449 * i.to(tl.float32) / HALF)
    c = tl.cos(angle)[None, :]
    s = tl.sin(angle)[None, :]
    at = (token * heads + h)[:, None] * (2 * HALF) + i[None, :]
    mask = (h < heads)[:, None]
    a = tl.load(x_ptr + at, mask=mask, other=0.0).to(tl.float32)
    b = tl.load(x_ptr + at + HALF, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + at, (a * c - b * s).to(out_ptr.dtype.element_ty), mask=mask)
    tl.store(out_ptr + at + HALF, (b * c + a * s).to(out_ptr.dtype.element_ty), mask=mask)


def run(x):
    batch, seqlen, heads, head_dim = x.shape
    out = torch.empty_like(x)
    rotary_kernel[(batch * seqlen,)](
        x, out, seqlen, heads, HEADS=triton.next_power_of_2(heads), HALF=head_dim // 2, num_warps=4
    )
    return out
