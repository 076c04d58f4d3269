"""RMS normalisation with a weight."""

import torch
import triton
import triton.language as tl


@triton.jit
def rms_norm_kernel(x_ptr, w_ptr, y_ptr, stride, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < cols
    x = tl.load(x_ptr + row * stride + offsets, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(x * x, axis=0) / cols + 1e-6)
    tl.store(y_ptr + row * stride + offsets, (x * scale * w).to(y_ptr.dtype.element_ty), mask=mask)


def rms_norm(x, w):
    rows, cols = x.shape
    y = torch.empty_like(x)
    rms_norm_kernel[(rows,)](x, w, y, x.stride(0), cols, BLOCK=triton.next_power_of_2(cols))
    return y


if __name__ == "__main__":
    torch.manual_seed(0)
    x = torch.randn(512, 2048, device="cuda", dtype=torch.bfloat16)
    w = torch.randn(2048, device="cuda", dtype=torch.bfloat16)
    f = x.float()
    expected = (f * torch.rsqrt(f.pow(2).mean(1, keepdim=True) + 1e-6) * w.float()).bfloat16()
    torch.testing.assert_close(rms_norm(x, w), expected)
