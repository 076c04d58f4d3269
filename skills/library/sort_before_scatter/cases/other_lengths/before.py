import torch
import triton
import triton.language as tl


@triton.jit
def bag_grad(idx_ptr, bag_ptr, grad_ptr, out_ptr, rows, D, BLOCK: tl.constexpr):
    lookup = tl.program_id(0)
    table = tl.program_id(1)
    lookups = tl.num_programs(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < D
    index = tl.load(idx_ptr + table * lookups + lookup)
    bag = tl.load(bag_ptr + table * lookups + lookup)
    grad = tl.load(grad_ptr + bag * D + cols, mask=mask, other=0.0).to(tl.float32)
    tl.atomic_add(out_ptr + (table * rows + index) * D + cols, grad, mask=mask)


def run(idx, bag, grad, rows):
    tables, lookups = idx.shape
    d = grad.shape[1]
    out = torch.zeros((tables, rows, d), device=grad.device, dtype=torch.float32)
    bag_grad[(lookups, tables)](idx, bag, grad, out, rows, d, BLOCK=triton.next_power_of_2(d))
    return out
