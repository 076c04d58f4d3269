import torch
import triton
import triton.language as tl


@triton.jit
def scatter_rows(idx_ptr, grad_ptr, out_ptr, D, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    for i in range(ROWS):
        row = tl.program_id(0) * ROWS + i
        target = tl.load(idx_ptr + row)
        grad = tl.load(grad_ptr + row * D + cols, mask=cols < D, other=0.0)
        tl.atomic_add(out_ptr + target * D + cols, grad, mask=cols < D)


def run(idx, grad, out):
    d = out.shape[1]
    scatter_rows[(grad.shape[0] // 32,)](idx, grad, out, d, ROWS=32, BLOCK=triton.next_power_of_2(d))
