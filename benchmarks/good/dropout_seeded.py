"""Dropout from a counter-based generator: nothing but x and y touches memory."""

import torch
import triton
import triton.language as tl


@triton.jit
def dropout_seeded_kernel(x_ptr, y_ptr, n, p, seed, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    keep = tl.rand(seed, offsets) > p
    tl.store(y_ptr + offsets, tl.where(keep, x * (1.0 / (1.0 - p)), 0.0), mask=mask)


def dropout_seeded(x, p, seed):
    y = torch.empty_like(x)
    dropout_seeded_kernel[(triton.cdiv(x.numel(), 512),)](x, y, x.numel(), p, seed, BLOCK=512)
    return y


if __name__ == "__main__":
    x = torch.ones(200, 1024, device="cuda")
    y = dropout_seeded(x, 0.25, 7)
    assert 0.24 < (y == 0).float().mean().item() < 0.26
    torch.testing.assert_close(y[y != 0], torch.full_like(y[y != 0], 1 / 0.75))
