import torch
import triton
import triton.language as tl


@triton.jit
def mm_kernel(a_ptr, b_ptr, c_ptr, N: tl.constexpr, PRECISION: tl.constexpr):
    r = tl.arange(0, N)
    a = tl.load(a_ptr + r[:, None] * N + r[None, :])
    b = tl.load(b_ptr + r[:, None] * N + r[None, :])
    acc = tl.dot(a, b, input_precision=PRECISION)
    tl.store(c_ptr + r[:, None] * N + r[None, :], acc)


def run(a, b, fast=True):
    c = torch.empty_like(a)
    mm_kernel[(1,)](a, b, c, N=64, PRECISION="tf32x3" if fast else "ieee")
    return c
