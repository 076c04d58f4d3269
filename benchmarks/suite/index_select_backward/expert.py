"""By hand: consecutive rows with the same index are summed in registers, one atomic per run."""

import torch
import triton
import triton.language as tl


@triton.jit
def scatter_rows(idx_ptr, grad_ptr, out_ptr, n, D, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = cols < D
    first = tl.program_id(0) * ROWS
    current = tl.load(idx_ptr + first)
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for i in range(ROWS):
        row = first + i
        if row < n:
            target = tl.load(idx_ptr + row)
            grad = tl.load(grad_ptr + row * D + cols, mask=mask, other=0.0)
            if target != current:
                tl.atomic_add(out_ptr + current * D + cols, acc, mask=mask, sem="relaxed")
                acc = tl.zeros((BLOCK,), dtype=tl.float32)
                current = target
            acc += grad
    tl.atomic_add(out_ptr + current * D + cols, acc, mask=mask, sem="relaxed")


def run(idx, grad, rows):
    n, d = grad.shape
    out = torch.zeros((rows, d), device=grad.device, dtype=torch.float32)
    block = min(256, triton.next_power_of_2(d))
    scatter_rows[(triton.cdiv(n, 32), triton.cdiv(d, block))](idx, grad, out, n, d, ROWS=32, BLOCK=block, num_warps=2)
    return out
