import triton
import triton.language as tl
from torch._inductor.runtime import triton_helpers
from triton.language.extra import libdevice


@triton.jit
def norm_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    r = tl.rsqrt(x * x + 1e-6)  # per element
    s = tl.rsqrt(x * x + 1e-6) + 1.0 / tl.sqrt(tl.sum(x * x) + 1e-6)  # the second is one scalar
    y = tl.maximum(tl.exp(tl.log(tl.abs(x) + 1.0)), r, propagate_nan=tl.PropagateNan.ALL)
    tl.store(y_ptr + i, libdevice.tanh(y * s), mask=i < n)


def run(x, y):
    n = x.numel()
    norm_kernel[(triton.cdiv(n, 256),)](x, y, n, BLOCK=256)
