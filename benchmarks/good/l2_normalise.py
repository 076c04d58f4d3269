"""Rows scaled to unit length."""

import torch
import triton
import triton.language as tl


@triton.jit
def l2_normalise_kernel(x_ptr, y_ptr, stride, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < cols
    x = tl.load(x_ptr + row * stride + offsets, mask=mask, other=0.0)
    scale = tl.rsqrt(tl.maximum(tl.sum(x * x, axis=0), 1e-24))
    tl.store(y_ptr + row * stride + offsets, x * scale, mask=mask)


def l2_normalise(x):
    rows, cols = x.shape
    y = torch.empty_like(x)
    l2_normalise_kernel[(rows,)](x, y, x.stride(0), cols, BLOCK=triton.next_power_of_2(cols))
    return y


if __name__ == "__main__":
    torch.manual_seed(0)
    x = torch.randn(512, 1024, device="cuda")
    torch.testing.assert_close(l2_normalise(x), torch.nn.functional.normalize(x))
