"""A unified diff as rows for a side-by-side table."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape

MAX_ROWS = 400
MAX_CHARACTERS = 70_000
"""Of a page, markup included."""
_ROW_CHARACTERS = 110
"""Markup of one row."""
_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")


@dataclass(frozen=True, slots=True)
class DiffRow:
    """One row: a line on each side, either of which may be missing, or a heading (`gap`)."""

    left_line: int | None = None
    left: str = ""
    right_line: int | None = None
    right: str = ""
    removed: bool = False
    added: bool = False
    gap: str = ""


@dataclass(frozen=True, slots=True)
class Shown:
    """The rows that a page shows, and how many it leaves out."""

    rows: list[DiffRow]
    left_out: int = 0


def side_by_side(diff: str) -> list[DiffRow]:
    """Rows of every hunk; a run of removed lines stands beside the run of added lines that follows it."""
    return list(_rows(diff))


def shown_part(diff: str) -> Shown:
    """At most `MAX_ROWS` rows, fewer where lines are long, so that a page stays small whatever the patch is."""
    every = side_by_side(diff)
    used = 0
    for n, row in enumerate(every):
        used += _ROW_CHARACTERS + len(escape(row.left)) + len(escape(row.right)) + len(escape(row.gap))
        if n >= MAX_ROWS or used > MAX_CHARACTERS:
            return Shown(every[:n], len(every) - n)
    return Shown(every)


def _rows(diff: str) -> Iterator[DiffRow]:
    left = right = 0
    inside = False
    removed: list[str] = []
    added: list[str] = []
    for line in [*diff.split("\n"), ""]:
        hunk = _HUNK.match(line)
        if inside and line.startswith("-"):
            removed.append(line[1:])
            continue
        if inside and line.startswith("+"):
            added.append(line[1:])
            continue
        if line.startswith("\\"):
            continue
        yield from _pairs(removed, added, left, right)
        left, right = left + len(removed), right + len(added)
        removed, added = [], []
        if hunk:
            inside, left, right = True, int(hunk[1]), int(hunk[2])
            yield DiffRow(gap=line)
        elif inside and line.startswith(" "):
            yield DiffRow(left, line[1:], right, line[1:])
            left, right = left + 1, right + 1
        elif line.startswith("diff --git"):
            inside = False
            yield DiffRow(gap=line.removeprefix("diff --git "))


def _pairs(removed: list[str], added: list[str], left: int, right: int) -> Iterator[DiffRow]:
    for i in range(max(len(removed), len(added))):
        has_left, has_right = i < len(removed), i < len(added)
        yield DiffRow(
            left + i if has_left else None,
            removed[i] if has_left else "",
            right + i if has_right else None,
            added[i] if has_right else "",
            has_left,
            has_right,
        )
