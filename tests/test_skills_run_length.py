"""Runs of equal indices are judged right end to end where they are merged, and wrong ones by a named check."""

from pathlib import Path

import pytest

from sandbox.capture import capture
from sandbox.evaluate import EvaluateOptions, Evaluator
from sandbox.kernel import Kernel, load_kernel
from sandbox.target import load_target
from sandbox.verdict import Accepted, Correctness, Incorrect, NoGain, Speed
from skills.facts import Facts
from skills.library.run_length_scatter.transform import find, transform
from skills.skill import Site

ROOT = Path(__file__).parent.parent
BASELINES = {
    "loop": (ROOT / "benchmarks/suite/index_select_backward/kernel.py", "scatter_rows"),
    "programs": (ROOT / "benchmarks/suite/tbe_backward/kernel.py", "tbe_bwd"),
}
WRONG = {
    "last run not sent": ("    if run_begun:\n", "    if run_begun & (n < 0):\n"),
    "sum carried on": ("                run_sum = tl.zeros((BLOCK,), tl.float32)\n", ""),
    "sent to the next row": (
        "out_ptr + run_target * D + cols, run_sum, mask=mask)\n                run_sum",
        "out_ptr + target * D + cols, run_sum, mask=mask)\n                run_sum",
    ),
}


@pytest.fixture(scope="module")
def evaluators() -> dict[str, Evaluator]:
    return {}


def evaluator_of(name: str, held: dict[str, Evaluator]) -> Evaluator:
    if name not in held:
        kernel, target = load_kernel(BASELINES[name][0]), load_target("gfx950")
        recorded = capture(kernel, target, executor="interpreter")
        assert recorded.outcome.status == "passed", recorded.outcome
        options = EvaluateOptions(executor="interpreter", seed=5, expects={"executed_lane_atomics": "halved"})
        held[name] = Evaluator(kernel, recorded.stored, target, options)
    return held[name]


def merged(name: str) -> Kernel:
    path, function = BASELINES[name]
    kernel, target = load_kernel(path), load_target("gfx950")
    facts = Facts({"kernel.name": function, "launch.pointer_dtypes": ("out_ptr=float32",)})
    (site,) = find(kernel, facts, target)
    assert isinstance(site, Site)
    edited = transform(kernel, site, target)
    assert edited is not None
    return edited


@pytest.mark.long
def test_sorted_indices_need_a_fraction_of_the_atomics(evaluators: dict[str, Evaluator]) -> None:
    verdict = evaluator_of("loop", evaluators).evaluate(merged("loop")).verdict
    assert isinstance(verdict, Accepted), verdict
    assert verdict.correctness is Correctness.EMULATED
    assert verdict.speed is Speed.COUNTED
    assert verdict.gain is not None
    before, after = verdict.gain.metrics["lane_atomics"]
    assert before > 8 * after > 0


@pytest.mark.long
def test_indices_in_random_order_are_right_and_no_gain(evaluators: dict[str, Evaluator]) -> None:
    """A tenth of neighbours is equal by chance: not worth a grid of a sixteenth."""
    verdict = evaluator_of("programs", evaluators).evaluate(merged("programs")).verdict
    assert isinstance(verdict, NoGain), verdict
    assert verdict.correctness.validated


@pytest.mark.long
@pytest.mark.parametrize("fault", WRONG)
def test_a_wrong_merge_is_rejected(fault: str, evaluators: dict[str, Evaluator]) -> None:
    right = merged("loop")
    assert right.source.count(WRONG[fault][0]) == 1
    wrong = right.with_source(right.source.replace(*WRONG[fault]))
    verdict = evaluator_of("loop", evaluators).evaluate(wrong).verdict
    assert isinstance(verdict, Incorrect), verdict
    assert verdict.check in ("tolerance", "exact", "unwritten-output"), verdict
