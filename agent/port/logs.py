"""A failed build log the user already has: what it complains about, counted by key, as the first entries of round 0."""

from __future__ import annotations

import re
from collections import Counter

from agent.port.result import Applied
from sandbox.hip_diagnostics import abstracted

MAX_LOG_BYTES = 16 * 2**20
_ERROR = re.compile(
    r"^(?P<file>[^\s:][^:\n]*?)(?:\((?P<l2>\d+)\)|:(?P<line>\d+)(?::\d+)?): (?:fatal )?error\s*:? (?P<text>.+)$", re.M
)


def hints_of_log(log: str) -> list[Applied]:
    """One record per kind of error in the log, with how often and where it appeared first."""
    seen: Counter[str] = Counter()
    first: dict[str, tuple[str, str]] = {}
    for m in _ERROR.finditer(log[:MAX_LOG_BYTES]):
        key = abstracted(m["text"].strip())
        seen[key] += 1
        first.setdefault(key, (m["file"], m["line"] or m["l2"] or "0"))
    return [
        Applied(first[key][0], "log", f"{count} times: {key} (first at line {first[key][1]})")
        for key, count in seen.most_common(50)
    ]
