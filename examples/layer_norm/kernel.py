"""Layer norm, forward, with a Hopper register cap and a CUDA libdevice square root."""

import torch
import triton
import triton.language as tl
from triton.language.extra.cuda import libdevice


@triton.jit
def layer_norm_kernel(x_ptr, w_ptr, b_ptr, y_ptr, stride, cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    mask = offs < cols
    x = tl.load(x_ptr + row * stride + offs, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / cols
    centred = tl.where(mask, x - mean, 0.0)
    rstd = libdevice.rsqrt(tl.sum(centred * centred, axis=0) / cols + eps)
    w = tl.load(w_ptr + offs, mask=mask, other=0.0).to(tl.float32)
    b = tl.load(b_ptr + offs, mask=mask, other=0.0).to(tl.float32)
    y = centred * rstd * w + b
    tl.store(y_ptr + row * stride + offs, y.to(y_ptr.dtype.element_ty), mask=mask)


def layer_norm(x, weight, bias, eps=1e-5):
    """x: (rows, cols), contiguous; weight, bias: (cols,)."""
    rows, cols = x.shape
    y = torch.empty_like(x)
    block = triton.next_power_of_2(cols)
    layer_norm_kernel[(rows,)](x, weight, bias, y, x.stride(0), cols, eps, BLOCK=block, num_warps=8, maxnreg=64)
    return y


def make_inputs(rows=16, cols=1500):
    x = torch.randn((rows, cols), device="cuda", dtype=torch.bfloat16)
    return x, torch.rand(cols, device="cuda", dtype=torch.bfloat16), torch.randn(cols, device="cuda", dtype=torch.bfloat16)


if __name__ == "__main__":
    torch.manual_seed(7)
    x, w, b = make_inputs()
    expected = torch.nn.functional.layer_norm(x.float(), (x.shape[1],), w.float(), b.float(), 1e-5)
    torch.testing.assert_close(layer_norm(x, w, b).float(), expected, atol=3e-2, rtol=2e-2)
    print("layer norm ok")
