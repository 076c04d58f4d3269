import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, d, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for j in range(tl.load(y_ptr + row), tl.load(y_ptr + row + 1)):
        total += tl.load(x_ptr + j * d + cols, mask=cols < d, other=0.0)
    tl.store(x_ptr + row * d + cols, total, mask=cols < d)


def run(x, y, n, d):
    kernel[(n,)](x, y, d, BLOCK=32)
