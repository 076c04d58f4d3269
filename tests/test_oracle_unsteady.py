"""Why a baseline that differs from itself gives nothing to compare with, as far as the interpreter saw it."""

from __future__ import annotations

import numpy as np
import pytest

from sandbox.correctness import TensorValue
from sandbox.isolation import Ended
from sandbox.oracle import unanswered
from sandbox.trials import Call, Request, Trial, TrialLaunch
from sandbox.variants import RECORDED, Step


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
