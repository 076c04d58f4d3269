"""Bounds check of embedding indices as FBGEMM makes it: whoever counts the first bad index also reports it."""

import torch
import triton
import triton.language as tl


@triton.jit
def bounds_check_kernel(indices_ptr, rows_ptr, offsets_ptr, warnings_ptr, info_ptr, BLOCK: tl.constexpr):
    table = tl.program_id(0)
    begin = tl.load(offsets_ptr + table)
    end = tl.load(offsets_ptr + table + 1)
    rows = tl.load(rows_ptr + table)
    offs = begin + tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    live = offs < end
    index = tl.load(indices_ptr + offs, mask=live, other=0)
    bad = live & ((index < 0) | (index >= rows))
    here = tl.zeros((BLOCK,), tl.int32)
    old = tl.atomic_add(warnings_ptr + here, 1, mask=bad)
    first = bad & (old == 0)
    tl.store(info_ptr + here, here + table, mask=first)
    tl.store(info_ptr + 1 + here, offs, mask=first)
    tl.store(info_ptr + 2 + here, index, mask=first)
    tl.store(indices_ptr + offs, tl.zeros((BLOCK,), tl.int64), mask=bad)


def run(indices, rows, offsets, max_len):
    """indices: (n,) int64, corrected in place; rows: (tables,) int64; offsets: (tables + 1,) int64.

    Returns the count (1,) int64 and (3,) int64: table, position and value of the bad index that was counted first, -1
    where there is none.
    """
    warnings = torch.zeros(1, device=indices.device, dtype=torch.int64)
    info = torch.full((3,), -1, device=indices.device, dtype=torch.int64)
    block = 1024
    grid = (rows.numel(), triton.cdiv(max_len, block))
    bounds_check_kernel[grid](indices, rows, offsets, warnings, info, BLOCK=block, num_warps=4)
    return warnings, info


def make_inputs(tables=3, per_table=5000, bad_share=0.1):
    rows = torch.randint(1000, 2000, (tables,), device="cuda")
    offsets = torch.arange(0, tables + 1, device="cuda") * per_table
    indices = (torch.rand(tables, per_table, device="cuda") * rows[:, None]).long()
    bad = torch.rand(tables, per_table, device="cuda") < bad_share
    return torch.where(bad, rows[:, None] + 7, indices).reshape(-1), rows, offsets, per_table


def make_large():
    return make_inputs(30, 460_000, 0.1)


if __name__ == "__main__":
    torch.manual_seed(3)
    indices, rows, offsets, max_len = make_inputs()
    given = indices.clone()
    limit = rows.repeat_interleave(max_len)
    bad = (given < 0) | (given >= limit)
    warnings, info = run(indices, rows, offsets, max_len)
    assert int(warnings) == int(bad.sum()), (int(warnings), int(bad.sum()))
    table, position, value = info.tolist()  # any bad index may have been counted first
    assert bad[position] and value == int(given[position]) and table == position // max_len, info
    torch.testing.assert_close(indices, torch.where(bad, 0, given))
    print("bounds check with report ok")
