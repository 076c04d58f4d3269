"""Candidates: what is proposed, what was tried and how it was judged, and the chain of steps that was kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from sandbox.kernel import Kernel
from sandbox.limits import LimitKind
from sandbox.profiler.metrics import Profile
from sandbox.verdict import (
    Accepted,
    CompileFailed,
    Correctness,
    Crashed,
    Inconclusive,
    Incorrect,
    NoGain,
    Speed,
    TimedOut,
    Verdict,
)
from skills.facts import Facts
from skills.skill import Refusal


@dataclass(frozen=True, slots=True)
class Failure:
    """Why one launch does not build for the target or cannot be launched there."""

    kernel: str
    message: str
    line: int | None = None
    source_line: str | None = None
    limit_kind: LimitKind | None = None
    """Which launch limit of the target is broken; None where it is none, or not known."""

    @property
    def sentence(self) -> str:
        place = f"{self.kernel}, line {self.line}" if self.line is not None else self.kernel
        message = " ".join(self.message.split())
        return f"{place}: {message if len(message) <= 300 else message[:299] + '…'}"


@dataclass(frozen=True, slots=True)
class Measurement:
    """What is known about one kernel file on the target: whether it builds, and the facts skills are matched on."""

    kernel: Kernel
    facts: Facts
    failures: tuple[Failure, ...] = ()
    profiles: Mapping[str, Profile] = field(default_factory=dict)
    """Static profile of each jit kernel, that of its heaviest launch."""
    bottlenecks: tuple[str, ...] = ()
    unlaunchable: tuple[Failure, ...] = ()
    """Configs of autotuners that were compiled for the target and have too many threads to be launched there. Failures
    that the recorded run does not meet: its launches took other configs."""

    def mends(self, before: Measurement) -> str:
        """What could not be launched before and has left a tuner's list here, in one sentence; empty where that is
        nothing, or where something is left."""
        if not (before.builds and self.builds and before.unlaunchable) or self.unlaunchable:
            return ""
        first, others = before.unlaunchable[0], len(before.unlaunchable) - 1
        more = f" (and {others} more)" if others else ""
        return f"a tuner no longer meets what cannot be launched: {first.kernel}, {first.message}{more}"

    @property
    def builds(self) -> bool:
        return not self.failures

    @property
    def metrics(self) -> dict[str, dict[str, float]]:
        """Jit kernel to the numeric metrics of its profile; units are in `sandbox.profiler.static`."""
        return {
            kernel: {m.name: float(m.value) for m in profile if isinstance(m.value, int | float)}
            for kernel, profile in self.profiles.items()
        }


@dataclass(frozen=True, slots=True)
class Proposal:
    """One edited kernel that somebody suggests, with the reason and what it promises."""

    id: str
    """Names the edit: skill, jit kernel and variant, for example `fit-lds@mm_kernel:num_stages=2`."""
    origin: str
    """The skill's id, or the model's name."""
    title: str
    why: str
    kernel: Kernel
    repair: bool = False
    """Whether it is meant to make the file build, rather than to make it faster."""
    needs_timing: bool = False
    """Nothing short of a timing on the target can show its effect."""
    foreign: bool = False
    """What it changes does not exist on the GPU at hand, whose clock then says nothing about it."""
    invisible: bool = False
    """The interpreter ignores this edit, or one it is built on, so that it cannot vouch for the program."""
    expects: tuple[str, ...] = ()
    """`metric direction` pairs that must move; without any, whatever got better while nothing else got worse counts."""
    line: int | None = None
    latent: str = ""
    """What it mends that fails on the target although every recorded launch builds; empty for all other edits."""


NEEDS_CLOCK = "only a clock can tell whether it helps, and there is no GPU here"
"""Why an edit waits for a machine with a GPU."""

NEEDS_CLOCK_OF_TARGET = "only a clock can tell whether it helps, and what it changes does not exist on the GPU here"
"""Why an edit waits for another GPU."""


@dataclass(frozen=True, slots=True)
class Unmatched:
    """A proposer's reason for not proposing something."""

    origin: str
    title: str
    reason: str


@dataclass(frozen=True, slots=True)
class Offers:
    """Everything a proposer has to say about one kernel."""

    proposals: Sequence[Proposal]
    refusals: Sequence[Refusal] = ()
    unmatched: Sequence[Unmatched] = ()


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict with the validator's own statements."""

    verdict: Verdict
    statements: tuple[str, ...] = ()
    metrics: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """Metric name to (baseline, candidate), as far as both are known."""
    doubt: str | None = None
    """What stands between the level that was reached and a higher one."""


class Fate(StrEnum):
    """What the search did with an attempt."""

    KEPT = "kept"
    DROPPED = "dropped"
    STEP = "step"
    """Kept on the way: the file still does not build, but it fails later than before."""
    UNSHOWN = "unshown"
    """Neither shown good nor shown bad; offered separately."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One proposal that was tried, and the reason of its fate."""

    proposal: Proposal
    parent: Kernel
    fate: Fate
    reason: str
    seconds: float
    judgement: Judgement | None = None
    against: Kernel | None = None
    """What the judgement compared it with: the candidate so far, or the user's file while that does not build."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A chain of kept attempts from the user's file to `kernel`."""

    kernel: Kernel
    steps: tuple[Attempt, ...] = ()

    def extend(self, attempt: Attempt) -> Candidate:
        return Candidate(attempt.proposal.kernel, (*self.steps, attempt))

    def as_proposal(self, name: str) -> Proposal:
        """The chain as one proposal, with what each of its steps promised; there must be one."""
        promised = dict.fromkeys(e for step in self.steps for e in step.proposal.expects)
        steps = [step.proposal for step in self.steps]
        return replace(
            steps[-1], id=name, kernel=self.kernel, expects=tuple(promised),
            invisible=any(p.invisible for p in steps), foreign=all(p.foreign for p in steps),
            latent="; ".join(p.latent for p in steps) if all(p.latent for p in steps) else "",
        )  # fmt: skip


def correctness_of(verdict: Verdict | None) -> Correctness:
    """The correctness level a verdict carries."""
    match verdict:
        case Accepted(correctness=level) | NoGain(correctness=level):
            return level
        case _:
            return Correctness.NONE


def speed_of(verdict: Verdict | None) -> Speed:
    """The speed level a verdict carries."""
    return verdict.speed if isinstance(verdict, Accepted) else Speed.NONE


def describe(verdict: Verdict) -> str:
    """One sentence on a verdict, claiming no more than its levels allow."""
    match verdict:
        case Accepted(built_now=True, correctness=level):
            return f"builds now, {'and its results match' if level.validated else 'but no results were compared'}"
        case Accepted(gain=gain, mended=mended):
            return gain.statement if gain else mended or "accepted"
        case NoGain(reason=reason) | Inconclusive(reason=reason):
            return reason
        case CompileFailed(message=message):
            return f"does not build: {_first_line(message)}"
        case Crashed(message=message):
            return f"crashed: {_first_line(message)}"
        case TimedOut(budget_s=budget_s, phase=phase):
            return f"did not end within {budget_s:g} s ({phase})"
        case Incorrect(check=check, message=message):
            return f"rejected by the check {check}: {_first_line(message)}"


def _first_line(text: str) -> str:
    return text.strip().split("\n", 1)[0]
