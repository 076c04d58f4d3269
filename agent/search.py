"""Phase 3, Generate & Validate: compose proposals step by step and keep only what the validator confirms.

One seam: a `Proposer` says what could be changed (skills today, models the same way), a `Bench` says what it is worth.
The walk is greedy and deterministic: while the file does not build, a step is kept when it builds and is right, or when
the build fails later than before; once it builds, a step is kept when the validator accepts it against the candidate so
far. At the end the whole chain is judged against the user's file, and steps are taken back until that judgement holds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from statistics import median
from typing import Any, Protocol

from agent.candidate import (
    Attempt,
    Candidate,
    Failure,
    Fate,
    Judgement,
    Measurement,
    Offers,
    Proposal,
    Unmatched,
    correctness_of,
    describe,
)
from agent.events import Progress
from agent.job import Budget, Meter
from sandbox.kernel import Kernel
from sandbox.verdict import Accepted, Gain, Inconclusive, NoGain, Speed
from skills.skill import Refusal


class Proposer(Protocol):
    """Suggests edits of one kernel. Deterministic for the same measurement and history."""

    def propose(self, measured: Measurement, history: Sequence[Attempt]) -> Offers: ...


class Bench(Protocol):
    """Measures and judges kernels in the sandbox."""

    def measure(self, kernel: Kernel) -> Measurement:
        """Compile for the target and collect facts; does not run the program's kernels for their results."""

    def judge(self, baseline: Measurement, proposal: Proposal) -> Judgement:
        """The validator's verdict on `proposal.kernel` as a replacement of `baseline.kernel`."""


@dataclass(frozen=True, slots=True)
class Found:
    """What the search came back with. `final` judges `best` against the user's file; None when nothing was kept."""

    best: Candidate
    measured: Measurement
    final: Judgement | None
    attempts: tuple[Attempt, ...]
    refusals: tuple[Refusal, ...]
    unmatched: tuple[Unmatched, ...]
    stopped: str = ""
    """Why the search ended early, if it did."""


@dataclass
class Search:
    """One search. Call `run` once."""

    start: Measurement
    proposer: Proposer
    bench: Bench
    budget: Budget
    progress: Progress
    clock: Callable[[], float] = time.monotonic
    attempts: list[Attempt] = field(default_factory=list)
    refusals: dict[Refusal, None] = field(default_factory=dict)
    unmatched: dict[str, Unmatched] = field(default_factory=dict)
    _stopped: str = ""
    meter: Meter = field(default_factory=Meter)
    least: Speed = Speed.STATIC
    """Gains below this level are offered, not kept: a prediction rides along with nothing that was counted."""
    tune_repaired: bool = True
    """Whether the search goes on once a file that did not build does."""
    _began: float = 0.0
    _steps: int = 0
    _seen: set[str] = field(default_factory=set)
    _invisible: bool = False
    """Whether the chain holds an edit that the interpreter ignores: it then vouches for no program built on it."""

    def run(self) -> Found:
        self._began = self.clock()
        self._seen.add(self.start.kernel.digest)
        best, measured = Candidate(self.start.kernel), self.start
        while not self._spent():
            if measured.builds and not (self.start.builds or self.tune_repaired):
                break
            step = self._tune(measured) if measured.builds else self._repair(measured)
            if step is None:
                break
            attempt, measured = step
            best = best.extend(attempt)
            self._steps += 1
            self._invisible = self._invisible or attempt.proposal.invisible
        if len(best.steps) > 1:
            self.progress.step("judging the whole patch against the original")
        best, final = settle(best, self.start, self.bench)
        if best.kernel.digest != measured.kernel.digest:
            measured = self.bench.measure(best.kernel) if best.steps else self.start
        tried = {a.proposal.origin for a in self.attempts}
        unmatched = tuple(u for u in self.unmatched.values() if u.origin not in tried)
        refusals = tuple(self.refusals)
        return Found(best, measured, final, tuple(self.attempts), refusals, unmatched, self._stopped)

    def _spent(self) -> bool:
        left_s = self.budget.wall_s - (self.clock() - self._began)
        if self.meter.used_up(self.budget.evaluations):
            self._stopped = f"the budget of {self.budget.evaluations} evaluations was used up"
        elif left_s <= 0:
            self._stopped = f"the budget of {self.budget.wall_s:g} s was used up"
        elif left_s < self._another_s():
            self._stopped = (
                f"what was left of the budget of {self.budget.wall_s:g} s is less than another attempt takes"
            )
        return bool(self._stopped)

    def _another_s(self) -> float:
        """What an attempt took so far, in the middle; twice that where a step is kept already, for the whole is judged
        at the end. The first attempt, which runs the user's file too, tells nothing of the next."""
        judged = [a.seconds for a in self.attempts[1:] if a.judgement is not None]
        return (median(judged) if judged else 0.0) * (2 if self._steps else 1)

    def _fresh(self, measured: Measurement) -> list[Proposal]:
        """Proposals not judged before by name, nor seen before as a program."""
        offers = self.proposer.propose(measured, self.attempts)
        self.refusals.update(dict.fromkeys(offers.refusals))
        tried = {a.proposal.id for a in self.attempts if a.judgement is not None or a.fate is Fate.STEP}
        self.unmatched = {}
        for unmatched in offers.unmatched:
            self.unmatched.setdefault(unmatched.origin, unmatched)
        fresh = [p for p in offers.proposals if p.id not in tried and p.kernel.digest not in self._seen]
        return [replace(p, invisible=p.invisible or self._invisible) for p in fresh]

    def _batches(self, measured: Measurement) -> Iterator[list[Proposal]]:
        """What is proposed; asked for again after a batch that came to nothing, until nothing new comes."""
        while not self._spent() and (fresh := self._fresh(measured)):
            yield fresh

    def _repair(self, measured: Measurement) -> tuple[Attempt, Measurement] | None:
        """The first proposal that builds and is right; else the first that moves the failure on."""
        further: tuple[Attempt, Measurement] | None = None
        for fresh in self._batches(measured):
            for proposal in fresh:
                if self._spent():
                    break
                began = self._open(proposal)
                after = self.bench.measure(proposal.kernel)
                if after.builds:
                    judgement = self.bench.judge(self.start, proposal)
                    attempt = self._close(proposal, measured, self.start, began, judgement)
                    if attempt.fate is Fate.KEPT:
                        return attempt, after
                elif further is None and _moved_on(measured.failures, after.failures):
                    reason = f"the failure moved on; next: {after.failures[0].sentence}"
                    further = (self._note(proposal, measured, began, Fate.STEP, reason), after)
                else:
                    reason = f"still does not build: {after.failures[0].sentence}"
                    self._note(proposal, measured, began, Fate.DROPPED, reason)
            if further is not None:
                break
        return further

    def _tune(self, measured: Measurement) -> tuple[Attempt, Measurement] | None:
        """The best accepted variant of the first proposal group with any."""
        for fresh in self._batches(measured):
            for _, group in groupby(fresh, key=lambda p: p.id.split(":", 1)[0]):
                kept = [a for a in self._try_all(measured, group) if a.fate is Fate.KEPT]
                if kept:
                    best = max(kept, key=_strength)
                    return best, self.bench.measure(best.proposal.kernel)
        return None

    def _try_all(self, measured: Measurement, group: Iterator[Proposal]) -> Iterator[Attempt]:
        """Variants of one edit, best first. Without a timing they have no rank, so the first accepted one is taken."""
        for proposal in group:
            if self._spent():
                return
            began = self._open(proposal)
            attempt = self._close(proposal, measured, measured, began, self.bench.judge(measured, proposal))
            yield attempt
            if attempt.fate is Fate.KEPT and _interval_low(attempt) is None:
                return

    def _open(self, proposal: Proposal) -> float:
        self._seen.add(proposal.kernel.digest)
        self.meter.evaluations += 1
        self.progress.step(f"trying {proposal.id}", proposal=proposal.id, title=proposal.title)
        return self.clock()

    def _close(
        self, proposal: Proposal, parent: Measurement, against: Measurement, began: float, judgement: Judgement
    ) -> Attempt:
        reason = describe(judgement.verdict)
        fate = _fate(proposal, judgement, self.least)
        return self._note(proposal, parent, began, fate, reason, judgement=judgement, against=against.kernel)

    def _note(
        self, proposal: Proposal, parent: Measurement, began: float, fate: Fate, reason: str, **judged: Any
    ) -> Attempt:
        attempt = Attempt(proposal, parent.kernel, fate, reason, self.clock() - began, **judged)
        self.attempts.append(attempt)
        self.progress.attempt(f"{fate}: {proposal.id}: {reason}", proposal=proposal.id, fate=fate, reason=reason)
        return attempt


def settle(best: Candidate, start: Measurement, bench: Bench) -> tuple[Candidate, Judgement | None]:
    """Judge a chain as a whole against the user's file; steps are taken back until it holds."""
    while best.steps:
        last = best.steps[-1]
        judgement = last.judgement
        if judgement is not None and last.against is not None and last.against.digest != start.kernel.digest:
            judgement = bench.judge(start, best.as_proposal("the whole patch"))
        if judgement is not None and isinstance(judgement.verdict, Accepted):
            return best, judgement
        best = Candidate(last.parent, best.steps[:-1])
    return best, None


def _moved_on(before: Sequence[Failure], after: Sequence[Failure]) -> bool:
    """Whether a build that still fails fails differently, and in no more places."""
    old = {(f.kernel, f.message) for f in before}
    new = {(f.kernel, f.message) for f in after}
    return len(new) <= len(old) and new != old


def _fate(proposal: Proposal, judgement: Judgement, least: Speed) -> Fate:
    match judgement.verdict:
        case Accepted(gain=Gain(level=level)) if level < least:
            return Fate.UNSHOWN
        case Accepted():
            return Fate.KEPT
        case Inconclusive():
            return Fate.UNSHOWN
        case NoGain(timed_on=None) if proposal.needs_timing and correctness_of(judgement.verdict).validated:
            return Fate.UNSHOWN
        case _:
            return Fate.DROPPED


def _interval_low(attempt: Attempt) -> float | None:
    verdict = attempt.judgement.verdict if attempt.judgement else None
    if isinstance(verdict, Accepted) and verdict.gain is not None and verdict.gain.interval is not None:
        return verdict.gain.interval.low
    return None


def _strength(attempt: Attempt) -> float:
    """Orders accepted variants: the lower bound of the measured speed-up; first come first served without one."""
    return _interval_low(attempt) or 0.0
