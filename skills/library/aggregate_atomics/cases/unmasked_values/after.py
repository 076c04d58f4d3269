import torch
import triton
import triton.language as tl


@triton.jit
def split_kernel(x_ptr, left_ptr, right_ptr, counts_ptr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    low = x < 0
    addend = low.to(counts_ptr.dtype.element_ty)
    total = tl.sum(addend, 0)
    before = tl.cumsum(addend, 0) - addend
    at_left = tl.atomic_add(counts_ptr, total) + before
    addend_2 = tl.where(x >= 0, 1, 0)
    total_2 = tl.sum(addend_2, 0)
    before_2 = tl.cumsum(addend_2, 0) - addend_2
    at_right = tl.atomic_add(counts_ptr + 1, total_2, mask=total_2 != 0) + before_2
    tl.store(left_ptr + at_left, x, mask=low)
    tl.store(right_ptr + at_right, x, mask=x >= 0)


def split(x):
    left, right = torch.zeros_like(x), torch.zeros_like(x)
    counts = torch.zeros(2, device=x.device, dtype=torch.int32)
    split_kernel[(x.numel() // 256,)](x, left, right, counts, BLOCK=256)
    return left, right, counts
