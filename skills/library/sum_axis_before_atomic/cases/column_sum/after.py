import torch
import triton
import triton.language as tl


@triton.jit
def column_sum_kernel(x_ptr, out_ptr, rows, cols, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    c = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = (r < rows)[:, None] & (c < cols)[None, :]
    x = tl.load(x_ptr + r[:, None] * cols + c[None, :], mask=mask, other=0.0).to(tl.float32)
    # every row adds itself
    axis_total = tl.sum(tl.where(mask, x, 0), 0)
    tl.atomic_add(out_ptr + c, axis_total, mask=axis_total != 0)


def column_sum(x):
    rows, cols = x.shape
    out = torch.zeros(cols, device=x.device, dtype=torch.float32)
    column_sum_kernel[(triton.cdiv(rows, 16), triton.cdiv(cols, 64))](x, out, rows, cols, ROWS=16, BLOCK=64, num_warps=4)
    return out
