import torch
import triton
import triton.language as tl


@triton.jit
def column_sum(x_ptr, out_ptr, rows, cols, ROWS: tl.constexpr, BLOCK: tl.constexpr, TOTAL: tl.constexpr, n_blocks):
    c = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    first_block = tl.program_id(0) * 8
    if TOTAL:
        strip = tl.zeros((ROWS, BLOCK), tl.float32)
    for block in range(first_block, tl.minimum(first_block + 8, n_blocks)):
        r = block * ROWS + tl.arange(0, ROWS)
        mask = (r < rows)[:, None] & (c < cols)[None, :]
        x = tl.load(x_ptr + r[:, None] * cols + c[None, :], mask=mask, other=0.0).to(tl.float32)
        if TOTAL:
            strip += x  # of this block
    if TOTAL:
        total = tl.sum(strip, 0)
        tl.atomic_add(out_ptr + c, total, mask=total != 0, sem="relaxed")


def run(x, out):
    rows, cols = x.shape
    column_sum[(triton.cdiv(triton.cdiv(rows, 16), 8), triton.cdiv(cols, 128))](x, out, rows, cols, ROWS=16, BLOCK=128, TOTAL=True, n_blocks=triton.cdiv(rows, 16))
