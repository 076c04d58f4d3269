import torch
import triton
import triton.language as tl


@triton.jit
def total_kernel(x_ptr, total_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0)
    # a block of int32 may sum to more than they hold
    block_total = tl.sum(tl.where(i < n, x, 0).to(tl.int64))
    tl.atomic_add(total_ptr, block_total, mask=block_total != 0)


def total(x):
    out = torch.zeros(1, device=x.device, dtype=torch.int64)
    total_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
    return out
