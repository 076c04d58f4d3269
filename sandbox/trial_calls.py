"""The calls of a trial: the candidate's, and the baseline's, which it is compared with.

On the CPU the interpreter answers everything: plain, in float64 throughout, with programs in another order, and once
more. On a GPU the interpreter answers first, as far as its time reaches: it gives the float64 results, and it sees
where changed sizes lead outside a tensor. Such inputs never reach the GPU, whose fault would end the process. Inputs
too large for the interpreter are given to the GPU alone, and much smaller ones to both.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, replace

import numpy as np

from sandbox.oracle import Reference
from sandbox.trials import Request, Trial
from sandbox.variants import Step

_ORACLE_WALL_S = 45.0
_FIRST = {"recorded": 0, "seed": 1}


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """One step of the plan. `known`: its results were known when it was recorded; `huge`: its entry was recorded on
    inputs too large for the interpreter; `dear`: the recorded call takes so long that it is made once
    (`variants.is_dear`)."""

    step: Step
    number: int
    known: bool
    huge: bool
    dear: bool = False

    @property
    def recorded(self) -> bool:
        return self.step.variant.kind == "recorded"

    @property
    def hopeless(self) -> bool:
        """Made for what it compiles to only."""
        return self.recorded and self.huge and not self.known


Run = Callable[[list[Request], str, float], Trial]
"""Makes calls of the baseline by an executor, within seconds."""


def run_baseline(plan: Sequence[PlannedCall], executor: str, run: Run) -> Trial:
    """Every call of the plan that the baseline can answer. Raises `SandboxError` when no child process can run."""
    return _on_gpu(plan, run) if executor == "gpu" else _interpreted(plan, executor, run)


def _interpreted(plan: Sequence[PlannedCall], executor: str, run: Run) -> Trial:
    requests: list[Request] = []
    for call in plan:
        asked_wide = (call.known or not call.recorded) and not (call.recorded and call.dear)
        requests.append(_plain(call, name_inputs=asked_wide))
        if asked_wide:
            requests.append(Request(call.step, call.number, wide=True))
            if call.recorded or call.dear:
                requests.append(Request(call.step, call.number, order="reversed"))
    return run(requests + _again(plan), executor, math.inf)


def _on_gpu(plan: Sequence[PlannedCall], run: Run) -> Trial:
    """Inputs that may lead outside a tensor only where the interpreter saw that they do not."""
    answerable = (c for c in plan if c.known and (c.step.variant.reduced or not c.huge))
    ordered = sorted(answerable, key=lambda c: _FIRST.get(c.step.variant.kind, 2))
    wide = [Request(c.step, c.number, wide=True) for c in ordered]
    answered = [c for c in run(wide, "interpreter", _ORACLE_WALL_S).calls if c.executed and c.error is None]
    named = {c.request.number for c in answered}
    inside = {c.request.number for c in answered if not c.findings}
    asked = [c for c in plan if c.recorded or c.number in inside or (c.step.variant.kind == "seed" and _safe(c))]
    # Large values lead nowhere else, either, but where a kernel makes addresses of them. How far the baseline is off on
    # such inputs is known from smaller ones.
    measured = {c.request.step.entry for c in answered if c.request.number in inside and c.request.step.variant.large}
    large = [
        c for c in plan if c.step.variant.large and _safe(c) and c.step.entry in measured and c.number not in named
    ]
    for chosen in ((*asked, *large), asked, [c for c in asked if c.recorded]):
        plain = [_plain(c, name_inputs=c.number in named) for c in chosen]
        trial = run(plain + _again(chosen, on_gpu=True), "gpu", math.inf)
        if trial.failure is None:
            break
    return replace(trial, calls=trial.calls + tuple(answered))


def _safe(call: PlannedCall) -> bool:
    """Whether redrawn inputs address what the recorded ones did: sizes and integers keep their values and order."""
    return not call.step.variant.permute and not call.step.variant.sizes


def _plain(call: PlannedCall, *, name_inputs: bool) -> Request:
    return Request(call.step, call.number, compile=call.recorded, execute=not call.hopeless, name_inputs=name_inputs)


def _again(plan: Sequence[PlannedCall], *, on_gpu: bool = False) -> list[Request]:
    """Once more on the recorded inputs; on a GPU, whose atomics come in any order, also on others.

    Of large inputs one redrawn set: recorded numbers may be such that their sums are exact in any order.
    """
    chosen = [c for c in plan if (c.recorded or (on_gpu and not c.huge)) and not c.hopeless and (on_gpu or not c.dear)]
    if on_gpu:
        chosen += [c for c in plan if c.huge and c.step.variant.kind == "seed"][:1]
    else:
        chosen += [c for c in plan if c.dear and c.step.variant.reduced][:1]
    return [Request(c.step, c.number, again=True) for c in chosen]


def candidate_requests(
    expected: Sequence[Reference],
    steps: Sequence[Step],
    executor: str,
    dear: Container[int],
    rng: np.random.Generator,
    *,
    shuffle: bool = False,
) -> list[Request]:
    """A candidate's calls: every step the baseline answers, in an order of their own, some of them twice.

    Steps of recorded inputs that it does not answer are compiled only. `dear` holds the entries whose recorded call is
    made once; what is to be seen on a repetition is seen on their smaller inputs. With `shuffle` the others are made
    once more in a random order where the candidate's host code puts integers in order.
    """
    requests: list[Request] = []
    for reference in expected:
        step, watch = reference.step, reference.call.changed
        recorded, costly = step.variant.kind == "recorded", step.entry in dear
        reuse = bool(rng.random() < 0.5)
        plain = Request(step, reference.number, compile=recorded, reuse=reuse, all_configs=recorded, watch=watch)
        requests.append(replace(plain, shuffle=shuffle and not (recorded and costly)))
        if executor == "interpreter" and (step.variant.reduced if costly else recorded):
            requests.append(Request(step, reference.number, order="reversed", watch=watch))
    answered = {r.number for r in expected}
    unanswered = [(i, s) for i, s in enumerate(steps) if s.variant.kind == "recorded" and i not in answered]
    build_only = [Request(s, i, compile=True, execute=False) for i, s in unanswered]
    shuffled = [requests[i] for i in rng.permutation(len(requests))]
    cheap = [r for r in shuffled if r.step.entry not in dear or r.step.variant.kind != "recorded"]
    again = [r for r in cheap if r.order == "lockstep"][:3]
    repeats = [Request(r.step, r.number, reuse=not r.reuse, again=True, watch=r.watch) for r in again]
    return build_only + shuffled + repeats
