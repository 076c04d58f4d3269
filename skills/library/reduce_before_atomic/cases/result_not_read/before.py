import torch
import triton
import triton.language as tl


@triton.jit
def bounds_check_kernel(idx_ptr, rows, warning_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    idx = tl.load(idx_ptr + i, mask=m, other=0)
    invalid = (idx < 0) | (idx >= rows)
    # every offending lane counts itself
    _ = tl.atomic_add(warning_ptr + tl.zeros_like(i), 1, mask=m & invalid, sem="relaxed")
    tl.store(idx_ptr + i, tl.where(invalid, 0, idx), mask=m)


def bounds_check(idx, rows):
    warnings = torch.zeros(1, device=idx.device, dtype=torch.int32)
    n = idx.numel()
    bounds_check_kernel[(triton.cdiv(n, 1024),)](idx, rows, warnings, n, BLOCK=1024)
    return warnings
