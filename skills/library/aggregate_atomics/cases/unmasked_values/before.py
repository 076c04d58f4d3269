import torch
import triton
import triton.language as tl


@triton.jit
def split_kernel(x_ptr, left_ptr, right_ptr, counts_ptr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    low = x < 0
    at_left = tl.atomic_add(counts_ptr + i * 0, low)
    at_right = tl.atomic_add(counts_ptr + 1 + i * 0, 1, mask=x >= 0)
    tl.store(left_ptr + at_left, x, mask=low)
    tl.store(right_ptr + at_right, x, mask=x >= 0)


def split(x):
    left, right = torch.zeros_like(x), torch.zeros_like(x)
    counts = torch.zeros(2, device=x.device, dtype=torch.int32)
    split_kernel[(x.numel() // 256,)](x, left, right, counts, BLOCK=256)
    return left, right, counts
