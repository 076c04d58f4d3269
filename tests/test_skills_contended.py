"""Sums along an axis and histograms of blocks are judged right end to end where they are, and wrong ones by a named
check."""

from pathlib import Path

import pytest

from sandbox.capture import capture
from sandbox.evaluate import EvaluateOptions, Evaluator
from sandbox.kernel import Kernel, load_kernel, parse_kernel
from sandbox.target import load_target
from sandbox.verdict import Accepted, Correctness, Incorrect, Speed
from skills.facts import Facts
from skills.library.block_histogram import transform as block_histogram
from skills.library.larger_blocks_per_atomic import transform as larger_blocks
from skills.library.sum_axis_before_atomic import transform as sum_axis
from skills.skill import Site, TransformModule

SUITE = Path(__file__).parent.parent / "benchmarks" / "suite"

DEVIATIONS = """
import torch
import triton
import triton.language as tl


@triton.jit
def deviation_kernel(x_ptr, out_ptr, rows, cols, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    c = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    live = (r[:, None] < rows) & (c[None, :] < cols)
    x = tl.load(x_ptr + r[:, None] * cols + c[None, :], mask=live, other=0.0).to(tl.float32)
    place = tl.broadcast_to(c[None, :], (ROWS, BLOCK))
    tl.atomic_add(out_ptr + place, (x - 0.5) * (x - 0.5), mask=live)


def deviation(x):
    rows, cols = x.shape
    out = torch.zeros(cols, device=x.device, dtype=torch.float32)
    deviation_kernel[(triton.cdiv(rows, 8), triton.cdiv(cols, 64))](x, out, rows, cols, ROWS=8, BLOCK=64, num_warps=4)
    return out


if __name__ == "__main__":
    torch.manual_seed(5)
    x = torch.randn(50, 100, device="cuda").half()
    torch.testing.assert_close(deviation(x), ((x.float() - 0.5) ** 2).sum(0), atol=1e-3, rtol=1e-3)
"""
BASELINES = {
    "deviation": (parse_kernel(DEVIATIONS.encode(), "deviation.py"), "gfx942"),
    "histogram": (load_kernel(SUITE / "histogram" / "kernel.py"), "gfx950"),
}
FACTS = {
    "deviation": {"launch.pointer_dtypes": ("out_ptr=float32", "x_ptr=float16")},
    "histogram": {
        "launch.pointer_dtypes": ("out_ptr=int32", "x_ptr=int32"),
        "launch.pointer_elements": ("out_ptr=64", "x_ptr=20000"),
    },
}
STEPS: dict[str, tuple[TransformModule, ...]] = {
    "deviation": (sum_axis, larger_blocks),
    "histogram": (block_histogram, larger_blocks),
}
FEWER = {"deviation": (6, 24), "histogram": (15, 30)}
"""How many times fewer lane atomics there are at least after the first step, and after the second."""
WRONG = {
    ("deviation", "mask forgotten"): ("tl.where(live, (x - 0.5) * (x - 0.5), 0)", "((x - 0.5) * (x - 0.5))"),
    ("deviation", "rows past the end"): ("tl.where(live,", "tl.where(c[None, :] < cols,"),
    ("deviation", "every column the first"): ("out_ptr + c,", "out_ptr + c * 0,"),
    ("histogram", "mask forgotten"): ("mask & (x >= 0)", "(x >= 0)"),
    ("histogram", "bins off by one"): ("(x < BINS)", "(x < BINS - 1)"),
}
CHECKS = {
    ("deviation", "mask forgotten"): ("out-of-bounds",),
    ("deviation", "rows past the end"): ("tolerance",),
    ("deviation", "every column the first"): ("tolerance", "unwritten-output"),
    ("histogram", "mask forgotten"): ("exact",),
    ("histogram", "bins off by one"): ("exact",),
}


@pytest.fixture(scope="module")
def evaluators() -> dict[str, Evaluator]:
    return {}


def evaluator_of(name: str, held: dict[str, Evaluator]) -> Evaluator:
    if name not in held:
        kernel, arch = BASELINES[name]
        target = load_target(arch)
        recorded = capture(kernel, target, executor="interpreter")
        assert recorded.outcome.status == "passed", recorded.outcome
        options = EvaluateOptions(executor="interpreter", seed=5, expects={"executed_lane_atomics": "down"})
        held[name] = Evaluator(kernel, recorded.stored, target, options)
    return held[name]


def edited(name: str, steps: int) -> Kernel:
    kernel, arch = BASELINES[name]
    target = load_target(arch)
    for module in STEPS[name][:steps]:
        found = list(module.find(kernel, Facts({"kernel.name": f"{name}_kernel", **FACTS[name]}), target))
        assert isinstance(found[0], Site)
        step = module.transform(kernel, found[0], target)
        assert step is not None
        kernel = step
    return kernel


@pytest.mark.long
@pytest.mark.parametrize("steps", [1, 2])
@pytest.mark.parametrize("name", BASELINES)
def test_the_same_results_with_a_fraction_of_the_atomics(
    name: str, steps: int, evaluators: dict[str, Evaluator]
) -> None:
    verdict = evaluator_of(name, evaluators).evaluate(edited(name, steps)).verdict
    assert isinstance(verdict, Accepted), verdict
    assert verdict.correctness is Correctness.EMULATED
    assert verdict.speed is Speed.COUNTED
    assert verdict.gain is not None
    before, after = verdict.gain.metrics["lane_atomics"]
    assert before >= FEWER[name][steps - 1] * after > 0


@pytest.mark.long
@pytest.mark.parametrize(("name", "fault"), WRONG)
def test_a_wrong_edit_is_rejected(name: str, fault: str, evaluators: dict[str, Evaluator]) -> None:
    right = edited(name, 1)
    assert right.source.count(WRONG[name, fault][0]) == 1
    wrong = right.with_source(right.source.replace(*WRONG[name, fault]))
    verdict = evaluator_of(name, evaluators).evaluate(wrong).verdict
    assert isinstance(verdict, Incorrect), verdict
    assert verdict.check in CHECKS[name, fault], verdict
