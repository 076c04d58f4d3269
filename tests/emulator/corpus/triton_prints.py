"""Triton kernels that call the host: they print, or assert something."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def printing_kernel(x, y, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value, real = tl.load(x + offsets), tl.load(y + offsets)
    tl.device_print("value", value)
    tl.device_print("real", real)
    tl.store(x + offsets, value + 1)


@triton.jit
def asserting_kernel(x, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    value = tl.load(x + offsets)
    tl.device_assert(value < 100, "too large")
    tl.store(x + offsets, value + 1)
