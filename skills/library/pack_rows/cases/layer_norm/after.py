import torch
import triton
import triton.language as tl

from triton.language.extra import libdevice


@triton.jit
def squashed(x, LIMIT: tl.constexpr):
    y = libdevice.tanh(x / LIMIT)
    return y * LIMIT


@triton.jit
def layer_norm_kernel(x_ptr, w_ptr, y_ptr, scale_ptr, cols, eps=1e-5, BLOCK: tl.constexpr = 256, LIMIT: tl.constexpr = 0,
                      n_rows=0,
                      ROWS: tl.constexpr = 1):
    offsets = tl.arange(0, BLOCK)[None, :]
    mask = offsets < cols
    w = tl.load(w_ptr + offsets, mask=mask, other=0.0)
    rows = (tl.program_id(0) * ROWS + tl.arange(0, ROWS))[:, None]
    in_rows = rows < n_rows
    x = tl.load(
        x_ptr + rows * cols + offsets,
        mask=(offsets < cols) & in_rows,
        other=0.0,
    ).to(tl.float32)
    centred = tl.where(mask, x - tl.sum(x, 1, keep_dims=True) / cols, 0.0)
    scale = tl.rsqrt(tl.sum(centred * centred, 1, keep_dims=True) / cols + eps)
    y = centred * scale * w
    if LIMIT > 0:
        y = squashed(y, LIMIT)
    tl.store(y_ptr + rows * cols + offsets, y.to(y_ptr.dtype.element_ty), mask=mask & in_rows)
    tl.store(scale_ptr + rows, scale, mask=in_rows)


def layer_norm(x, w, limit):
    rows, cols = x.shape
    y, scale = torch.empty_like(x), torch.empty(rows, device=x.device)
    block = triton.next_power_of_2(cols)
    rows_per_program = max(1, 1024 // block)
    grid = lambda meta: (triton.cdiv(rows, rows_per_program),)
    layer_norm_kernel[grid](x, w, y, scale, cols, BLOCK=block, LIMIT=limit, n_rows=rows, ROWS=rows_per_program)
    return y, scale
