"""Findings that need the compiler, and the search for a verified gain."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from branches import KERNEL, LIBDEVICE, Branches

from agent.events import Progress
from agent.review.changes import ChangedFile
from agent.review.compare import compare
from agent.review.compiled import Side, ported_sightings
from agent.review.config import ReviewConfig
from agent.review.review import ReviewRequest, review
from agent.review.source import Sighting
from sandbox.errors import ToolMissing
from sandbox.target import load_target
from sandbox.toolchain import find_toolchain

GEMM = """import torch
import triton
import triton.language as tl


@triton.jit
def mm(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        x = tl.load(a + rm[:, None] * K + (k + rk)[None, :])
        y = tl.load(b + (k + rk)[:, None] * N + rn[None, :])
        acc += tl.dot(x, y)
    tl.store(c + rm[:, None] * N + rn[None, :], acc.to(tl.float16))


def matmul(a, b):
    c = torch.empty_like(a)
    mm[(2, 2)](a, b, c, 256, 256, 256, BM=128, BN=128, BK=64, num_warps=8, num_stages=2)
    return c


if __name__ == "__main__":
    a = torch.randn(256, 256, device="cuda", dtype=torch.float16)
    matmul(a, a)
"""
SCATTER = KERNEL.replace(
    "tl.store(out + i, tl.load(x + i, mask=mask) * 2.0, mask=mask)",
    "tl.atomic_add(out + i % 8, tl.load(x + i, mask=mask).to(tl.bfloat16), mask=mask)",
).replace("torch.empty_like(x)", "torch.zeros(8, device=x.device, dtype=torch.bfloat16)")


def compiled_review(branches: Branches, minutes: float = 10.0, evidence: str = "compiled"):  # type: ignore[no-untyped-def]
    text = f"targets: [gfx942]\nminutes: {minutes}\nevidence: {evidence}\n"
    branches.repo.git.checkout("-q", "main")
    branches.commit({".wavesmith.yml": text})
    branches.repo.git.checkout("-q", "pr")
    branches.repo.git.rebase("-q", "main")
    return review(ReviewRequest(branches.folder, "main", "pr"), Progress())


@pytest.mark.slow
def test_an_lds_overflow_and_its_repair(branches: Branches) -> None:
    """A deeper pipeline no longer fits gfx942's LDS; the repair that does was compiled."""
    branches.commit({"gemm.py": GEMM})
    branches.branch("pr")
    branches.commit({"gemm.py": GEMM.replace("num_stages=2", "num_stages=5")})
    (lds,) = compiled_review(branches).findings
    assert (lds.rule, lds.kernel, lds.origin, lds.evidence) == ("lds-overflow", "mm", "introduced", "compiled")
    assert "> 65536 bytes per workgroup on gfx942" in lds.message
    assert lds.fix is not None and lds.fix.correctness == "compiled" and lds.fix.suggestion is not None


def test_an_atomic_the_target_lacks(branches: Branches) -> None:
    """gfx942 has no atomic addition of single bf16 values: it becomes a compare-and-swap loop."""
    branches.commit({"scatter.py": KERNEL})
    branches.branch("pr")
    branches.commit({"scatter.py": SCATTER})
    (found,) = compiled_review(branches).findings
    assert (found.rule, found.kernel) == ("atomics", "scale") and "compare-and-swap" in found.message
    assert found.line == SCATTER[: SCATTER.index("tl.atomic_add")].count("\n") + 1


@pytest.mark.long
def test_a_fix_is_verified_in_the_minutes_that_are_left(branches: Branches) -> None:
    branches.commit({"k.py": KERNEL})
    branches.branch("pr")
    branches.commit({"k.py": LIBDEVICE})
    result = compiled_review(branches, 3.0, "verified")
    (finding,) = result.findings
    assert finding.rule == "cuda-only" and finding.fix is not None
    assert finding.fix.correctness in ("interpreted", "emulated", "executed-elsewhere", "executed"), finding
    assert finding.fix.suggestion is not None and "extra.cuda" not in finding.fix.suggestion.text


def test_a_number_that_grew_is_introduced_and_one_that_did_not_is_only_touched() -> None:
    file = ChangedFile("k.py", "k.py", b"x = 1\n", b"x = 2\n", ((1, 1),), ((1, 1),))
    spills = Sighting("spills", "k", 1, "", "k spills registers.", targets=("gfx942",), evidence="compiled", value=12.0)

    def seen(before: float | None, after: float, kernels: tuple[str, ...] = ("k",)) -> list[tuple[str, str]]:
        base = [replace(spills, value=before)] if before is not None else []
        found = compare(file, kernels, base, [replace(spills, value=after)], ReviewConfig())
        return [(f.origin, f.message) for f in found]

    assert seen(None, 12.0) == [("introduced", "k spills registers.")]
    assert seen(12.0, 37.0) == [("introduced", "k spills registers. It was 12 before the change.")]
    assert seen(37.0, 37.0) == seen(37.0, 12.0) == [("touched", "k spills registers.")]
    assert seen(37.0, 37.0, ()) == []


def test_the_same_finding_for_two_targets_is_one() -> None:
    file = ChangedFile("k.py", "k.py", None, b"x = 2\n", ((1, 1),), ((1, 1),))
    head = [Sighting("lane-32", "k", 1, "c", "m", targets=(t,)) for t in ("gfx942", "gfx950")]
    (finding,) = compare(file, ("k",), [], head, ReviewConfig())
    assert finding.targets == ("gfx942", "gfx950")


def test_a_port_says_what_does_not_build_and_what_does_not_fit(tmp_path: Path) -> None:
    try:
        find_toolchain()
    except ToolMissing as e:
        pytest.skip(str(e))
    good = "__global__ void f(float* x) { x[threadIdx.x] = 1.0f; }\n"
    (tmp_path / "good.cu").write_text(good)
    (tmp_path / "bad.cu").write_text(good.replace("1.0f", "no_such_function(1.0f)"))
    target = load_target("gfx942")
    assert ported_sightings(Side(tmp_path, "good.cu"), target, (), Progress()) == []
    (bad,) = ported_sightings(Side(tmp_path, "bad.cu"), target, (), Progress())
    assert bad.rule == "does-not-build" and "no_such_function" in bad.message and bad.targets == ("gfx942",)
