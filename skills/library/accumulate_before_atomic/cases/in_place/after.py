import torch
import triton
import triton.language as tl


@triton.jit
def bounds_check(indices_ptr, offsets_ptr, warnings_ptr, rows, BLOCK: tl.constexpr, n_blocks):
    """Bad indices of each table are counted and set to zero."""
    table = tl.program_id(0)
    begin = tl.load(offsets_ptr + table)
    end = tl.load(offsets_ptr + table + 1)
    first_block = tl.program_id(1) * 8
    strip = tl.zeros((BLOCK,), tl.int32)
    for block in range(first_block, tl.minimum(first_block + 8, n_blocks)):
        # the block's part of the table
        offs = begin + block * BLOCK + tl.arange(0, BLOCK)
        live = offs < end
        index = tl.load(indices_ptr + offs, mask=live, other=0)
        bad = live & ((index < 0) | (index >= rows))
        strip += bad.to(tl.int32)
        tl.store(indices_ptr + offs, tl.zeros((BLOCK,), tl.int64), mask=bad)
    total = tl.sum(strip)
    tl.atomic_add(warnings_ptr, total, mask=total != 0, sem="relaxed")


def run(indices, offsets, warnings, rows, longest):
    grid = (offsets.numel() - 1, triton.cdiv(triton.cdiv(longest, 1024), 8))
    bounds_check[grid](indices, offsets, warnings, rows, BLOCK=1024, n_blocks=triton.cdiv(longest, 1024))
