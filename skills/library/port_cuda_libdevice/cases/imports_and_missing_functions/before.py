import torch
import triton
import triton.language as tl
from triton.language.extra.cuda import libdevice as ld
from triton.language.extra.cuda.libdevice import finitef, isfinited as _isfinited, pow as _pow

round_even = ld.rint  # hasattr says it exists on HIP, too


@triton.jit
def kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    x = tl.load(x_ptr + i, mask=m, other=0.0)
    a = tl.math.tanh(x) + tl.math.exp(x)  # the first is libdevice, the second is not
    a = a + round_even(ld.cbrt(x + 1.0)) + _pow(x, 2.0)
    a = ld.tanh(a) + ld.saturatef(x) + ld.fast_sinf(a)
    k = ld.float2int_rd(a * 8.0) + ld.float_as_int(a)
    y = tl.where(_isfinited(a) != 0, a + k.to(tl.float32), 0.0)
    tl.store(y_ptr + i, y, mask=m)


def run(x):
    y = torch.empty_like(x)
    n = x.numel()
    kernel[(triton.cdiv(n, 256),)](x, y, n, BLOCK=256)
    return y
