"""The named checks of the validator: which ran, which failed, in what order a failure decides."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sandbox.verdict import Check, Incorrect

CHECKS = (
    # The static scan, special rules before general ones; see sandbox.cheats.
    "harness-edit", "monkeypatch", "runtime-install", "graph-capture", "concurrency", "exit-hook", "tensor-subclass",
    "identity-cache", "input-probe", "rng", "exception-fallback", "inherited-reference", "fake-launch",
    "environment-branch", "timing", "dynamic-code", "system-access", "introspection", "stale-memory", "hidden-state",
    "lower-precision", "hard-coded-data", "library-call", "kernel-not-launched", "foreign-import",
    # What the candidate's process is.
    "result-channel", "source-identity", "foreign-kernel",
    # What each call did.
    "output-count", "output-shape", "output-dtype", "output-stride", "input-mutation", "out-of-bounds",
    "unwritten-output", "nan-pattern", "inf-pattern", "exact", "tolerance", "precision",
    # What calls did together.
    "held-out-arguments", "held-out-shapes", "autotune-config", "data-race", "determinism", "call-independence",
    "unproven-promise", "uninitialised-memory",
    # Timing.
    "roofline", "timing-plausible",
)  # fmt: skip
"""Every check by its stable name, in the order in which failures on the same kind of inputs are named."""


@dataclass(frozen=True, slots=True)
class Failure:
    """One failed check. `details` are numbers for the report."""

    check: str
    message: str
    details: Mapping[str, Any] = field(default_factory=dict)
    rank: int = 0
    """0 on the recorded inputs or on none, 1 on redrawn ones, 2 on inputs further away."""


@dataclass(slots=True)
class Gate:
    """Collects what passed and failed. `disabled` exists for tests alone: a disabled check cannot fail."""

    disabled: frozenset[str] = frozenset()
    failures: list[Failure] = field(default_factory=list)
    passed: dict[str, str] = field(default_factory=dict)

    def fail(self, check: str, message: str, details: Mapping[str, Any] | None = None, rank: int = 0) -> None:
        if check not in CHECKS:
            raise ValueError(f"{check} is no named check")
        if check not in self.disabled:
            self.failures.append(Failure(check, message, details or {}, rank))

    def ran(self, names: Iterable[str], detail: str = "") -> None:
        """These checks were made; they count as passed unless they failed."""
        for name in names:
            self.passed.setdefault(name, detail)

    def first(self) -> Incorrect | None:
        """The failure that decides: on the plainest inputs, then by order of `CHECKS`, then as found."""
        if not self.failures:
            return None
        worst = min(self.failures, key=lambda f: (f.rank, CHECKS.index(f.check)))
        return Incorrect(worst.check, worst.message, worst.details)

    def checks(self) -> tuple[Check, ...]:
        """Every check that was made, failed ones with their first message."""
        failed: dict[str, str] = {}
        for failure in self.failures:
            failed.setdefault(failure.check, failure.message)
        names = [n for n in CHECKS if n in failed or n in self.passed]
        return tuple(Check(n, n not in failed, failed.get(n, self.passed.get(n, ""))) for n in names)
