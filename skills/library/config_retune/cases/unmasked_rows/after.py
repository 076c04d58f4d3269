import torch
import triton
import triton.language as tl


@triton.jit
def copy_rows(x_ptr, y_ptr, cols, XBLOCK: tl.constexpr, RBLOCK: tl.constexpr):
    x = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)[:, None]
    r = tl.arange(0, RBLOCK)[None, :]
    tl.store(y_ptr + x * cols + r, tl.load(x_ptr + x * cols + r, r < cols), r < cols)


def run(x):
    rows, cols = x.shape
    y = torch.empty_like(x)
    copy_rows[(triton.cdiv(rows, 1),)](x, y, cols, XBLOCK=1, RBLOCK=512, num_warps=2)
    return y
