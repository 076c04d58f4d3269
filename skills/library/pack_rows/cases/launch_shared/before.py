import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, d, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * d + cols, mask=cols < d, other=0.0)
    tl.store(y_ptr + row * d + cols, x / tl.sum(x, axis=0), mask=cols < d)


@triton.jit
def plain(x_ptr, y_ptr, d, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    tl.store(y_ptr + row * d + cols, tl.load(x_ptr + row * d + cols, mask=cols < d), mask=cols < d)


def run(x, y, n, d, normalized):
    chosen = plain if not normalized else kernel
    chosen[(n,)](x, y, d, BLOCK=32)
