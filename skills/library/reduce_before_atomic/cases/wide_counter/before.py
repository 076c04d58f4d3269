import torch
import triton
import triton.language as tl


@triton.jit
def total_kernel(x_ptr, total_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0)
    # a block of int32 may sum to more than they hold
    tl.atomic_add(total_ptr + tl.zeros((BLOCK,), tl.int32), x, mask=i < n)


def total(x):
    out = torch.zeros(1, device=x.device, dtype=torch.int64)
    total_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
    return out
