import torch
import triton
import triton.language as tl


@triton.jit
def rotary_kernel(x_ptr, cos_ptr, sin_ptr, out_ptr, heads, HALF: tl.constexpr):
    token = tl.program_id(0)
    head = tl.program_id(1)
    i = tl.arange(0, HALF)
    c = tl.load(cos_ptr + token * HALF + i)
    s = tl.load(sin_ptr + token * HALF + i)
    base = (token * heads + head) * (2 * HALF)
    a = tl.load(x_ptr + base + i)
    b = tl.load(x_ptr + base + HALF + i)
    tl.store(out_ptr + base + i, a * c - b * s)
    tl.store(out_ptr + base + HALF + i, b * c + a * s)


def rotary(x, cos, sin):
    tokens, heads, width = x.shape
    out = torch.empty_like(x)
    rotary_kernel[(tokens, heads)](x, cos, sin, out, heads, HALF=width // 2)
    return out
