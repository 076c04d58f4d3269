"""Residual added, then RMS norm, both written."""

import torch
import triton
import triton.language as tl


@triton.jit
def residual_add_norm_kernel(x_ptr, r_ptr, s_ptr, y_ptr, stride, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < cols
    x = tl.load(x_ptr + row * stride + offsets, mask=mask, other=0.0)
    x += tl.load(r_ptr + row * stride + offsets, mask=mask, other=0.0)
    tl.store(s_ptr + row * stride + offsets, x, mask=mask)
    scale = tl.rsqrt(tl.sum(x * x, axis=0) / cols + 1e-6)
    tl.store(y_ptr + row * stride + offsets, x * scale, mask=mask)


def residual_add_norm(x, r):
    rows, cols = x.shape
    s, y = torch.empty_like(x), torch.empty_like(x)
    residual_add_norm_kernel[(rows,)](x, r, s, y, x.stride(0), cols, BLOCK=triton.next_power_of_2(cols))
    return s, y


if __name__ == "__main__":
    torch.manual_seed(0)
    x = torch.randn(512, 1024, device="cuda")
    r = torch.randn_like(x)
    s, y = residual_add_norm(x, r)
    torch.testing.assert_close(s, x + r)
    torch.testing.assert_close(y, s * torch.rsqrt(s.pow(2).mean(1, keepdim=True) + 1e-6))
