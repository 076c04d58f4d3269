import torch
import triton
import triton.language as tl


@triton.jit
def count_kernel(x_ptr, out_ptr, cols, bins, BLOCK: tl.constexpr, BINS: tl.constexpr = 0):
    row = tl.program_id(0)
    table = out_ptr + row * bins
    for start in range(0, cols, BLOCK):
        c = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * cols + c, mask=c < cols, other=-1)
        if BINS:
            index = x.to(tl.int64) + row * bins
            counts = tl.histogram(index.to(tl.int32), BINS, mask=(c < cols) & (index >= 0) & (index < BINS))
            bins_2 = tl.arange(0, BINS)
            tl.atomic_add(out_ptr + bins_2, counts, mask=counts != 0)
        else:
            tl.atomic_add(table + x, 1, mask=c < cols)


def count(x, out):
    rows, cols = x.shape
    count_kernel[(rows,)](x, out, cols, out.shape[1], BLOCK=256, BINS=triton.next_power_of_2(out.numel()) if out.numel() <= 1024 else 0)
    return out
