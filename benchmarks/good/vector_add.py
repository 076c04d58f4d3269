"""c = a + b, 16 bytes a lane."""

import torch
import triton
import triton.language as tl


@triton.jit
def vector_add_kernel(a_ptr, b_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    a = tl.load(a_ptr + offsets, mask=mask)
    b = tl.load(b_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, a + b, mask=mask)


def vector_add(a, b):
    out = torch.empty_like(a)
    n = a.numel()
    vector_add_kernel[(triton.cdiv(n, 1024),)](a, b, out, n, BLOCK=1024)
    return out


if __name__ == "__main__":
    torch.manual_seed(0)
    a = torch.randn(256, 1024, device="cuda", dtype=torch.float32)
    b = torch.randn(256, 1024, device="cuda", dtype=torch.float32)
    torch.testing.assert_close(vector_add(a, b), a + b)
