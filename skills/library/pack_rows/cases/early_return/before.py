import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, d, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    if tl.load(y_ptr + row) < 0:
        return
    x = tl.load(x_ptr + row * d + cols, mask=cols < d)
    tl.store(x_ptr + row * d + cols, x * 2, mask=cols < d)


def run(x, y, n, d):
    kernel[(n,)](x, y, d, BLOCK=32)
