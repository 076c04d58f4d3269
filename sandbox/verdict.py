"""What is known about a candidate, and how strongly: the two evidence scales and the verdicts.

A claim is never stronger than what was run. `Correctness` and `Speed` are ordered; compare members with `<` and `>=`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import total_ordering
from typing import Any


@total_ordering
class _Scale(Enum):
    """Members are ordered as written, weakest first; the value is the word used in reports."""

    def __lt__(self, other: object) -> bool:
        if not isinstance(other, type(self)):
            return NotImplemented
        members = list(type(self))
        return members.index(self) < members.index(other)

    def __str__(self) -> str:
        return str(self.value)


class Correctness(_Scale):
    """How it was shown that a program computes the right result."""

    NONE = "none"
    """Nothing was shown, not even that it builds."""
    COMPILED = "compiled"
    """Built for the target; nothing executed."""
    INTERPRETED = "interpreted"
    """The Triton program ran in the corrected interpreter, or a port's host code natively, and matched an oracle."""
    EXECUTED_ELSEWHERE = "executed-elsewhere"
    """Ran on a GPU of another architecture and matched."""
    EMULATED = "emulated"
    """The compiled code object of the target ran in the CPU emulator and matched."""
    EXECUTED = "executed"
    """Ran on a device of the target architecture and matched."""

    @property
    def validated(self) -> bool:
        """Whether the word "validated" may be used."""
        return self >= Correctness.INTERPRETED


class Speed(_Scale):
    """How it was shown that a program is faster."""

    NONE = "none"
    MODELLED = "modelled"
    """Predicted by an analytical or cache model."""
    STATIC = "static"
    """A named resource of the code object improved and no other resource got worse."""
    COUNTED = "counted"
    """Instruction or atomic counts from emulation moved the named way."""
    MEASURED_ELSEWHERE = "measured-elsewhere"
    """Timed on another architecture."""
    MEASURED = "measured"
    """Timed on a device of the target architecture."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A ratio baseline/candidate (above 1 is faster) with its 95% bootstrap interval, from `pairs` interleaved runs."""

    ratio: float
    low: float
    high: float
    pairs: int

    def __str__(self) -> str:
        return f"{self.ratio:.2f}x [{self.low:.2f}, {self.high:.2f}]"


@dataclass(frozen=True, slots=True)
class Gain:
    """What got better, at which level, in words that claim no more than that level allows."""

    level: Speed
    statement: str
    interval: Interval | None = None
    device: str | None = None
    """Name of the device that was timed, for the two measured levels."""
    metrics: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """Metric name to (baseline, candidate)."""


@dataclass(frozen=True, slots=True)
class Check:
    """One named check of the validator and its outcome."""

    name: str
    passed: bool
    detail: str = ""


@dataclass(frozen=True, slots=True)
class CompileFailed:
    """The candidate does not build for the target."""

    message: str
    kernel: str | None = None
    file: str | None = None
    line: int | None = None


@dataclass(frozen=True, slots=True)
class Crashed:
    """The candidate ended its process, or raised."""

    message: str
    signal: int | None = None
    line: int | None = None


@dataclass(frozen=True, slots=True)
class TimedOut:
    """The candidate did not end within its budget."""

    budget_s: float
    phase: str = "run"


@dataclass(frozen=True, slots=True)
class Incorrect:
    """The candidate computes something else, or was caught by a check."""

    check: str
    message: str
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Inconclusive:
    """Nothing can be said; `reason` names what was missing."""

    reason: str
    checks: tuple[Check, ...] = ()


@dataclass(frozen=True, slots=True)
class NoGain:
    """Right, but not shown to be better."""

    correctness: Correctness
    reason: str
    checks: tuple[Check, ...] = ()
    timed_on: str | None = None
    """The GPU on which it was no faster, or wrong when it was timed; None where no clock was asked or believed."""
    doubted: bool = False
    """Whether a clock was asked and not believed; `reason` says why."""

    def mending(self, what: str) -> Accepted:
        """The verdict where something that could not be launched is gone: no gain, and yet a win."""
        return Accepted(self.correctness, Speed.NONE, None, checks=self.checks, mended=what)


@dataclass(frozen=True, slots=True)
class Accepted:
    """Right and better, each at its evidence level. `gain` is None where the win is that it builds at all."""

    correctness: Correctness
    speed: Speed
    gain: Gain | None
    built_now: bool = False
    """The baseline did not build (or could not launch) for the target, the candidate does."""
    checks: tuple[Check, ...] = ()
    mended: str = ""
    """What of a baseline that builds was shown not to launch on the target and is gone, in words; else empty."""


Verdict = CompileFailed | Crashed | TimedOut | Incorrect | Inconclusive | NoGain | Accepted
