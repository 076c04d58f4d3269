import triton
import triton.language as tl


@triton.jit
def product(a, b):
    dot_precision: tl.constexpr = "bf16x3" if tl.target_info.is_hip() and not tl.target_info.is_hip_cdna3() else "tf32"
    return tl.dot(a, b, input_precision=dot_precision)


@triton.jit
def mm_kernel(a_ptr, b_ptr, c_ptr, N: tl.constexpr):
    """c = a (a b) of N x N each."""
    # Rows and columns.
    dot_precision: tl.constexpr = "bf16x3" if tl.target_info.is_hip() and not tl.target_info.is_hip_cdna3() else "tf32"
    r = tl.arange(0, N)
    a = tl.load(a_ptr + r[:, None] * N + r[None, :])
    b = tl.load(b_ptr + r[:, None] * N + r[None, :])
    acc = product(a, b)
    acc = tl.dot(a, acc, input_precision=dot_precision, out_dtype=tl.float32)
    acc = tl.dot(a, b, acc, input_precision=dot_precision)
    tl.store(c_ptr + r[:, None] * N + r[None, :], acc)


def run(a, b, c):
    mm_kernel[(1,)](a, b, c, N=64)
