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
    block_total = tl.sum(tl.where(m & invalid, 1, 0))
    _ = tl.atomic_add(warning_ptr, block_total, mask=block_total != 0, sem="relaxed")
    tl.store(idx_ptr + i, tl.where(invalid, 0, idx), mask=m)


def bounds_check(idx, rows):
    warnings = torch.zeros(1, device=idx.device, dtype=torch.int32)
    n = idx.numel()
    bounds_check_kernel[(triton.cdiv(n, 1024),)](idx, rows, warnings, n, BLOCK=1024)
    return warnings
