import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    tl.store(y_ptr + at, x * 2, mask=at < n)


def run(x, y):
    blocks = triton.cdiv(x.numel(), 32)
    kernel[(blocks,)](x, y, x.numel(), BLOCK=32)
