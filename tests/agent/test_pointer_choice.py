"""Pointers chosen by branches, which AMD's compiler refuses: repaired, built and run in the emulator."""

from pathlib import Path

import pytest

from agent.companions import load_with_companions
from agent.events import Progress
from agent.job import JobRequest, Options
from agent.orchestrator import optimize
from sandbox.target import load_target

CHAIN = """
import torch, triton, triton.language as tl

@triton.jit
def join(a, b, c, out, na, nb, nc, BLOCK: tl.constexpr):
    part = tl.program_id(1)
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if part == 0:
        src = a
        n = na
        at = 0
    elif part == 1:
        src = b
        n = nb
        at = na
    else:
        src = c
        n = nc
        at = na + nb
    x = tl.load(src + offs, mask=offs < n)
    tl.store(out + at + offs, x, mask=offs < n)

if __name__ == "__main__":
    parts = [torch.randn(n, device="cuda") for n in (700, 1, 300)]
    out = torch.empty(1001, device="cuda")
    join[(3, 3)](*parts, out, *(p.numel() for p in parts), BLOCK=256)
    torch.testing.assert_close(out, torch.cat(parts))
"""
OFFSET = """
import torch, triton, triton.language as tl

@triton.jit
def pick(bank, prefix, out, banks, stride, n, BLOCK: tl.constexpr):
    row, j = tl.program_id(0), tl.program_id(1)
    offs = tl.arange(0, BLOCK)
    if j < banks:
        base = bank + row * stride + j * n
    else:
        base = prefix + row * n
    x = tl.load(base + offs, mask=offs < n)
    tl.store(out + (row * (banks + 1) + j) * n + offs, x, mask=offs < n)

if __name__ == "__main__":
    bank, prefix = torch.randn(4, 3, 200, device="cuda"), torch.randn(4, 200, device="cuda")
    out = torch.empty(4, 4, 200, device="cuda")
    pick[(4, 4)](bank, prefix, out, 3, 600, 200, BLOCK=256)
    torch.testing.assert_close(out, torch.cat([bank, prefix[:, None]], 1))
"""


@pytest.mark.parametrize(
    ("source", "target", "line"),
    [
        (CHAIN, "gfx942", "+    if part == 1:"),
        (CHAIN, "gfx950", "+    if part == 1:"),
        (OFFSET, "gfx942", "+    base = base.to(bank.dtype, bitcast=True)"),
    ],
)
def test_a_choice_of_pointers_builds_and_computes_the_same(tmp_path: Path, source: str, target: str, line: str) -> None:
    file = tmp_path / "f.py"
    file.write_text(source)
    options = Options(executor="interpreter", seed=3)
    request = JobRequest(load_with_companions(file), load_target(target), "f.py", file.read_bytes(), options=options)
    report = optimize(request, tmp_path / "out", Progress())
    assert report.outcome == "builds-now" and "pointer-choice" in report.summary, report.summary
    assert (report.correctness.level, report.correctness.validated) == ("emulated", True)
    assert report.artifacts.patch is not None
    assert line in (tmp_path / "out" / report.artifacts.patch).read_text().splitlines()
