import torch
import triton
import triton.language as tl


@triton.jit
def norm_backward(x_ptr, grad_ptr, dw_ptr, db_ptr, out_ptr, rows, cols, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    x_ptr += row * stride
    c = tl.arange(0, BLOCK)
    mask = c < cols
    x = tl.load(x_ptr + c, mask=mask, other=0.0)
    grad = tl.load(grad_ptr + row * stride + c, mask=mask, other=0.0)
    tl.store(out_ptr + row * stride + c, grad * 2.0, mask=mask)
    tl.atomic_add(dw_ptr + c, x * grad, mask=mask)
    tl.atomic_add(db_ptr + c, grad, mask=mask)


def run(x, grad, dw, db, out):
    rows, cols = x.shape
    block = triton.next_power_of_2(cols)
    norm_backward[(rows,)](x, grad, dw, db, out, rows, cols, x.stride(0), BLOCK=block)
