import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice as ld
from triton.language.extra.libdevice import pow as _pow


@triton.jit
def kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    x = tl.load(x_ptr + i, mask=m, other=0.0)
    a = ld.tanh(x) + tl.math.exp(x)  # the first is libdevice, the second is not
    a = a + ld.nearbyint(ld.copysign(ld.pow(tl.abs(x + 1.0), 1.0 / 3.0), x + 1.0)) + _pow(x, 2.0)
    a = ld.tanh(a) + tl.minimum(tl.maximum(x, 0.0), 1.0) + tl.sin(a)
    k = tl.floor(a * 8.0).to(tl.int32) + a.to(tl.int32, bitcast=True)
    y = tl.where((tl.abs(a) < float("inf")).to(tl.int32) != 0, a + k.to(tl.float32), 0.0)
    tl.store(y_ptr + i, y, mask=m)


def run(x):
    y = torch.empty_like(x)
    n = x.numel()
    kernel[(triton.cdiv(n, 256),)](x, y, n, BLOCK=256)
    return y
