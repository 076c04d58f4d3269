"""What was learned from earlier jobs, gated by evidence: wins that held twice, and ideas that did not help.

A win is stored only after it was judged again with other inputs. It belongs to the toolchain it was shown with; once
that changes it is not offered any more until `wavesmith memory check` has judged it anew. Failures are kept as negative
evidence. The database is the user's own file, and holds the kernels of the wins so that they can be judged again; what
a model is told of them is the idea and its effect, never their code.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from agent.knowledge import Item
from agent.versions import toolchain_versions
from sandbox.errors import InputError, WavesmithError
from sandbox.kernel import Kernel, parse_kernel

VARIABLE = "WAVESMITH_MEMORY"
SCHEMA_VERSION = 1
MAX_FAILURES = 200
_TOOLS = ("triton", "pytorch-triton-rocm", "torch")
_SCHEMA = """
CREATE TABLE IF NOT EXISTS win (
    id INTEGER PRIMARY KEY, digest TEXT UNIQUE NOT NULL, arch TEXT NOT NULL, bottleneck TEXT NOT NULL,
    title TEXT NOT NULL, why TEXT NOT NULL, effect TEXT NOT NULL, level TEXT NOT NULL, toolchain TEXT NOT NULL,
    confirmed_at REAL NOT NULL, program TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS failure (
    id INTEGER PRIMARY KEY, arch TEXT NOT NULL, bottleneck TEXT NOT NULL, title TEXT NOT NULL, reason TEXT NOT NULL,
    count INTEGER NOT NULL DEFAULT 1, at REAL NOT NULL, UNIQUE (arch, bottleneck, title, reason)
);
"""


@dataclass(frozen=True, slots=True)
class Program:
    """Two versions of one file and what is needed to run them."""

    before: Kernel
    after: str
    harness: Kernel | None = None

    def to_json(self) -> str:
        def spell(kernel: Kernel) -> dict[str, object]:
            return {"filename": kernel.filename, "source": kernel.source, "companions": dict(kernel.companions)}

        harness = spell(self.harness) if self.harness is not None else None
        return json.dumps({"before": spell(self.before), "after": self.after, "harness": harness})

    @classmethod
    def from_json(cls, text: str) -> Program:
        data = json.loads(text)

        def read(value: Mapping[str, object]) -> Kernel:
            companions = value["companions"]
            assert isinstance(companions, dict)
            return parse_kernel(str(value["source"]).encode(), str(value["filename"]), companions)

        harness = read(data["harness"]) if data["harness"] is not None else None
        return cls(read(data["before"]), str(data["after"]), harness)


@dataclass(frozen=True, slots=True)
class Win:
    """A change that was shown right and better twice, on different inputs."""

    arch: str
    bottleneck: str
    title: str
    why: str
    effect: str
    """What may be said of it, at the level it was shown."""
    level: str
    program: Program
    toolchain: str = ""
    id: int | None = None

    @property
    def digest(self) -> str:
        text = f"{self.arch}\0{self.program.before.digest}\0{self.program.after}"
        return hashlib.sha256(text.encode()).hexdigest()


def toolchain() -> str:
    """The versions that a win depends on."""
    versions = toolchain_versions()
    return ", ".join(f"{name} {versions[name]}" for name in _TOOLS if name in versions)


def memory_path(environ: Mapping[str, str] = os.environ) -> Path | None:
    """`$WAVESMITH_MEMORY`, else `wavesmith/memory.db` in the user's data folder; None when the variable is `off`."""
    own = environ.get(VARIABLE, "")
    if own.lower() == "off":
        return None
    if own:
        return Path(own)
    base = environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(base) / "wavesmith" / "memory.db"


class Memory:
    """One database. Raises `InputError` when the file cannot be used, `WavesmithError` for one of another version."""

    def __init__(self, path: Path) -> None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(path, timeout=30.0, isolation_level=None)
            version = self._connection.execute("PRAGMA user_version").fetchone()[0]
            if version not in (0, SCHEMA_VERSION):
                raise WavesmithError(f"the memory has schema version {version}; this release reads {SCHEMA_VERSION}.")
            self._connection.executescript(_SCHEMA)
            self._connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        except (OSError, sqlite3.DatabaseError) as e:
            raise InputError(f"it cannot be used as memory ({e}).", file=path, remedy=f"Set {VARIABLE}.") from None

    def close(self) -> None:
        self._connection.close()

    @contextmanager
    def _write(self) -> Iterator[sqlite3.Connection]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield self._connection
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")

    def store_win(self, win: Win, with_tools: str | None = None) -> None:
        """Store a win that was just confirmed; a known one is confirmed again."""
        values = (win.digest, win.arch, win.bottleneck, win.title, win.why, win.effect, win.level)
        with self._write() as connection:
            connection.execute("DELETE FROM win WHERE digest = ?", (win.digest,))
            connection.execute(
                "INSERT INTO win (digest, arch, bottleneck, title, why, effect, level, toolchain, confirmed_at,"
                " program) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (*values, with_tools or toolchain(), time.time(), win.program.to_json()),
            )

    def drop_win(self, win: Win, reason: str) -> None:
        """A win that no longer holds becomes negative evidence."""
        with self._write() as connection:
            connection.execute("DELETE FROM win WHERE digest = ?", (win.digest,))
        self.store_failures(win.arch, [(win.bottleneck, win.title, reason)])

    def store_failures(self, arch: str, failures: Sequence[tuple[str, str, str]]) -> None:
        """(bottleneck, title, reason) of ideas that did not help; only the latest are kept."""
        with self._write() as connection:
            connection.executemany(
                "INSERT INTO failure (arch, bottleneck, title, reason, at) VALUES (?, ?, ?, ?, ?)"
                " ON CONFLICT DO UPDATE SET count = count + 1, at = excluded.at",
                [(arch, bottleneck, title[:120], reason[:200], time.time()) for bottleneck, title, reason in failures],
            )
            connection.execute(
                "DELETE FROM failure WHERE id NOT IN (SELECT id FROM failure ORDER BY at DESC, id DESC LIMIT ?)",
                (MAX_FAILURES,),
            )

    def wins(self, *, stale: bool | None = None) -> list[Win]:
        """All wins, oldest first; only those of other toolchains than the present one, or only the others."""
        rows = self._connection.execute(
            "SELECT arch, bottleneck, title, why, effect, level, program, toolchain, id FROM win ORDER BY id"
        )
        found = [
            Win(arch, bottleneck, title, why, effect, level, Program.from_json(program), tools, row_id)
            for arch, bottleneck, title, why, effect, level, program, tools, row_id in rows
        ]
        return [w for w in found if stale is None or (w.toolchain != toolchain()) is stale]

    def failures(self) -> list[tuple[str, str, str, str, int]]:
        """(arch, bottleneck, title, reason, how often), latest first."""
        rows = self._connection.execute(
            "SELECT arch, bottleneck, title, reason, count FROM failure ORDER BY at DESC, id DESC"
        )
        return [tuple(row) for row in rows]

    def items(self, arch: str) -> Iterator[Item]:
        """What a model may be told for `arch`: wins that hold with the present toolchain, and failures."""
        for win in self.wins(stale=False):
            if win.arch == arch:
                text = f"Helped against {win.bottleneck}: {win.why} Shown twice ({win.level}): {win.effect}"
                yield Item("win", f"Past win: {win.title}", text, "memory of this machine", "the user's own")
        for failed_arch, bottleneck, title, reason, count in self.failures():
            if failed_arch == arch:
                text = f"Did not help against {bottleneck} ({count} times): {reason}"
                yield Item("failure", f"Past failure: {title}", text, "memory of this machine", "the user's own")
