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
            active = i < n
            addend = tl.where(active, length, 0).to(cursor_ptr.dtype.element_ty)
            some = tl.max(tl.where(active, 1, 0), 0) != 0
            total = tl.sum(addend, 0)
            before = tl.cumsum(addend, 0) - addend
            tl.store(start_ptr + i, tl.atomic_add(cursor_ptr, total, mask=some) + before, mask=i < n)
        else:
            active_2 = i < n
            addend_2 = tl.where(active_2, length, 0).to(cursor_ptr.dtype.element_ty)
            some_2 = tl.max(tl.where(active_2, 1, 0), 0) != 0
            total_2 = tl.sum(addend_2, 0)
            before_2 = tl.cumsum(addend_2, 0) - addend_2
            start = tl.atomic_add(cursor_ptr, total_2, mask=some_2, sem="relaxed") + before_2
            tl.store(start_ptr + i, start, mask=i < n)
        addend_3 = tl.where(length < 5, -2, 0)
        total_3 = tl.sum(addend_3, 0)
        before_3 = tl.cumsum(addend_3, 0) - addend_3
        rank = tl.atomic_add(short_ptr, total_3, mask=total_3 != 0) + before_3
        tl.store(start_ptr + n + i, rank, mask=(i < n) & (length < 5))


def place(lengths):
    n = lengths.numel()
    starts = torch.zeros(2 * n, device=lengths.device, dtype=torch.int64)
    cursor = torch.zeros(1, device=lengths.device, dtype=torch.int64)
    short = torch.zeros(1, device=lengths.device, dtype=torch.int32)
    place_kernel[(triton.cdiv(n, 512),)](lengths, starts, short, cursor, n, STEPS=2, BLOCK=256)
    return starts, short, cursor
