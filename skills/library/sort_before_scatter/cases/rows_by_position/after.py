import torch
import triton
import triton.language as tl


@triton.jit
def scatter_rows(idx_ptr, scale_ptr, grad_ptr, out_ptr, n, D, ROWS: tl.constexpr, BLOCK: tl.constexpr, order_ptr):
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = cols < D
    run_target = tl.full((), 0, idx_ptr.dtype.element_ty)
    run_sum = tl.zeros((BLOCK,), tl.float32)
    run_begun = False
    for i in range(ROWS):
        row = tl.program_id(0) * ROWS + i
        if row < n:
            source_row = tl.load(order_ptr + row)
            scale = tl.load(scale_ptr + source_row)
            target = tl.load(idx_ptr + row)
            grad = tl.load(grad_ptr + source_row * D + cols, mask=mask, other=0.0)
            if run_begun & (target != run_target):
                tl.atomic_add(out_ptr + run_target * D + cols, run_sum, mask=mask)
                run_sum = tl.zeros((BLOCK,), tl.float32)
            run_target = target
            run_begun = True
            run_sum += (grad * scale).to(tl.float32)
    if run_begun:
        tl.atomic_add(out_ptr + run_target * D + cols, run_sum, mask=mask)


def run(idx, scale, grad, rows):
    n, d = grad.shape
    out = torch.zeros((rows, d), device=grad.device, dtype=torch.float32)
    ordered_idx, order = idx.sort(dim=-1, stable=True)
    scatter_rows[(triton.cdiv(n, 32), triton.cdiv(d, 64))](ordered_idx, scale, grad, out, n, d, ROWS=32, BLOCK=64, order_ptr=order)
    return out
