import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def tanh_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    tl.store(y_ptr + i, libdevice.tanh(x) + tl.math.exp2(x) + tl.sigmoid(x), mask=i < n)


def run(x, y):
    n = x.numel()
    tanh_kernel[(triton.cdiv(n, 256),)](x, y, n, BLOCK=256)
    return y
