import torch
import triton
import triton.language as tl


@triton.jit
def count_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr, BINS: tl.constexpr = 0):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask, other=0)
    if BINS:
        index = x.to(tl.int64) + 128
        counts = tl.histogram(index.to(tl.int32), BINS, mask=mask & (x != 0) & (index >= 0) & (index < BINS))
        bins = tl.arange(0, BINS)
        tl.atomic_add(out_ptr + bins, counts, mask=counts != 0)
    else:
        tl.atomic_add(out_ptr + x + 128, tl.where(x != 0, 1, 0), mask)


def count(x, out):
    n = x.numel()
    count_kernel[(triton.cdiv(n, 1024),)](x, out, n, BLOCK=1024, num_warps=4, BINS=triton.next_power_of_2(out.numel()) if out.numel() <= 1024 else 0)
    return out
