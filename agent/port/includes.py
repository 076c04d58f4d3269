"""Which files of a project a file includes, found as a compiler would find them, or by the end of their paths."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from os.path import commonpath
from pathlib import Path

INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]*(?P<open>[<\"])(?P<name>[^>\"\n]+)[>\"]", re.M)
STANDARD = re.compile(
    r"^(?:[a-z_]+|(?:c?(?:assert|complex|ctype|errno|fenv|float|inttypes|iso646|limits|locale|math|setjmp|signal|stdarg"
    r"|stdbool|stddef|stdint|stdio|stdlib|string|time|uchar|wchar|wctype))\.h|(?:sys|cub|thrust|cuda|torch|ATen|c10|pybind11)/.*"
    r"|(?:cuda|cublas|curand|cufft|cusparse|cusolver|nvtx|device_|vector_|cooperative_groups|mma|math_|driver_|nccl|unistd|omp)\w*\.h)$"
)
"""Names in angle brackets that are the system's, whatever files a project has."""
MAX_FOLLOWED = 500


@dataclass(frozen=True, slots=True)
class Include:
    """One include line; `line` is 1-based."""

    name: str
    quoted: bool
    line: int


def includes_of(text: str) -> Iterator[Include]:
    """Every include of a text in order, commented-out lines apart from block comments included."""
    for m in INCLUDE.finditer(text):
        yield Include(m["name"].strip(), m["open"] == '"', text.count("\n", 0, m.start()) + 1)


@dataclass(frozen=True)
class PathIndex:
    """The paths of a project by file name."""

    paths: frozenset[str]
    by_name: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, paths: Iterable[str]) -> PathIndex:
        by_name: dict[str, list[str]] = {}
        for path in sorted(paths):
            by_name.setdefault(path.rsplit("/", 1)[-1], []).append(path)
        return cls(frozenset(p for found in by_name.values() for p in found), {n: tuple(p) for n, p in by_name.items()})

    def find(self, include: Include, includer: str) -> str | None:
        """The project's file an include means: beside the includer, else the one whose path ends with the name and is
        nearest to the includer. None for the system's headers and for files the project lacks."""
        if include.quoted:
            beside = posixpath.normpath(posixpath.join(posixpath.dirname(includer), include.name))
            if beside in self.paths:
                return beside
        elif STANDARD.match(include.name):
            return None
        tail = re.sub(r"^(?:\.\.?/)+", "", include.name)
        ends = [p for p in self.by_name.get(tail.rsplit("/", 1)[-1], ()) if p == tail or p.endswith("/" + tail)]
        return max(ends, key=lambda p: (len(commonpath([p, includer])), -len(p)), default=None)


def closure(start: Iterable[str], index: PathIndex, read: Callable[[str], str | None]) -> dict[str, None]:
    """`start` and all that is reached from it, in the order of discovery. `read` gives None for what has no text."""
    found = dict.fromkeys(start)
    waiting = list(found)
    while waiting and len(found) < MAX_FOLLOWED:
        path = waiting.pop(0)
        text = read(path)
        for include in includes_of(text) if text is not None else ():
            target = index.find(include, path)
            if target is not None and target not in found:
                found[target] = None
                waiting.append(target)
    return found


def followed(file: Path, suffixes: tuple[str, ...], folders: Iterable[Path], max_bytes: int) -> list[Path]:
    """Files on disk that a single file reaches: quoted ones relative to the includer, all others in `folders`."""
    found = {file.resolve(): None}
    waiting = list(found)
    while waiting and len(found) < MAX_FOLLOWED:
        current = waiting.pop(0)
        try:
            text = current.read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        for include in includes_of(text):
            if include.name.startswith("/") or (not include.quoted and STANDARD.match(include.name)):
                continue
            for folder in [*([current.parent] if include.quoted else []), *folders]:
                path = (folder / include.name).resolve()
                if path.suffix in suffixes and path.is_file() and path.stat().st_size <= max_bytes:
                    if path not in found:
                        found[path] = None
                        waiting.append(path)
                    break
    return list(found)[1:]
