import torch
import triton
import triton.language as tl


@triton.jit
def norm_backward(x_ptr, grad_ptr, dw_ptr, db_ptr, out_ptr, rows, cols, stride, BLOCK: tl.constexpr, n_blocks):
    c = tl.arange(0, BLOCK)
    mask = c < cols
    first_row = tl.program_id(0) * 8
    targets = dw_ptr + c
    strip_total = tl.zeros(targets.shape, tl.float32)
    targets_2 = db_ptr + c
    strip_total_2 = tl.zeros(targets_2.shape, tl.float32)
    for row in range(first_row, tl.minimum(first_row + 8, n_blocks)):
        x = tl.load(x_ptr + row * stride + c, mask=mask, other=0.0)
        grad = tl.load(grad_ptr + row * stride + c, mask=mask, other=0.0)
        tl.store(out_ptr + row * stride + c, grad * 2.0, mask=mask)
        strip_total += x * grad
        strip_total_2 += grad
    tl.atomic_add(targets, strip_total, mask=mask)
    tl.atomic_add(targets_2, strip_total_2, mask=mask)


def run(x, grad, dw, db, out):
    rows, cols = x.shape
    block = triton.next_power_of_2(cols)
    norm_backward[(triton.cdiv(rows, 8),)](x, grad, dw, db, out, rows, cols, x.stride(0), BLOCK=block, n_blocks=rows)
