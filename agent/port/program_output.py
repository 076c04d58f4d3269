"""What a program printed and returned, compared: text by characters, numbers with a point by tolerance."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from agent.port.reference_run import OriginalRun
from sandbox.host_program import ProgramRun

_NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|nan|inf)(?![\w.])")
RELATIVE = 2e-5
"""Of the number, and of the root mean square of the numbers of its line: sums round by their order."""


def unstable(runs: Sequence[OriginalRun]) -> str | None:
    """Why the original's runs, which differ in the order of threads and in fresh memory, leave nothing to compare."""
    first = runs[0]
    if any(r.code != first.code for r in runs):
        return "the original ends in another way when its threads run in another order"
    if any(len(r.stdout.splitlines()) != len(first.stdout.splitlines()) for r in runs):
        return "the original prints another number of lines when its threads run in another order"
    if not any(line.strip() for line in _stable(runs).values()):
        return "it prints nothing that could be compared"
    return None


def _stable(runs: Sequence[OriginalRun]) -> dict[int, str]:
    """The lines that come out the same in every run of the original, by number."""
    rows = zip(*(r.stdout.splitlines() for r in runs), strict=True)
    return {n: row[0] for n, row in enumerate(rows) if all(same_line(row[0], other) for other in row[1:])}


def difference(runs: Sequence[OriginalRun], got: ProgramRun) -> str | None:
    """The first way in which the port's run differs from what all runs of the original agree on, or None."""
    expected = runs[0]
    if got.code != expected.code:
        said = got.stderr.strip().splitlines()[-1:]
        return f"it ends with status {got.code}, the original with {expected.code}" + (f" ({said[0]})" if said else "")
    lines = got.stdout.splitlines()
    count = len(expected.stdout.splitlines())
    if len(lines) != count:
        return f"it prints {len(lines)} lines, the original {count}"
    for number, line in _stable(runs).items():
        if not same_line(line, lines[number]):
            return f"line {number + 1} of its output is {_clip(lines[number])}, the original's is {_clip(line)}"
    return None


def _clip(text: str) -> str:
    return repr(text if len(text) <= 80 else f"{text[:77]}...")


def same_line(a: str, b: str) -> bool:
    """Whether two lines say the same: everything but numbers by characters, whole numbers exactly."""
    if a == b:
        return True
    if _NUMBER.sub("#", a) != _NUMBER.sub("#", b):
        return False
    pairs = list(zip(_NUMBER.findall(a), _NUMBER.findall(b), strict=True))
    values = [float(x) for x, y in pairs if not _whole(x, y)]
    finite = [v for v in values if math.isfinite(v)]
    scale = min(1.0, math.sqrt(sum(v * v for v in finite) / len(finite))) if finite else 0.0
    return all(x == y if _whole(x, y) else _near(float(x), float(y), scale) for x, y in pairs)


def _whole(x: str, y: str) -> bool:
    return not re.search(r"[.en]", x + y, re.I)


def _near(x: float, y: float, scale: float) -> bool:
    if not (math.isfinite(x) and math.isfinite(y)):
        return x == y or (math.isnan(x) and math.isnan(y))
    return abs(x - y) <= RELATIVE * (max(abs(x), abs(y)) + scale)
