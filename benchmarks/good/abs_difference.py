"""y = |a - b| in fp16."""

import torch
import triton
import triton.language as tl


@triton.jit
def abs_difference_kernel(a_ptr, b_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    a = tl.load(a_ptr + offsets, mask=mask)
    b = tl.load(b_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, tl.abs(a - b), mask=mask)


def abs_difference(a, b):
    out = torch.empty_like(a)
    n = a.numel()
    abs_difference_kernel[(triton.cdiv(n, 1024),)](a, b, out, n, BLOCK=1024)
    return out


if __name__ == "__main__":
    torch.manual_seed(0)
    a = torch.randn(256, 1024, device="cuda", dtype=torch.float16)
    b = torch.randn(256, 1024, device="cuda", dtype=torch.float16)
    torch.testing.assert_close(abs_difference(a, b), (a - b).abs())
