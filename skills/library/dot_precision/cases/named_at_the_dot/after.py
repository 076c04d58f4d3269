import torch
import triton
import triton.language as tl


@triton.jit
def mm_kernel(a_ptr, b_ptr, c_ptr, N: tl.constexpr, BK: tl.constexpr, PRECISION: tl.constexpr = "tf32x3"):
    r = tl.arange(0, N)
    k = tl.arange(0, BK)
    acc = tl.zeros((N, N), tl.float32)
    for start in tl.static_range(0, N, BK):
        a = tl.load(a_ptr + r[:, None] * N + (start + k)[None, :])
        b = tl.load(b_ptr + (start + k)[:, None] * N + r[None, :])
        acc = tl.dot(a, b, acc, input_precision='ieee')  # loose on purpose
    tl.store(c_ptr + r[:, None] * N + r[None, :], acc)


def run(a, b):
    c = torch.empty_like(a)
    mm_kernel[(1,)](a, b, c, N=64, BK=32)
    return c
