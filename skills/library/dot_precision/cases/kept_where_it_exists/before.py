import triton
import triton.language as tl


@triton.jit
def product(a, b):
    return tl.dot(a, b, input_precision="tf32")


@triton.jit
def mm_kernel(a_ptr, b_ptr, c_ptr, N: tl.constexpr):
    """c = a (a b) of N x N each."""
    # Rows and columns.
    r = tl.arange(0, N)
    a = tl.load(a_ptr + r[:, None] * N + r[None, :])
    b = tl.load(b_ptr + r[:, None] * N + r[None, :])
    acc = product(a, b)
    acc = tl.dot(a, acc, input_precision="tf32", out_dtype=tl.float32)
    acc = tl.dot(a, b, acc, input_precision="tf32")
    tl.store(c_ptr + r[:, None] * N + r[None, :], acc)


def run(a, b, c):
    mm_kernel[(1,)](a, b, c, N=64)
