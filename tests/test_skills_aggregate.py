"""Aggregated atomics are judged right end to end where they are, and wrong ones by a named check."""

from pathlib import Path

import pytest

from sandbox.capture import capture
from sandbox.evaluate import EvaluateOptions, Evaluator
from sandbox.kernel import Kernel, load_kernel, parse_kernel
from sandbox.target import load_target
from sandbox.verdict import Accepted, Correctness, Incorrect, Speed
from skills.facts import Facts
from skills.library.aggregate_atomics.transform import find, transform
from skills.library.larger_blocks_per_atomic import transform as larger_blocks
from skills.skill import Site

SUITE = Path(__file__).parent.parent / "benchmarks" / "suite"

APPEND = """
import torch
import triton
import triton.language as tl


@triton.jit
def compact_kernel(x_ptr, out_ptr, count_ptr, n, STEPS: tl.constexpr, BLOCK: tl.constexpr):
    for step in range(STEPS):
        offs = (tl.program_id(0) * STEPS + step) * BLOCK + tl.arange(0, BLOCK)
        live = offs < n
        x = tl.load(x_ptr + offs, mask=live, other=0.0)
        bad = live & (x > 0)
        pos = tl.atomic_add(count_ptr + tl.zeros((BLOCK,), tl.int32), 1, mask=bad)
        tl.store(out_ptr + pos, x, mask=bad)


def compact(x):
    out = torch.zeros_like(x)
    count = torch.zeros(1, device=x.device, dtype=torch.int32)
    n = x.numel()
    compact_kernel[(triton.cdiv(n, 1024),)](x, out, count, n, STEPS=2, BLOCK=512, num_warps=4)
    return out, count


if __name__ == "__main__":
    torch.manual_seed(5)
    x = torch.randn(3000, device="cuda")
    out, count = compact(x)
    assert torch.equal(out[: int(count)].sort().values, x[x > 0].sort().values)
"""
BASELINES = {
    "append": (parse_kernel(APPEND.encode(), "append.py"), "gfx942", "compact_kernel", ("count_ptr=int32",)),
    "report": (
        load_kernel(SUITE / "bounds_check_report" / "kernel.py"),
        "gfx950",
        "bounds_check_kernel",
        ("warnings_ptr=int64",),
    ),
}
WRONG = {
    "inclusive prefix": ("tl.cumsum(addend, 0) - addend", "tl.cumsum(addend, 0)"),
    "mask forgotten": ("tl.where(bad, 1, 0)", "tl.where(live, 1, 0)"),
    "total of inactive lanes": ("tl.sum(addend, 0)", "tl.sum(tl.where(live, 1, 0), 0)"),
}
CHECKS = {
    ("append", "inclusive prefix"): "tolerance",
    ("report", "inclusive prefix"): "unwritten-output",
    ("report", "mask forgotten"): "unwritten-output",
}
"""Which check names the fault, where that is not the count: without the right prefix nobody is first."""


@pytest.fixture(scope="module")
def evaluators() -> dict[str, Evaluator]:
    return {}


def evaluator_of(name: str, held: dict[str, Evaluator]) -> Evaluator:
    if name not in held:
        kernel, arch, _, _ = BASELINES[name]
        target = load_target(arch)
        recorded = capture(kernel, target, executor="interpreter")
        assert recorded.outcome.status == "passed", recorded.outcome
        options = EvaluateOptions(executor="interpreter", seed=5, expects={"executed_lane_atomics": "down"})
        held[name] = Evaluator(kernel, recorded.stored, target, options)
    return held[name]


def aggregated(name: str) -> Kernel:
    kernel, arch, function, dtypes = BASELINES[name]
    target = load_target(arch)
    (site,) = find(kernel, Facts({"kernel.name": function, "launch.pointer_dtypes": dtypes}), target)
    edited = transform(kernel, site, target)
    assert edited is not None
    return edited


@pytest.mark.long
@pytest.mark.parametrize("name", BASELINES)
def test_the_same_positions_with_a_fraction_of_the_atomics(name: str, evaluators: dict[str, Evaluator]) -> None:
    """Lanes in ascending order are what the interpreter and the emulator's usual schedule make of the baseline too."""
    evaluation = evaluator_of(name, evaluators).evaluate(aggregated(name))
    verdict = evaluation.verdict
    assert isinstance(verdict, Accepted), verdict
    assert verdict.correctness is Correctness.EMULATED
    assert verdict.speed is Speed.COUNTED
    assert verdict.gain is not None
    before, after = verdict.gain.metrics["lane_atomics"]
    assert before > 7 * after > 0


def test_larger_blocks_are_left_to_a_clock_where_they_are_scanned() -> None:
    """The scan's registers grow with the block: 49 -> 80 here, for 6 waves per SIMD instead of 8."""
    edited, target = aggregated("report"), load_target("gfx950")
    sites = list(larger_blocks.find(edited, Facts({"kernel.name": "bounds_check_kernel"}), target))
    assert sites and all(isinstance(s, Site) and s.needs_timing for s in sites)


@pytest.mark.long
@pytest.mark.parametrize("fault", WRONG)
@pytest.mark.parametrize("name", BASELINES)
def test_a_wrong_aggregation_is_rejected(name: str, fault: str, evaluators: dict[str, Evaluator]) -> None:
    right = aggregated(name)
    assert right.source.count(WRONG[fault][0]) == 1
    wrong = right.with_source(right.source.replace(*WRONG[fault]))
    verdict = evaluator_of(name, evaluators).evaluate(wrong).verdict
    assert isinstance(verdict, Incorrect), verdict
    assert verdict.check == CHECKS.get((name, fault), "exact"), verdict
