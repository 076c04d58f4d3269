"""In-place style: the ported lines beside the original ones, each under the compiler they are for."""

from __future__ import annotations

import difflib
import re

GUARD = "#if defined(__HIP_PLATFORM_AMD__)"


def guarded(before: str, after: str) -> str:
    """A text that is `after` for HIP and `before` for CUDA. Unchanged lines stay as they are.

    A changed block grows until it holds whole logical lines (continuations) and whole conditionals.
    """
    old, new = before.splitlines(), after.splitlines()
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    blocks = [(i1, i2, j1, j2) for tag, i1, i2, j1, j2 in matcher.get_opcodes() if tag != "equal"]
    pieces: list[str] = []
    at = 0
    for i1, i2, j1, j2 in _grown(blocks, old, new):
        pieces += old[at:i1]
        pieces += [GUARD, *new[j1:j2]]
        pieces += ["#else", *old[i1:i2]] if i2 > i1 else []
        pieces.append("#endif")
        at = i2
    pieces += old[at:]
    return "\n".join(pieces) + ("\n" if before.endswith("\n") else "")


def _grown(blocks: list[tuple[int, int, int, int]], old: list[str], new: list[str]) -> list[tuple[int, int, int, int]]:
    """Blocks widened over matching lines until each is complete by itself, then merged where they touch."""
    result: list[tuple[int, int, int, int]] = []
    for i1, i2, j1, j2 in blocks:
        while (
            i1 > 0
            and j1 > 0
            and (_continues(old[i1 - 1]) or _unbalanced(old[i1:i2]) < 0 or _unbalanced(new[j1:j2]) < 0)
        ):
            i1, j1 = i1 - 1, j1 - 1
        while (
            i2 < len(old)
            and j2 < len(new)
            and ((i2 > i1 and _continues(old[i2 - 1])) or _unbalanced(old[i1:i2]) > 0 or _unbalanced(new[j1:j2]) > 0)
        ):
            i2, j2 = i2 + 1, j2 + 1
        if result and i1 <= result[-1][1]:
            p1, p2, q1, q2 = result.pop()
            i1, j1, i2, j2 = min(p1, i1), min(q1, j1), max(p2, i2), max(q2, j2)
        result.append((i1, i2, j1, j2))
    return result


def _continues(line: str) -> bool:
    return line.rstrip().endswith("\\")


def _unbalanced(lines: list[str]) -> int:
    """Conditionals opened and not closed in these lines (negative: closed and not opened); else arms count as both."""
    depth = low = 0
    for line in lines:
        m = re.match(r"\s*#\s*(if|ifdef|ifndef|endif|else|elif)\b", line)
        if m is None:
            continue
        if m.group(1) == "endif":
            depth -= 1
        elif m.group(1) in ("else", "elif"):
            low = min(low, depth - 1)
        else:
            depth += 1
        low = min(low, depth)
    return low if low < 0 else depth
