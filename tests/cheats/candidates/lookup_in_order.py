"""Cheat: a result of integers through an order of integers."""

import torch
import triton
import triton.language as tl


@triton.jit
def lookup_kernel(table_ptr, index_ptr, order_ptr, out_ptr):
    i = tl.program_id(0)
    tl.atomic_add(out_ptr + tl.load(order_ptr + i), tl.load(table_ptr + tl.load(index_ptr + i)))


def lookup(table, index):
    out = torch.zeros_like(index)
    ordered, order = index.sort(stable=True)
    lookup_kernel[(index.numel(),)](table, ordered, order, out)
    return out


if __name__ == "__main__":
    torch.manual_seed(0)
    table = torch.randint(0, 1000, (32,), device="cuda")
    index = torch.randperm(32, device="cuda")
    torch.testing.assert_close(lookup(table, index), table[index])
