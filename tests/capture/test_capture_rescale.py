"""Held-out shapes: sizes of the harness change together, everything else stays."""

from __future__ import annotations

from pathlib import Path

from sandbox.capture import capture
from sandbox.isolation import Limits
from sandbox.kernel import parse_kernel
from sandbox.rescale import SCALES, held_out, rescaled
from sandbox.target import load_target

SOURCE = """
import torch
import triton
import triton.language as tl


@triton.jit
def neg_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, 512)[: 512]
    tl.store(y_ptr + i, -tl.load(x_ptr + i, mask=i < n), mask=i < n)


def neg(x, block=512):
    y = torch.empty_like(x)
    neg_kernel[(triton.cdiv(x.numel(), 512),)](x, y, x.numel(), BLOCK=512, num_warps=4)
    return y


if __name__ == "__main__":
    torch.manual_seed(1234)
    M, N, BLOCK_SIZE = 512, 200, 128
    BLOCK_M = 128
    rows, count = 512, 3
    x = torch.randn(M, N, device="cuda")  # größe
    y = torch.randn((rows, 200), device="cuda")
    assert torch.equal(neg(x, block=512), -x) and M > 0
"""


def test_sizes_change_together_and_only_in_the_harness():
    odd = rescaled(SOURCE, SCALES[1])
    assert odd is not None
    before, after = SOURCE.splitlines(), odd.splitlines()
    changed = {old.strip(): new.strip() for old, new in zip(before, after, strict=True) if old != new}
    assert changed == {
        "M, N, BLOCK_SIZE = 512, 200, 128": "M, N, BLOCK_SIZE = 509, 197, 128",
        "rows, count = 512, 3": "rows, count = 509, 3",
        "y = torch.randn((rows, 200), device=\"cuda\")": "y = torch.randn((rows, 197), device=\"cuda\")",
    }  # fmt: skip
    assert rescaled(SOURCE, SCALES[0]) is None


def test_captures_with_other_sizes():
    source = SOURCE.replace("tl.arange(0, 512)[: 512]", "tl.arange(0, BLOCK)").replace(
        ", BLOCK_SIZE = 512, 200, 128", " = 512, 200"
    )
    kernel = parse_kernel(source.encode(), "k.py")
    limits = Limits(wall_s=120)
    baseline = capture(kernel, load_target("gfx950"), limits=limits, compile=False)
    assert baseline.outcome.status == "passed", baseline.outcome.traceback
    others = held_out(kernel, load_target("gfx950"), baseline, wanted=2, limits=limits)
    assert [c.workload.scale for c in others] == ["sizes-odd", "sizes-half"]
    assert [c.entries[0].args[0].tensor.shape for c in others] == [(509, 197), (256, 100)]
    assert all(c.entries[0].known for c in others)
    assert Path(kernel.filename).name == "k.py"
