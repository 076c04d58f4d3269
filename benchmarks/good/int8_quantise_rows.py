"""Symmetric int8 quantisation with one scale a row."""

import torch
import triton
import triton.language as tl


@triton.jit
def int8_quantise_rows_kernel(x_ptr, q_ptr, scale_ptr, stride, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < cols
    x = tl.load(x_ptr + row * stride + offsets, mask=mask, other=0.0)
    scale = tl.maximum(tl.max(tl.abs(x), axis=0), 1e-8) / 127.0
    q = x / scale
    q = tl.where(q >= 0, q + 0.5, q - 0.5).to(tl.int8)
    tl.store(q_ptr + row * stride + offsets, q, mask=mask)
    tl.store(scale_ptr + row, scale)


def int8_quantise_rows(x):
    rows, cols = x.shape
    q, scale = torch.empty_like(x, dtype=torch.int8), torch.empty(rows, device=x.device)
    int8_quantise_rows_kernel[(rows,)](x, q, scale, x.stride(0), cols, BLOCK=triton.next_power_of_2(cols))
    return q, scale


if __name__ == "__main__":
    torch.manual_seed(0)
    x = torch.randn(512, 1024, device="cuda")
    q, scale = int8_quantise_rows(x)
    assert (q.float() * scale[:, None] - x).abs().max() <= scale.max() * 0.51
