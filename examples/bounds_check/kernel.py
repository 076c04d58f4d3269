"""Bounds check of embedding indices: out-of-range indices are set to zero and counted, one global atomic per bad index."""

import torch
import triton
import triton.language as tl


@triton.jit
def bounds_check_kernel(indices_ptr, rows_ptr, offsets_ptr, warnings_ptr, BLOCK: tl.constexpr):
    table = tl.program_id(0)
    begin = tl.load(offsets_ptr + table)
    end = tl.load(offsets_ptr + table + 1)
    rows = tl.load(rows_ptr + table)
    offs = begin + tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    live = offs < end
    index = tl.load(indices_ptr + offs, mask=live, other=0)
    bad = live & ((index < 0) | (index >= rows))
    tl.atomic_add(warnings_ptr + tl.zeros((BLOCK,), tl.int32), 1, mask=bad)
    tl.store(indices_ptr + offs, tl.zeros((BLOCK,), tl.int64), mask=bad)


def bounds_check(indices, rows, offsets, max_len):
    """indices: (n,) int64, corrected in place; rows: (tables,) int64; offsets: (tables + 1,) int64; returns the count."""
    warnings = torch.zeros(1, device=indices.device, dtype=torch.int32)
    block = 1024
    grid = (rows.numel(), triton.cdiv(max_len, block))
    bounds_check_kernel[grid](indices, rows, offsets, warnings, BLOCK=block, num_warps=4)
    return warnings


def make_inputs(tables=3, per_table=5000, bad_share=0.1):
    rows = torch.randint(1000, 2000, (tables,), device="cuda")
    offsets = torch.arange(0, tables + 1, device="cuda") * per_table
    indices = (torch.rand(tables, per_table, device="cuda") * rows[:, None]).long()
    bad = torch.rand(tables, per_table, device="cuda") < bad_share
    return torch.where(bad, rows[:, None] + 7, indices).reshape(-1), rows, offsets, per_table


if __name__ == "__main__":
    torch.manual_seed(3)
    indices, rows, offsets, max_len = make_inputs()
    wide = indices.reshape(rows.numel(), -1)
    bad = (wide < 0) | (wide >= rows[:, None])
    expected = torch.where(bad, 0, wide).reshape(-1)
    warnings = bounds_check(indices, rows, offsets, max_len)
    assert int(warnings) == int(bad.sum()), (int(warnings), int(bad.sum()))
    torch.testing.assert_close(indices, expected)
    print("bounds check ok")
