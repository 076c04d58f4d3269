import torch
import triton
import triton.language as tl


@triton.jit
def bounds_check_kernel(idx_ptr, rows, warning_ptr, first_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    idx = tl.load(idx_ptr + i, mask=m, other=0)
    bad = m & ((idx < 0) | (idx >= rows))
    addend = tl.where(bad, 1, 0)
    total = tl.sum(addend, 0)
    counted = tl.atomic_add(warning_ptr, total, mask=total != 0, sem="relaxed")
    before = tl.zeros_like(addend)
    if (total != 0) & (counted <= 0):
        before = tl.cumsum(addend, 0) - addend
    old = counted + before
    # whoever counts first reports
    tl.store(first_ptr + tl.zeros_like(i), idx, mask=bad & (old == 0))
    tl.store(idx_ptr + i, tl.zeros_like(idx), mask=bad)


def bounds_check(idx, rows):
    warnings = torch.zeros(1, device=idx.device, dtype=torch.int64)
    first = torch.full((1,), -1, device=idx.device, dtype=idx.dtype)
    n = idx.numel()
    bounds_check_kernel[(triton.cdiv(n, 1024),)](idx, rows, warnings, first, n, BLOCK=1024)
    return warnings, first
