import torch
import triton
import triton.language as tl


@triton.jit
def compact_kernel(x_ptr, out_ptr, count_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    x = tl.load(x_ptr + i, mask=m, other=0.0)
    keep = m & (x > 0)
    # the old count is where the element goes
    addend = tl.where(keep, 1, 0)
    total = tl.sum(addend, 0)
    before = tl.cumsum(addend, 0) - addend
    pos = tl.atomic_add(count_ptr, total, mask=total != 0) + before
    tl.store(out_ptr + pos, x, mask=keep)


def compact(x):
    out = torch.zeros_like(x)
    count = torch.zeros(1, device=x.device, dtype=torch.int32)
    n = x.numel()
    compact_kernel[(triton.cdiv(n, 1024),)](x, out, count, n, BLOCK=1024)
    return out, count
