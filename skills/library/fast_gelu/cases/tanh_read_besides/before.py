import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def gelu_backward(x_ptr, grad_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n, other=0.0)
    t = libdevice.tanh(0.7978845608 * (x + 0.044715 * x * x * x))
    dt = (1.0 - t * t) * 0.7978845608 * (1.0 + 3.0 * 0.044715 * x * x)
    grad = 0.5 * t + 0.5 * x * dt
    tl.store(y_ptr + offs, grad * tl.load(grad_ptr + offs, mask=offs < n, other=0.0), mask=offs < n)


def run(x, grad):
    y = torch.empty_like(x)
    gelu_backward[(triton.cdiv(x.numel(), 1024),)](x, grad, y, x.numel(), BLOCK=1024)
    return y
