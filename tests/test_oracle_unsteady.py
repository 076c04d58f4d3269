"""Why a baseline that differs from itself gives nothing to compare with, as far as the interpreter saw it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sandbox.correctness import TensorValue
from sandbox.isolation import Ended
from sandbox.oracle import references, unanswered
from sandbox.trials import Call, Request, Trial, TrialLaunch
from sandbox.variants import RECORDED, InputVariant, Step
from sandbox.workload import StoredWorkload


def result(value: float) -> dict[str, TensorValue]:
    return {"output": TensorValue("float32", (64,), (1,), np.full(64, value, np.float32))}


def launch(*findings: str) -> tuple[TrialLaunch, ...]:
    return (TrialLaunch("k", True, True, None, findings, (1, 1, 1)),)


@pytest.mark.parametrize(
    ("findings", "said"),
    [
        ((), "elements are wrong, worst at [0]: 3 instead of 1)"),
        (("the promise multiple_of(x, 16) does not hold",), "3 instead of 1)"),
        (("load outside of V",), "3 instead of 1); it leaves its tensors: load outside of V"),
    ],
)
def test_an_address_outside_is_named_as_the_reason(findings: tuple[str, ...], said: str) -> None:
    request = Request(Step(0, RECORDED), 0)
    calls = (
        Call(request, result(1.0), launches=launch()),
        Call(Request(request.step, 0, again=True), result(3.0), launches=launch()),
        Call(Request(request.step, 0, wide=True), result(1.0), launches=launch(*findings)),
        Call(Request(Step(1, RECORDED), 1, wide=True), result(1.0), launches=launch("another entry's")),
    )
    ended = Ended("exit", "process", 1.0)
    trial = Trial("gpu", calls, (), frozenset(), None, "H", None, None, None, ended)
    assert unanswered(trial).endswith(said)


@pytest.mark.parametrize(
    ("by", "drawn", "kind"),
    [
        ("gpu", {"empty": 1, "randn": 2}, "baseline"),
        ("gpu", {"empty": 1}, "float64"),
        ("interpreter", {"empty": 1, "randn": 2}, "float64"),
    ],
)
def test_what_host_code_draws_on_a_gpu_the_interpreter_cannot_answer(by: str, drawn: dict[str, int], kind: str) -> None:
    """Its results come from other numbers: as an oracle they would make any error look like the baseline's own."""
    step = Step(0, InputVariant("inputs drawn anew (1)", "seed", 7))
    wide = TrialLaunch("k", True, True, None, (), (1, 1, 1), "interpreter")
    calls = (
        Call(Request(step, 0), result(1.0), launches=(replace(wide, by=by),), torch_functions=drawn),
        Call(Request(step, 0, wide=True), result(3.0), launches=(wide,), torch_functions=drawn),
    )
    trial = Trial(by, calls, (), frozenset(), None, "H", None, None, None, Ended("exit", "process", 1.0))
    (reference,) = references(StoredWorkload.__new__(StoredWorkload), [step], trial)
    assert (reference.kind, reference.oracle is None) == (kind, kind == "baseline")
