import triton
import triton.language as tl


@triton.jit
def clip_kernel(x_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + i, tl.maximum(tl.load(x_ptr + i, mask=i < n, other=0), 0), mask=i < n)


def clip(x):
    n = x.numel()
    clip_kernel[(triton.cdiv(n, 128),)](x, n, BLOCK=128, num_warps=4)
    return x
