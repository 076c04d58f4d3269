"""Rotary embedding with 64-bit index arithmetic where 32 bits are enough, and CUDA's sine and cosine."""

import torch
import triton
import triton.language as tl
from triton.language.extra.cuda import libdevice


@triton.jit
def rotary_kernel(x_ptr, out_ptr, seqlen, heads, HALF: tl.constexpr):
    token = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1).to(tl.int64)
    i = tl.arange(0, HALF).to(tl.int64)
    position = (token % seqlen).to(tl.float32)
    angle = position * libdevice.exp(-9.210340371976184 * i.to(tl.float32) / HALF)
    c = libdevice.cos(angle)
    s = libdevice.sin(angle)
    base = (token * heads + head) * (2 * HALF)
    a = tl.load(x_ptr + base + i).to(tl.float32)
    b = tl.load(x_ptr + base + HALF + i).to(tl.float32)
    tl.store(out_ptr + base + i, (a * c - b * s).to(out_ptr.dtype.element_ty))
    tl.store(out_ptr + base + HALF + i, (b * c + a * s).to(out_ptr.dtype.element_ty))


def run(x):
    """x: (batch, seqlen, heads, head_dim)."""
    batch, seqlen, heads, head_dim = x.shape
    out = torch.empty_like(x)
    rotary_kernel[(batch * seqlen, heads)](x, out, seqlen, heads, HALF=head_dim // 2, num_warps=4)
    return out


def make_inputs(batch=2, seqlen=20, heads=3, head_dim=64):
    return (torch.randn((batch, seqlen, heads, head_dim), device="cuda", dtype=torch.bfloat16),)


def make_large():
    return make_inputs(8, 4096, 16, 128)


if __name__ == "__main__":
    torch.manual_seed(11)
    (x,) = make_inputs()
    half = x.shape[-1] // 2
    angle = torch.arange(x.shape[1], device="cuda")[:, None] * 10000.0 ** (-torch.arange(half, device="cuda") / half)
    c, s = angle.cos()[None, :, None, :], angle.sin()[None, :, None, :]
    a, b = x.float()[..., :half], x.float()[..., half:]
    expected = torch.cat([a * c - b * s, b * c + a * s], -1)
    torch.testing.assert_close(run(x).float(), expected, atol=3e-2, rtol=2e-2)
    print("rotary ok")
