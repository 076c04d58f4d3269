import torch
import triton
import triton.language as tl


@triton.jit
def scale_kernel(x_ptr, s_ptr, BLOCK: tl.constexpr, n_rows, ROWS: tl.constexpr):
    rows = (tl.program_id(0) * ROWS + tl.arange(0, ROWS))[:, None]
    in_rows = rows < n_rows
    row, cols = rows, tl.arange(0, BLOCK)[None, :]
    at = x_ptr + row * BLOCK + cols
    tl.store(at, tl.load(at, mask=in_rows) * tl.load(s_ptr + row, mask=in_rows), mask=in_rows)


@triton.jit
def count_kernel(s_ptr, out_ptr):
    tl.store(out_ptr + tl.program_id(0), tl.load(s_ptr + tl.program_id(0)) > 0)


def run(x, s):
    n = s.numel()
    grid = (n,)
    out = torch.empty(n, device=x.device, dtype=torch.int32)
    scale_kernel[(triton.cdiv(n, 4),)](x, s, BLOCK=16, n_rows=n, ROWS=4)
    count_kernel[grid](s, out)
    return x, out
