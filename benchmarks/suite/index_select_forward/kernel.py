"""Grouped index select, forward: rows of a table gathered by index, one narrow row per program."""

import torch
import triton
import triton.language as tl


@triton.jit
def index_select_rows(table_ptr, idx_ptr, out_ptr, D, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    source = tl.load(idx_ptr + row)
    cols = tl.arange(0, BLOCK)
    x = tl.load(table_ptr + source * D + cols, mask=cols < D, other=0.0)
    tl.store(out_ptr + row * D + cols, x, mask=cols < D)


def run(table, idx):
    """table: (rows, d); idx: (n,) int64; returns table[idx]."""
    d = table.shape[1]
    out = torch.empty((idx.numel(), d), device=table.device, dtype=table.dtype)
    index_select_rows[(idx.numel(),)](table, idx, out, d, BLOCK=triton.next_power_of_2(d), num_warps=4)
    return out


def make_inputs(rows=500, n=300, d=32):
    return torch.randn((rows, d), device="cuda", dtype=torch.float16), torch.randint(0, rows, (n,), device="cuda")


def make_large():
    return make_inputs(1_000_000, 2_000_000, 32)


if __name__ == "__main__":
    torch.manual_seed(2)
    table, idx = make_inputs()
    torch.testing.assert_close(run(table, idx), table[idx], atol=0, rtol=0)
    print("index select ok")
