import torch
import triton
import triton.language as tl


@triton.jit
def scatter_kernel(idx_ptr, g_ptr, w_ptr, D, BLOCK: tl.constexpr):
    t = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    row = tl.load(idx_ptr + t)
    g = tl.load(g_ptr + tl.program_id(0) * D + c, mask=c < D, other=0.0)
    tl.atomic_add(w_ptr + row * D + c, g * t, mask=c < D)


def scatter_add(idx, g, w):
    T, D = g.shape
    scatter_kernel[(T,)](idx, g, w, D, BLOCK=triton.next_power_of_2(D))
