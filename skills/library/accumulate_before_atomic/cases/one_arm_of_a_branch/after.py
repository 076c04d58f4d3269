import torch
import triton
import triton.language as tl


@triton.jit
def histogram(x_ptr, out_ptr, n, BLOCK: tl.constexpr, BINS: tl.constexpr = 0, n_blocks=0):
    first_block = tl.program_id(0) * 8
    if BINS:
        bins = tl.arange(0, BINS)
        targets = out_ptr + bins
        strip_total = tl.zeros(targets.shape, tl.int32)
    for block in range(first_block, tl.minimum(first_block + 8, n_blocks)):
        offs = block * BLOCK + tl.arange(0, BLOCK)
        mask = offs < n
        x = tl.load(x_ptr + offs, mask=mask, other=0)
        if BINS:
            counts = tl.histogram(x, BINS, mask=mask & (x >= 0) & (x < BINS))
            strip_total += counts
        else:
            tl.atomic_add(out_ptr + x, 1, mask=mask, sem="relaxed")
    if BINS:
        tl.atomic_add(targets, strip_total, mask=strip_total != 0, sem="relaxed")


def run(x, out):
    n = x.numel()
    bins = triton.next_power_of_2(out.numel()) if out.numel() <= 1024 else 0
    histogram[(triton.cdiv(triton.cdiv(n, 1024), 8),)](x, out, n, BLOCK=1024, BINS=bins, n_blocks=triton.cdiv(n, 1024))
