"""What is asked of the engine, and what came out of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from pathlib import Path

from sandbox.errors import InputError
from sandbox.kernel import Kernel
from sandbox.target import Target
from sandbox.verdict import Correctness, Speed


class Outcome(StrEnum):
    """How a job ended. Faults are exceptions and have no outcome."""

    IMPROVED = "improved"
    """Shown right at `interpreted` or better, with a gain at `static` or better."""
    BUILDS_NOW = "builds-now"
    """The file, or a config of its tuner, did not build for the target (or could not launch there); the patched one
    does and is shown right."""
    NOTHING = "nothing"
    """Nothing better was found."""
    REFUSED = "refused"
    """It cannot be done, and the report says why."""
    INCONCLUSIVE = "inconclusive"
    """There is something that could not be shown with what is at hand."""

    @property
    def exit_code(self) -> int:
        return _EXIT_CODES[self]


_EXIT_CODES = {
    Outcome.IMPROVED: 0,
    Outcome.BUILDS_NOW: 0,
    Outcome.NOTHING: 3,
    Outcome.REFUSED: 4,
    Outcome.INCONCLUSIVE: 5,
}


@dataclass(frozen=True, slots=True)
class Requirement:
    """The least evidence the user wants to see before a patch counts (`--require`)."""

    correctness: Correctness = Correctness.INTERPRETED
    speed: Speed = Speed.STATIC

    def __str__(self) -> str:
        return f"correctness {self.correctness}, speed {self.speed}"


def parse_requirement(level: str | None) -> Requirement:
    """`measured`, `emulated`, ...: the name of one level of either scale; the usual one for None or an empty word.

    Raises `InputError` for any other word.
    """
    if not level:
        return Requirement()
    for correctness in Correctness:
        if str(correctness) == level and correctness.validated:
            return Requirement(correctness=correctness)
    for speed in Speed:
        if str(speed) == level and speed >= Speed.MODELLED:
            return Requirement(speed=speed)
    levels = [str(c) for c in Correctness if c.validated] + [str(s) for s in Speed if s >= Speed.MODELLED]
    raise InputError(f"{level!r} is not an evidence level.", remedy=f"Choose one of {', '.join(levels)}.")


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits of one job. Reaching one ends the search with what was found so far."""

    wall_s: float = 900.0
    evaluations: int = 40
    """Candidates judged, whoever asked for it. Judging the result as a whole, and afresh, is not counted."""
    usd: Decimal | None = None
    """Of the model, if there is one; None is no limit in money."""
    tokens: int | None = None
    """All tokens of the model, cached ones included; None is no limit."""


@dataclass
class Meter:
    """Counts the evaluations of one job in one place: those of the search and those a model asks for."""

    evaluations: int = 0
    stop_after: int | None = None
    """For a replay: where the job it replays ran out of time."""

    def used_up(self, limit: int | None) -> bool:
        """Whether no further evaluation is allowed under `limit`."""
        limits = [n for n in (limit, self.stop_after) if n is not None]
        return bool(limits) and self.evaluations >= min(limits)


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """Which language model may propose. Its key is never part of it."""

    provider: str
    name: str
    base_url: str | None = None

    def __str__(self) -> str:
        return f"{self.provider}:{self.name}"


@dataclass(frozen=True, slots=True)
class Options:
    """How to work. The same options and files give the same candidates in the same order."""

    require: Requirement = field(default_factory=Requirement)
    allow_approx: bool = False
    """Whether skills that change results beyond rounding may be tried (they still have to pass the tolerance)."""
    executor: str = "auto"
    seed: int | None = None
    """Of the inputs that candidates are tried on; None draws a secret one."""
    budget: Budget = field(default_factory=Budget)
    model: ModelChoice | None = None
    tune_repaired: bool = True
    """Whether a file that builds only after a repair is made faster too."""


@dataclass(frozen=True, slots=True)
class JobRequest:
    """One kernel file to be made better for one target."""

    kernel: Kernel
    target: Target
    path: str
    """Path of the file from the root of its repository, as the patch names it."""
    original: bytes
    """The file as it lies on disk, before line ends and byte order mark were normalised."""
    harness: Kernel | None = None
    workload: Path | None = None
    options: Options = field(default_factory=Options)
