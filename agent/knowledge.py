"""What a model can look up: the skills, the facts of the target, our own guide pages and past wins, found by words.

A full-text index (SQLite FTS5) that is built in memory for each job. Every item names its source and its licence.
Nothing was copied from elsewhere: the guides are in `agent/guides`, in our own words.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import resources

from sandbox.errors import ToolMissing
from sandbox.target import Target
from skills.skill import Library

LICENCE = "Apache-2.0"
_WORD = re.compile(r"[A-Za-z0-9]+")
_COMMON = frozenset(
    ["a", "an", "and", "are", "as", "at", "be", "by", "for", "from", "in", "is", "it", "of", "on", "the"]
)
_FACTS = (
    "wavefront_size", "max_threads_per_workgroup", "lds_bytes_per_workgroup", "lds_bytes_per_cu", "lds_banks",
    "simds_per_cu", "max_waves_per_simd", "vgprs_per_simd_lane", "max_vgprs_per_wave", "max_workgroups_per_cu",
    "matrix_dtypes", "fp8_format", "dot_input_precisions", "mfma_shapes",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Item:
    """One thing to know. `kind` is skill, target, guide, win or failure."""

    kind: str
    title: str
    text: str
    source: str
    licence: str = LICENCE

    def __str__(self) -> str:
        return f"{self.title}: {' '.join(self.text.split())} [{self.source}; {self.licence}]"


class Knowledge:
    """An index over items. Raises `ToolMissing` where this Python's SQLite has no full-text search."""

    def __init__(self, items: Iterable[Item]) -> None:
        self._connection = sqlite3.connect(":memory:", check_same_thread=False)
        try:
            self._connection.execute(
                "CREATE VIRTUAL TABLE item USING fts5(title, text, kind UNINDEXED, source UNINDEXED, licence UNINDEXED,"
                " tokenize = 'porter unicode61')"
            )
        except sqlite3.OperationalError as e:
            raise ToolMissing(f"this Python's SQLite has no full-text search ({e}), which a model needs.") from None
        rows = [(i.title, i.text, i.kind, i.source, i.licence) for i in items]
        self._connection.executemany("INSERT INTO item VALUES (?, ?, ?, ?, ?)", rows)

    def __len__(self) -> int:
        return int(self._connection.execute("SELECT count(*) FROM item").fetchone()[0])

    def search(self, query: str, limit: int = 6) -> list[Item]:
        """The items that match most of the query's words best (bm25; a word in the title counts three times)."""
        words = dict.fromkeys(w.lower() for w in _WORD.findall(query.replace("_", " ")) if w.lower() not in _COMMON)
        if not words:
            return []
        asked = " OR ".join(f'"{w}"' for w in list(words)[:40])
        rows = self._connection.execute(
            "SELECT kind, title, text, source, licence FROM item WHERE item MATCH ?"
            " ORDER BY bm25(item, 3.0, 1.0), rowid LIMIT ?",
            (asked, limit),
        )
        return [Item(*row) for row in rows]

    def lines(self, query: str) -> list[str]:
        """As `search`, one line of text each, for a prompt or a tool's answer."""
        return [str(item) for item in self.search(query)]


def own_items(target: Target, library: Library) -> Iterator[Item]:
    """Skills that apply to `target`, its facts, and the guide pages."""
    for skill in library:
        data = skill.data
        if target.arch in data.targets:
            moves = ", ".join(f"{e.metric} {e.direction}" for e in data.expects)
            text = f"{data.why} Helps with: {', '.join(data.bottlenecks) or 'building'}. Must move: {moves}."
            yield Item("skill", f"{data.id}: {data.title}", text, f"skill {data.id}")
    yield from _target_items(target)
    yield from _guide_items()


def _target_items(target: Target) -> Iterator[Item]:
    for name in _FACTS:
        value = getattr(target, name)
        shown = (
            ", ".join(map(str, sorted(value, key=str))) if isinstance(value, tuple | list | frozenset | set) else value
        )
        yield Item("target", f"{target.arch} {name.replace('_', ' ')}", f"{name} = {shown}", f"target {target.arch}")
    board = target.board
    text = f"{board.name} has {board.compute_units} compute units on {board.xcds} dies (XCDs) with an L2 each."
    yield Item("target", f"{board.name} compute units and dies", text, f"target {target.arch}")


def _guide_items() -> Iterator[Item]:
    folder = resources.files("agent") / "guides"
    for page in sorted(folder.iterdir(), key=lambda p: p.name):
        if page.name.endswith(".md"):
            head, *sections = re.split(r"^## ", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
            for section in sections:
                title, _, text = section.partition("\n")
                yield Item("guide", f"{head.strip('# ').strip()}, {title.strip()}", text.strip(), f"guide {page.name}")
