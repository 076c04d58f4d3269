import torch
import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + tl.program_id(0) * n + i, mask=i < n, other=0.0)
    tl.atomic_add(out_ptr + i, x, mask=i < n, sem="relaxed")


def column_sums(parts):
    first = parts[0][0]
    total = torch.zeros_like(first, dtype=torch.float32)
    n = first.numel()
    for part in parts:
        add_kernel[(part.shape[0],)](part, total, n, BLOCK=triton.next_power_of_2(n))
    total = total.to(first.dtype)
    return total
