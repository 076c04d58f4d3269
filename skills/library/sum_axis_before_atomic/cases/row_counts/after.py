import torch
import triton
import triton.language as tl


@triton.jit
def row_counts_kernel(x_ptr, count_ptr, rows, cols, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    for start in range(0, cols, BLOCK):
        c = start + tl.arange(0, BLOCK)
        mask = (r[:, None] < rows) & (c[None, :] < cols)
        x = tl.load(x_ptr + r[:, None] * cols + c[None, :], mask=mask, other=0)
        axis_total = tl.sum(tl.where(mask & (x > 0), 1, 0).to(count_ptr.dtype.element_ty), 1)
        tl.atomic_add(count_ptr + r * 2, axis_total, mask=axis_total != 0, sem="relaxed")
        axis_total_2 = tl.sum(tl.where(mask, x, 0).to(count_ptr.dtype.element_ty), 1)
        tl.atomic_add(count_ptr + r * 2 + 1, axis_total_2, mask=axis_total_2 != 0)


def row_counts(x):
    rows, cols = x.shape
    counts = torch.zeros((rows, 2), device=x.device, dtype=torch.int64)
    row_counts_kernel[(triton.cdiv(rows, 8),)](x, counts, rows, cols, ROWS=8, BLOCK=32)
    return counts
