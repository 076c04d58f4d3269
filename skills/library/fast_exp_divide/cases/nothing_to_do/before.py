import triton
import triton.language as tl


@triton.jit
def mean_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    tl.store(y_ptr + i, tl.exp2(x) / 2.0 + tl.sum(x) / n, mask=i < n)


def run(x, y):
    mean_kernel[(1,)](x, y, x.shape[0], BLOCK=1024)
