"""Program-counter samples into shares: which source lines waves stand on, and what they wait for."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from sandbox.profiler.dispatches import PcSample

_WAITED = (
    (re.compile(r"\bvmcnt\("), "global memory"),
    (re.compile(r"\blgkmcnt\("), "LDS or scalar memory"),
    (re.compile(r"\bexpcnt\("), "export"),
    (re.compile(r"^s_barrier"), "barrier"),
    (re.compile(r"^s_sleep"), "sleep"),
)


@dataclass(frozen=True, slots=True)
class LineStalls:
    """Samples on one source line (or, without debug information, one instruction). Shares are 0 to 1."""

    place: str
    samples: int
    share: float
    """Of all samples of the kernel."""
    issued_share: float | None
    """Of the line's samples, those where the wave issued; None for host-trap sampling, which cannot tell."""
    reasons: dict[str, float]
    """Stall reason to its share of the line's stalled samples, largest first."""


@dataclass(frozen=True, slots=True)
class StallProfile:
    """Samples of one kernel or program. `reasons` are shares of the samples that did not issue."""

    samples: int
    issued: int | None
    reasons: dict[str, float]
    lines: tuple[LineStalls, ...]


def waits_for(sample: PcSample) -> str | None:
    """What a sample's wave waits for, in words; None when it issued or nothing tells.

    A `WAITCNT` stall says only that a counter is awaited: which memory that is stands in the instruction.
    """
    if sample.issued:
        return None
    if sample.stall_reason not in (None, "WAITCNT"):
        return str(sample.stall_reason).replace("_", " ").lower()
    for pattern, words in _WAITED:
        if pattern.search(sample.instruction):
            return words
    return "memory counter" if sample.stall_reason == "WAITCNT" else None


def stall_profile(samples: Iterable[PcSample]) -> StallProfile:
    """Shares over any samples; with none, an empty profile (an interval too long for the kernel gives no sample)."""
    held = list(samples)
    by_place: dict[str, list[PcSample]] = {}
    for sample in held:
        by_place.setdefault(sample.source or sample.instruction or "unknown", []).append(sample)
    lines = [
        LineStalls(place, len(group), len(group) / len(held), _issued_share(group), _shares(group))
        for place, group in by_place.items()
    ]
    known = [s for s in held if s.issued is not None]
    return StallProfile(
        len(held),
        sum(bool(s.issued) for s in known) if known else None,
        _shares(held),
        tuple(sorted(lines, key=lambda line: (-line.samples, line.place))),
    )


def _issued_share(samples: list[PcSample]) -> float | None:
    known = [s for s in samples if s.issued is not None]
    return sum(bool(s.issued) for s in known) / len(known) if known else None


def _shares(samples: list[PcSample]) -> dict[str, float]:
    counts = Counter(words for s in samples if (words := waits_for(s)) is not None)
    total = counts.total()
    return {words: n / total for words, n in counts.most_common()}
