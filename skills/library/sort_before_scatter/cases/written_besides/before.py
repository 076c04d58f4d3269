import torch
import triton
import triton.language as tl


@triton.jit
def scatter_rows(idx_ptr, scale_ptr, grad_ptr, out_ptr, n, D, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = cols < D
    for i in range(ROWS):
        row = tl.program_id(0) * ROWS + i
        if row < n:
            scale = tl.load(scale_ptr + row)
            target = tl.load(idx_ptr + row)
            grad = tl.load(grad_ptr + row * D + cols, mask=mask, other=0.0)
            tl.store(out_ptr + row, 0.0)
            tl.atomic_add(out_ptr + target * D + cols, grad * scale, mask=mask)


def run(idx, scale, grad, rows):
    n, d = grad.shape
    out = torch.zeros((rows, d), device=grad.device, dtype=torch.float32)
    scatter_rows[(triton.cdiv(n, 32), triton.cdiv(d, 64))](idx, scale, grad, out, n, d, ROWS=32, BLOCK=64)
    return out
