"""Sorted scatters are judged right end to end in any order of their work, and wrong ones by a named check."""

from pathlib import Path

import pytest

from agent.candidate import Measurement
from agent.fix import SkillProposer
from sandbox.capture import capture
from sandbox.cheats import scan
from sandbox.evaluate import EvaluateOptions, Evaluator
from sandbox.kernel import Kernel, load_kernel
from sandbox.target import Vendor, load_target
from sandbox.verdict import Accepted, Correctness, Incorrect, Speed
from skills.facts import Facts
from skills.library.sort_before_scatter.transform import find, transform
from skills.skill import Site, load_library

ROOT = Path(__file__).parent.parent
TARGET = load_target("gfx950")
CASES = {
    "lookups": (
        ROOT / "benchmarks/suite/tbe_backward/kernel.py",
        "tbe_bwd",
        ("idx_ptr=int64", "bag_ptr=int64", "grad_ptr=float32", "out_ptr=float32"),
    ),
    "rows": (
        ROOT / "examples/scatter_add/kernel.py",
        "scatter_add_rows",
        ("idx_ptr=int32", "grad_ptr=bfloat16", "out_ptr=bfloat16"),
    ),
    "loop": (
        ROOT / "benchmarks/suite/index_select_backward/kernel.py",
        "scatter_rows",
        ("idx_ptr=int64", "grad_ptr=float32", "out_ptr=float32"),
    ),
}
WRONG = {
    "a bag of another lookup": ("lookups", "(ordered_idx, ordered_bag,", "(ordered_idx, bag,"),
    "rows in their old places": ("rows", "grad_ptr + source_row * D", "grad_ptr + row * D"),
    "indices in their old places": ("rows", "(ordered_idx, grad", "(idx, grad"),
}


def facts_of(name: str) -> Facts:
    _, function, types = CASES[name]
    return Facts({"kernel.name": function, "launch.pointer_dtypes": types, "source.has_atomic": True,
                  "source.has_dot": False, "source.is_autotuned": False, "compile.status": "ok"})  # fmt: skip


def sites(name: str) -> list[Site]:
    return [s for s in find(load_kernel(CASES[name][0]), facts_of(name), TARGET) if isinstance(s, Site)]


def ordered(name: str) -> Kernel:
    kernel = load_kernel(CASES[name][0])
    edited = transform(kernel, sites(name)[0], TARGET)
    assert edited is not None
    return edited


@pytest.fixture(scope="module")
def evaluators() -> dict[str, Evaluator]:
    return {}


def evaluator_of(name: str, held: dict[str, Evaluator]) -> Evaluator:
    if name not in held:
        kernel = load_kernel(CASES[name][0])
        recorded = capture(kernel, TARGET, executor="interpreter")
        assert recorded.outcome.status == "passed", recorded.outcome
        options = EvaluateOptions(executor="interpreter", seed=5, expects={"executed_lane_atomics": "halved"})
        held[name] = Evaluator(kernel, recorded.stored, TARGET, options)
    return held[name]


@pytest.mark.parametrize("name", CASES)
def test_every_form_passes_the_scan(name: str) -> None:
    kernel = load_kernel(CASES[name][0])
    assert sites(name)
    for site in sites(name):
        edited = transform(kernel, site, TARGET)
        assert edited is not None
        assert not scan(kernel, edited), site.label


@pytest.mark.parametrize("clock", ["amd", None])
def test_only_a_clock_keeps_a_sort(clock: Vendor | None) -> None:
    """What the sort costs is in no count of the kernel; and what comes after it waits for it only where it is tried."""
    kernel = load_kernel(CASES["lookups"][0])
    facts = facts_of("lookups")
    known = Facts(facts.known, {}, {"tbe_bwd": facts})
    offers = SkillProposer(TARGET, load_library(), clock).propose(Measurement(kernel, known), ())
    proposed = [p for p in offers.proposals if p.origin == "sort-before-scatter"]
    assert bool(proposed) == (clock is not None)
    assert all(p.needs_timing for p in proposed)


@pytest.mark.long
@pytest.mark.parametrize("name", ["lookups", "rows"])
def test_sorted_indices_need_half_the_atomics(name: str, evaluators: dict[str, Evaluator]) -> None:
    evaluator = evaluator_of(name, evaluators)
    candidate = ordered(name)
    verdict = evaluator.evaluate(candidate).verdict
    assert isinstance(verdict, Accepted), verdict
    assert verdict.correctness is Correctness.EMULATED
    assert verdict.speed is Speed.COUNTED
    assert verdict.gain is not None
    before, after = verdict.gain.metrics["lane_atomics"]
    assert before > 2 * after > 0
    calls = evaluator._trials[(candidate.digest, "interpreter")].calls
    assert any(c.shuffled for c in calls)
    assert all(c.orderings and not c.misordered for c in calls)


@pytest.mark.long
@pytest.mark.parametrize("fault", WRONG)
def test_an_order_that_is_not_kept_is_rejected(fault: str, evaluators: dict[str, Evaluator]) -> None:
    name, old, new = WRONG[fault]
    right = ordered(name)
    assert old in right.source
    verdict = evaluator_of(name, evaluators).evaluate(right.with_source(right.source.replace(old, new))).verdict
    assert isinstance(verdict, Incorrect), verdict
    assert verdict.check in ("tolerance", "library-call"), verdict
