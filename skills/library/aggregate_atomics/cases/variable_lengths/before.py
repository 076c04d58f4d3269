import torch
import triton
import triton.language as tl


@triton.jit
def place_kernel(length_ptr, start_ptr, short_ptr, cursor_ptr, n, STEPS: tl.constexpr, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    shared = cursor_ptr + tl.zeros([BLOCK], tl.int32)
    for step in range(STEPS):
        i = (pid * STEPS + step) * BLOCK + tl.arange(0, BLOCK)
        length = tl.load(length_ptr + i, mask=i < n, other=0)
        if step > 0:
            tl.store(start_ptr + i, tl.atomic_add(shared, length, i < n), mask=i < n)
        else:
            start = tl.atomic_add(shared, length, i < n, "relaxed")
            tl.store(start_ptr + i, start, mask=i < n)
        rank = tl.atomic_add(short_ptr + (i - i), -2, mask=length < 5)
        tl.store(start_ptr + n + i, rank, mask=(i < n) & (length < 5))


def place(lengths):
    n = lengths.numel()
    starts = torch.zeros(2 * n, device=lengths.device, dtype=torch.int64)
    cursor = torch.zeros(1, device=lengths.device, dtype=torch.int64)
    short = torch.zeros(1, device=lengths.device, dtype=torch.int32)
    place_kernel[(triton.cdiv(n, 512),)](lengths, starts, short, cursor, n, STEPS=2, BLOCK=256)
    return starts, short, cursor
