"""Hit rates of skills, counted from reports."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from agent.candidate import Fate
from agent.report import REPORT_NAME, AttemptPart, load_report
from sandbox.errors import InputError

_Z95 = 1.959964


@dataclass(frozen=True, slots=True)
class HitRate:
    """How far a skill's attempts came: tried, compiled, shown equivalent at `interpreted` or better, accepted as an
    improvement, kept in the end."""

    skill: str
    tried: int
    compiled: int
    equivalent: int
    effective: int
    kept: int

    @property
    def kept_interval(self) -> tuple[float, float]:
        return wilson(self.kept, self.tried)

    def to_json(self) -> dict[str, Any]:
        low, high = self.kept_interval
        return {**asdict(self), "kept_low": round(low, 4), "kept_high": round(high, 4)}


def wilson(hits: int, n: int) -> tuple[float, float]:
    """Wilson score interval at 95% of `hits` out of `n` (E. B. Wilson, 1927); (0, 1) for n = 0."""
    if n == 0:
        return 0.0, 1.0
    p, z2 = hits / n, _Z95 * _Z95
    centre = (p + z2 / (2 * n)) / (1 + z2 / n)
    half = _Z95 * math.sqrt(p * (1 - p) / n + z2 / (4 * n * n)) / (1 + z2 / n)
    return max(0.0, centre - half), min(1.0, centre + half)


def hit_rates(folders: Iterable[Path]) -> list[HitRate]:
    """Rates over every `report.json` below `folders`, most tried first; raises `InputError` when there is none."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    seen = 0
    for folder in folders:
        for path in sorted(folder.rglob(REPORT_NAME)):
            try:
                report = load_report(path.read_text(encoding="utf-8"))
            except (ValidationError, UnicodeDecodeError):
                raise InputError("this is no report of this version.", file=path, remedy="Remove it.") from None
            seen += 1
            for attempt in report.attempts:
                _count(counts[attempt.origin], attempt)
    if not seen:
        raise InputError("no reports were found.", remedy="Run `wavesmith optimize` first, or name its --out folders.")
    rates = [
        HitRate(s, c["tried"], c["compiled"], c["equivalent"], c["effective"], c["kept"]) for s, c in counts.items()
    ]
    return sorted(rates, key=lambda r: (-r.tried, r.skill))


NOT_BUILT = ("CompileFailed",)
EQUIVALENT = ("Accepted", "NoGain")
UNVALIDATED = ("none", "compiled")


def _count(counter: Counter[str], attempt: AttemptPart) -> None:
    counter["tried"] += 1
    counter["compiled"] += attempt.verdict is not None and attempt.verdict not in NOT_BUILT
    counter["equivalent"] += attempt.verdict in EQUIVALENT and attempt.correctness not in UNVALIDATED
    counter["effective"] += attempt.verdict == "Accepted"
    counter["kept"] += attempt.fate in (Fate.KEPT, Fate.STEP)
