"""Edits nobody may make, whoever proposes them: bodies deleted, conditions widened to skip code, tests touched."""

from __future__ import annotations

import re

from sandbox.hip_guards import live_text
from sandbox.hip_source import HipSource


def refuse_edit(before: str, after: str, path: str) -> str | None:
    """Why an edit of a whole file is refused, None when it may be tried."""
    if re.search(r"(^|/)tests?(/|_)|_test\.|test_[^/]*$", path):
        return "it changes a test"
    old, new = HipSource(before), HipSource(after)
    missing = {k.name for k in old.kernels} - {k.name for k in new.kernels}
    if missing:
        return f"the kernel {sorted(missing)[0]} is gone"
    bodies = {k.name: _weight(new, k.body.start, k.body.end) for k in new.kernels}
    for kernel in old.kernels:
        weight = _weight(old, kernel.body.start, kernel.body.end)
        if bodies.get(kernel.name, 0) < weight // 2:
            return f"most of the body of {kernel.name} is gone"
    if len(new.code) < len(old.code) * 0.7:
        return "a third of the file is gone"
    if _live_weight(new) < _live_weight(old) * 0.8:
        return "code is skipped by a wider condition"
    if len(re.findall(r"\b(?:asm|__asm__)\b", new.masked)) > len(re.findall(r"\b(?:asm|__asm__)\b", old.masked)):
        return "it adds assembly"
    return None


def _weight(source: HipSource, start: int, end: int) -> int:
    return sum(1 for t in source.code if start <= t.start < end)


def _live_weight(source: HipSource) -> int:
    return len(HipSource(live_text(source)).code)
