import torch
import triton
import triton.language as tl


@triton.jit
def histogram(x_ptr, out_ptr, n, BLOCK: tl.constexpr, small, BINS: tl.constexpr = 0):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask, other=0)
    if small:
        counts = tl.histogram(x, BINS, mask=mask & (x >= 0) & (x < BINS))
        bins = tl.arange(0, BINS)
        tl.atomic_add(out_ptr + bins, counts, mask=counts != 0, sem="relaxed")
    else:
        tl.atomic_add(out_ptr + x, 1, mask=mask, sem="relaxed")


def run(x, out):
    n = x.numel()
    bins = triton.next_power_of_2(out.numel()) if out.numel() <= 1024 else 0
    histogram[(triton.cdiv(n, 1024),)](x, out, n, bins > 0, BLOCK=1024, BINS=bins)
