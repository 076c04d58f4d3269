"""What a review says: rules, findings, fixes, and the result that every door shows.

`review.json` is `ReviewResult`. It may cross from an untrusted job to one that may write, so it is read strictly.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field


class Level(StrEnum):
    """How much a finding matters, least first."""

    NOTE = "note"
    WARNING = "warning"
    ERROR = "error"

    @property
    def rank(self) -> int:
        return list(Level).index(self)


@dataclass(frozen=True, slots=True)
class Rule:
    """One kind of finding. `level` is the default; `.wavesmith.yml` may set another."""

    id: str
    level: Level
    title: str
    help: str


RULES: Mapping[str, Rule] = {
    r.id: r
    for r in (
        Rule(
            "does-not-build",
            Level.ERROR,
            "Does not build for AMD",
            "The kernel compiles for the target before the change, or is new, and does not compile after it.",
        ),
        Rule(
            "lds-overflow",
            Level.ERROR,
            "Needs more LDS than a workgroup may have",
            "The compiled kernel asks for more LDS than the target grants one workgroup; the launch is refused.",
        ),
        Rule(
            "launch-limit",
            Level.ERROR,
            "Breaks a launch limit",
            "The launch has more threads per workgroup, or a larger grid, than the target allows.",
        ),
        Rule(
            "cuda-only",
            Level.ERROR,
            "CUDA-only construct",
            "A construct that exists only on NVIDIA: inline PTX, CUDA libdevice, NVIDIA launch options, WMMA, TMA.",
        ),
        Rule(
            "lane-32",
            Level.WARNING,
            "Assumes 32 lanes",
            "Code that is right only where a warp has 32 lanes; wavefronts of gfx942 and gfx950 have 64.",
        ),
        Rule(
            "lock-step",
            Level.WARNING,
            "Relies on lock step or independent progress",
            "Volatile shared memory or a waiting loop whose meaning depends on how NVIDIA schedules lanes.",
        ),
        Rule(
            "spills",
            Level.WARNING,
            "Spills more registers",
            "The compiled kernel keeps more registers in scratch memory than before the change.",
        ),
        Rule(
            "atomics",
            Level.WARNING,
            "Atomics became a hot spot",
            "The target has no such atomic instruction (it becomes a compare-and-swap loop), or atomics sit in a loop.",
        ),
        Rule(
            "gain",
            Level.NOTE,
            "A verified improvement is available",
            "The optimizer found a better version of a kernel that the change touches, at the evidence level named.",
        ),
    )
}


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


Short = Annotated[str, Field(max_length=300)]
Text = Annotated[str, Field(max_length=4000)]
MAX_PATCH_CHARACTERS = 200_000


class Suggestion(_Part):
    """Lines `start` to `end` of the head's file, replaced by `text` (no newline at its end)."""

    start: int = Field(ge=1)
    end: int = Field(ge=1)
    text: Annotated[str, Field(max_length=10_000)]


class Fix(_Part):
    """A changed version of one file. `suggestion` is there when the edit is local and lies inside the diff."""

    title: Short
    path: Annotated[str, Field(max_length=1000)]
    patch: Annotated[str, Field(max_length=MAX_PATCH_CHARACTERS)] = Field(description="As `git apply` takes it.")
    suggestion: Suggestion | None = None
    correctness: Short = Field(description="Evidence level of the patched file; `none` when it was not even built.")
    speed: Short = "none"
    statement: Text = Field(description="What was shown of the patched file, and no more.")


class Finding(_Part):
    """One thing a change introduces, or touches. `line` is 1-based in the head's file."""

    fingerprint: Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]
    rule: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,40}$")]
    level: Level
    origin: Literal["introduced", "touched"] = Field(
        description="`touched`: it was there before, in a kernel that the change edits."
    )
    path: Annotated[str, Field(max_length=1000)]
    line: int = Field(ge=1)
    end_line: int = Field(ge=1)
    kernel: Short
    targets: tuple[Short, ...]
    evidence: Short = Field(description="`source` when only read, else a correctness level.")
    message: Text
    remedy: Text = ""
    fix: Fix | None = None


class Skipped(_Part):
    """Something that was not looked at, and why."""

    what: Annotated[str, Field(max_length=1000)]
    reason: Text


class ReviewResult(_Part):
    """Everything a review found."""

    schema_version: Literal[1] = 1
    wavesmith_version: Short
    base: Annotated[str, Field(pattern=r"^[0-9a-f]{40,64}$")]
    head: Annotated[str, Field(pattern=r"^[0-9a-f]{40,64}$")]
    targets: tuple[Short, ...]
    files_changed: int
    files_reviewed: tuple[Annotated[str, Field(max_length=1000)], ...]
    kernels: tuple[Short, ...] = Field(description="Kernels the change affects.")
    findings: tuple[Finding, ...]
    hidden: int = Field(default=0, description="Findings kept quiet by `ignore` or an earlier dismissal.")
    skipped: tuple[Skipped, ...] = ()
    notes: tuple[Text, ...] = ()
    comment: Literal["never", "findings"] = "findings"
    max_suggestions: int = Field(default=10, ge=0, le=10)
    fail_on: Literal["never", "note", "warning", "error"] = "never"
    seconds: float
    budget_minutes: float

    def counted(self) -> tuple[Finding, ...]:
        """Findings that count towards a threshold: those that the change introduces."""
        return tuple(f for f in self.findings if f.origin == "introduced")

    def fails(self, threshold: str | None = None) -> bool:
        """Whether an introduced finding lies at or above the threshold, the review's own when none is given."""
        limit = threshold or self.fail_on
        return limit != "never" and any(f.level.rank >= Level(limit).rank for f in self.counted())

    def without(self, quiet: frozenset[str]) -> ReviewResult:
        """The result without findings whose rule or fingerprint is in `quiet`."""
        kept = tuple(f for f in self.findings if f.rule not in quiet and f.fingerprint not in quiet)
        hidden = self.hidden + len(self.findings) - len(kept)
        return self.model_copy(update={"findings": kept, "hidden": hidden})


def fingerprint(rule: str, path: str, kernel: str, code: str, ordinal: int = 1) -> str:
    """Names a finding across pushes: it does not change when lines move or formatting does."""
    parts = [rule, path, kernel, code, str(ordinal)]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
