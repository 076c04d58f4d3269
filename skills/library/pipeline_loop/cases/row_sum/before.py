import triton
import triton.language as tl


@triton.jit
def row_sum_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):  # one row per program
        i = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + row * n + i, mask=i < n, other=0.0)
    tl.store(y_ptr + row, tl.sum(total))


def run(x, y):
    row_sum_kernel[(x.shape[0],)](x, y, x.shape[1], BLOCK=1024)
