import torch
import triton
import triton.language as tl


@triton.jit
def report_kernel(x_ptr, count_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    bad = (i < n) & (tl.load(x_ptr + i, mask=i < n, other=0.0) > 1.0)
    old = tl.atomic_add(count_ptr + tl.zeros_like(i), 2, mask=bad)
    tl.store(out_ptr + i, i, mask=bad & (old != 0) & (old != 4))


def report(x, start):
    count = torch.full((1,), start, device=x.device, dtype=torch.int32)
    out = torch.zeros(x.numel(), device=x.device, dtype=torch.int32)
    report_kernel[(triton.cdiv(x.numel(), 256),)](x, count, out, x.numel(), BLOCK=256)
    return count, out
