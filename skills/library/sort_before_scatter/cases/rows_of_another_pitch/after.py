import torch
import triton
import triton.language as tl


@triton.jit
def bag_grad(idx_ptr, bag_ptr, grad_ptr, out_ptr, rows, D, BLOCK: tl.constexpr, order_ptr, lookup_total):
    first_lookup = tl.program_id(0) * 16
    table = tl.program_id(1)
    lookups = lookup_total
    cols = tl.arange(0, BLOCK)
    mask = cols < D
    lookup = first_lookup
    source_lookup = tl.load(order_ptr + table * lookups + lookup)
    index = tl.load(idx_ptr + table * lookups + lookup)
    bag = tl.load(bag_ptr + table * rows + source_lookup)
    grad = tl.load(grad_ptr + bag * D + cols, mask=mask, other=0.0).to(tl.float32)
    run_index = index
    run_ptrs = out_ptr + (table * rows + index) * D + cols
    run_sum = grad.to(tl.float32)
    for member in range(1, 16):
        lookup = first_lookup + member
        if lookup < lookup_total:
            source_lookup = tl.load(order_ptr + table * lookups + lookup)
            index = tl.load(idx_ptr + table * lookups + lookup)
            bag = tl.load(bag_ptr + table * rows + source_lookup)
            grad = tl.load(grad_ptr + bag * D + cols, mask=mask, other=0.0).to(tl.float32)
            if index == run_index:
                run_sum += grad.to(tl.float32)
            else:
                tl.atomic_add(run_ptrs, run_sum, mask=mask)
                run_index = index
                run_ptrs = out_ptr + (table * rows + index) * D + cols
                run_sum = grad.to(tl.float32)
    tl.atomic_add(run_ptrs, run_sum, mask=mask)


def run(idx, bag, grad, rows):
    tables, lookups = idx.shape
    d = grad.shape[1]
    out = torch.zeros((tables, rows, d), device=grad.device, dtype=torch.float32)
    ordered_idx, order = idx.sort(dim=-1, stable=True)
    bag_grad[(triton.cdiv(lookups, 16), tables)](ordered_idx, bag, grad, out, rows, d, BLOCK=triton.next_power_of_2(d), order_ptr=order, lookup_total=lookups)
    return out
