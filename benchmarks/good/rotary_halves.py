"""Rotary embedding of half-split heads, each element read once."""

import torch
import triton
import triton.language as tl


@triton.jit
def rotary_halves_kernel(x_ptr, cos_ptr, sin_ptr, y_ptr, heads, HALF: tl.constexpr, HEADS: tl.constexpr):
    token = tl.program_id(0)
    d = tl.arange(0, HALF)
    h = tl.arange(0, HEADS)
    c = tl.load(cos_ptr + token * HALF + d)[None, :]
    s = tl.load(sin_ptr + token * HALF + d)[None, :]
    at = (token * heads + h[:, None]) * 2 * HALF + d[None, :]
    mask = h[:, None] < heads
    a = tl.load(x_ptr + at, mask=mask)
    b = tl.load(x_ptr + at + HALF, mask=mask)
    tl.store(y_ptr + at, a * c - b * s, mask=mask)
    tl.store(y_ptr + at + HALF, b * c + a * s, mask=mask)


def rotary_halves(x, cos, sin):
    tokens, heads, width = x.shape
    y = torch.empty_like(x)
    rotary_halves_kernel[(tokens,)](x, cos, sin, y, heads, HALF=width // 2, HEADS=triton.next_power_of_2(heads))
    return y


if __name__ == "__main__":
    torch.manual_seed(0)
    x = torch.randn(600, 16, 128, device="cuda")
    angle = torch.rand(600, 64, device="cuda")
    y = rotary_halves(x, angle.cos(), angle.sin())
    a, b, c, s = x[..., :64], x[..., 64:], angle.cos()[:, None], angle.sin()[:, None]
    torch.testing.assert_close(y, torch.cat((a * c - b * s, b * c + a * s), -1))
