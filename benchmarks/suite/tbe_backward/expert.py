"""By hand: lookups sorted by row beforehand, runs summed in registers, relaxed atomics only at the ends of a run."""

import torch
import triton
import triton.language as tl


@triton.jit
def tbe_bwd(idx_ptr, bag_ptr, grad_ptr, out_ptr, lookups, table_rows, D, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    first = tl.program_id(0) * ROWS
    table = tl.program_id(1)
    cols = tl.arange(0, BLOCK)
    mask = cols < D
    base = table * lookups
    current = tl.load(idx_ptr + base + first)
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for i in range(ROWS):
        at = first + i
        if at < lookups:
            index = tl.load(idx_ptr + base + at)
            bag = tl.load(bag_ptr + base + at)
            grad = tl.load(grad_ptr + bag * D + cols, mask=mask, other=0.0).to(tl.float32)
            if index != current:
                tl.atomic_add(out_ptr + (table * table_rows + current) * D + cols, acc, mask=mask, sem="relaxed")
                acc = tl.zeros((BLOCK,), dtype=tl.float32)
                current = index
            acc += grad
    tl.atomic_add(out_ptr + (table * table_rows + current) * D + cols, acc, mask=mask, sem="relaxed")


def run(idx, bag, grad, table_rows):
    tables, lookups = idx.shape
    d = grad.shape[1]
    order = idx.argsort(dim=1, stable=True)
    idx, bag = idx.gather(1, order), bag.gather(1, order)
    out = torch.zeros((tables, table_rows, d), device=grad.device, dtype=torch.float32)
    tbe_bwd[(triton.cdiv(lookups, 32), tables)](
        idx, bag, grad, out, lookups, table_rows, d, ROWS=32, BLOCK=triton.next_power_of_2(d), num_warps=2
    )
    return out
