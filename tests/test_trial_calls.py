"""Which calls are made where, and how often: the interpreter stands for the GPU here."""

from __future__ import annotations

import numpy as np
import pytest

from sandbox import variants
from sandbox.capture import capture
from sandbox.evaluate import EvaluateOptions, Evaluator
from sandbox.isolation import Limits
from sandbox.kernel import parse_kernel
from sandbox.oracle import references
from sandbox.target import load_target
from sandbox.trial_calls import PlannedCall, run_baseline
from sandbox.trials import Request, Trial, run_trial
from sandbox.variants import plan_steps, reductions
from sandbox.verdict import Correctness, Incorrect

SOURCE = b"""
import torch, triton
import triton.language as tl


@triton.jit
def double(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + offs, 2 * tl.load(x_ptr + offs, mask=offs < n), mask=offs < n)


def run(x):
    y = torch.empty_like(x)
    double[(triton.cdiv(x.numel(), 4096),)](x, y, x.numel(), BLOCK=4096)
    return y


if __name__ == "__main__":
    run(torch.randn(ELEMENTS, device="cuda"))
"""
TARGET = load_target("gfx950")


def asked_of(elements: int, dear: bool = False) -> tuple[list[tuple[str, Request]], int, int]:
    """Every request with its executor; how many steps were planned, and how many have an answer of higher precision."""
    kernel = parse_kernel(SOURCE.replace(b"ELEMENTS", str(elements).encode()), "k.py")
    stored = capture(kernel, TARGET, executor="interpreter", limits=Limits(wall_s=240), compile=False).stored
    steps = plan_steps(stored.workload, np.random.default_rng(1), reduce=True)
    asked: list[tuple[str, Request]] = []

    def run(requests: list[Request], executor: str, wall_s: float) -> Trial:
        asked.extend((executor, r) for r in requests)
        return run_trial(kernel, stored, TARGET, requests, executor="interpreter", limits=Limits(wall_s=240), seed=1)

    huge = any(reductions(stored.workload.entries[0]))
    plan = [PlannedCall(s, n, known=True, huge=huge, dear=dear) for n, s in enumerate(steps)]
    found = references(stored, steps, run_baseline(plan, "gpu", run))
    return asked, len(found), sum(r.kind == "float64" for r in found)


def test_large_inputs_go_to_the_gpu_alone_and_much_smaller_ones_to_both() -> None:
    asked, answered, precise = asked_of(70_000)
    interpreted = [r for executor, r in asked if executor == "interpreter"]
    assert interpreted and all(r.step.variant.reduced for r in interpreted)
    on_gpu = [r.step.variant for executor, r in asked if executor == "gpu" and not r.again]
    assert {v.kind for v in on_gpu} == {"recorded", "seed", "sizes", "distribution"}
    assert all(v.reduced for v in on_gpu if v.kind == "sizes")
    assert [v.reduced for v in on_gpu if v.distribution == "large"] == [True, False], "their own size, too"
    assert [r.step.variant.kind for _, r in asked if r.again] == ["recorded", "seed"]
    assert precise == len(interpreted) and answered > precise
    plain = [r for executor, r in asked if executor == "gpu" and not r.again]
    compared = {r.number for r in interpreted}
    assert all(r.name_inputs == (r.number in compared) for r in plain), "gigabytes are not named without need"


def test_small_inputs_are_answered_in_higher_precision_and_repeated_on_the_gpu() -> None:
    asked, answered, precise = asked_of(1000)
    assert precise == answered
    on_gpu = [r for executor, r in asked if executor == "gpu"]
    assert sum(r.again for r in on_gpu) == sum(not r.again for r in on_gpu)
    assert {r.step.variant.kind for r in on_gpu} >= {"recorded", "seed", "distribution"}


def test_on_a_gpu_calls_on_much_memory_are_redrawn_once_in_their_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(variants, "DEAR_BYTES", 70_000 * 4 - 1)
    asked, answered, precise = asked_of(70_000, dear=True)
    on_gpu = [r.step.variant for executor, r in asked if executor == "gpu" and not r.again]
    assert [v.kind for v in on_gpu if not v.reduced] == ["recorded", "seed", "distribution"]
    assert sum(v.reduced for v in on_gpu) >= variants.MIN_SEEDS
    assert [r.step.variant.kind for _, r in asked if r.again] == ["recorded", "seed"]
    assert answered == precise + 3


def test_a_dear_call_is_made_once_and_smaller_ones_judge(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(variants, "DEAR_S", 0.0)
    kernel = parse_kernel(SOURCE.replace(b"ELEMENTS", b"70_000"), "k.py")
    stored = capture(kernel, TARGET, executor="interpreter", limits=Limits(wall_s=240), compile=False).stored
    evaluator = Evaluator(kernel, stored, TARGET, EvaluateOptions(executor="interpreter", seed=1))
    made = [(c.request.step.variant.kind, c.request.order, c.request.wide) for c in evaluator.baseline_trial.calls]
    assert [m for m in made if m[0] == "recorded"] == [("recorded", "lockstep", False)]
    reduced = [r for r in evaluator.references if r.step.variant.reduced]
    assert len(reduced) >= variants.MIN_SEEDS and {r.kind for r in reduced} == {"float64"}
    right = parse_kernel(kernel.source.replace("4096", "2048").encode(), "k.py")
    assert evaluator.evaluate(right).correctness >= Correctness.INTERPRETED
    wrong = parse_kernel(kernel.source.replace("2 * tl.load", "(2 + n % 2) * tl.load").encode(), "k.py")
    verdict = evaluator.evaluate(wrong).verdict
    assert isinstance(verdict, Incorrect) and verdict.check == "held-out-shapes"
