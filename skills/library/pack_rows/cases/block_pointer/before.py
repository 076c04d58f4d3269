import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, d, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    block = tl.make_block_ptr(x_ptr + row * d, (d,), (1,), (0,), (BLOCK,), (0,))
    tl.store(y_ptr + row * d + cols, tl.load(block, boundary_check=(0,)), mask=cols < d)


def run(x, y, n, d):
    kernel[(n,)](x, y, d, BLOCK=32)
