import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def softmax_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + i, mask=i < n, other=-float("inf"))
    e = tl.exp2((x - tl.max(x)) * 1.4426950408889634)
    y = libdevice.fast_dividef(e, 1.0 + e)  # not a softmax, but a division of blocks
    y += libdevice.fast_dividef(1.0, 1.0 + tl.exp2(x * -1.4426950408889634))
    tl.store(y_ptr + row * n + i, y / tl.sum(e), mask=i < n)


def run(x, y):
    softmax_kernel[(x.shape[0],)](x, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
