import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, d, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * d + cols, mask=cols < d)
    tl.store(y_ptr + row * d + cols, x * 2, mask=cols < d)


def run(x, y, n, d):
    grid = (n,)
    n = n // 2
    kernel[grid](x, y, d, BLOCK=32)
    return n
