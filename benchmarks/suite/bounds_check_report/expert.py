"""By hand: one relaxed atomic per program; the first bad lane of the program that found the count at zero reports."""

import torch
import triton
import triton.language as tl


@triton.jit
def bounds_check_kernel(indices_ptr, rows_ptr, offsets_ptr, warnings_ptr, info_ptr, BLOCK: tl.constexpr):
    table = tl.program_id(0)
    begin = tl.load(offsets_ptr + table)
    end = tl.load(offsets_ptr + table + 1)
    rows = tl.load(rows_ptr + table)
    lane = tl.arange(0, BLOCK)
    offs = begin + tl.program_id(1) * BLOCK + lane
    live = offs < end
    index = tl.load(indices_ptr + offs, mask=live, other=0)
    bad = live & ((index < 0) | (index >= rows))
    count = tl.sum(bad.to(tl.int32), 0)
    if count > 0:
        old = tl.atomic_add(warnings_ptr, count, sem="relaxed")
        tl.store(indices_ptr + offs, tl.zeros((BLOCK,), tl.int64), mask=bad)
        if old == 0:
            first = tl.min(tl.where(bad, lane, BLOCK), 0)
            value = tl.sum(tl.where(lane == first, index, 0), 0)
            tl.store(info_ptr, table.to(tl.int64))
            tl.store(info_ptr + 1, begin + tl.program_id(1) * BLOCK + first)
            tl.store(info_ptr + 2, value)


def run(indices, rows, offsets, max_len):
    warnings = torch.zeros(1, device=indices.device, dtype=torch.int64)
    info = torch.full((3,), -1, device=indices.device, dtype=torch.int64)
    block = 2048
    grid = (rows.numel(), triton.cdiv(max_len, block))
    bounds_check_kernel[grid](indices, rows, offsets, warnings, info, BLOCK=block, num_warps=4)
    return warnings, info
