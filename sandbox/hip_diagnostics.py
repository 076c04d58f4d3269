"""What clang says about a translation unit, as data: one `Diagnostic` per error or warning, notes attached."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any, Literal
from urllib.parse import unquote, urlsplit

Severity = Literal["error", "warning"]


@dataclass(frozen=True, slots=True)
class Note:
    message: str
    file: str
    line: int


@dataclass(frozen=True, slots=True)
class DiagnosticKey:
    """What a rule is looked up by: the message with quoted names blanked, the name, the header concerned."""

    message: str
    identifier: str
    header: str

    @property
    def text(self) -> str:
        return f"{self.message} | {self.identifier} | {self.header}"


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One complaint. `file` is relative to the compiled tree where it lies in it; `line` and `column` are 1-based."""

    severity: Severity
    message: str
    file: str
    line: int
    column: int
    passes: tuple[str, ...] = ()
    """Which of gfx942, gfx950, host reported it."""
    notes: tuple[Note, ...] = ()

    @property
    def key(self) -> DiagnosticKey:
        header = ""
        missing = re.match(r"'([^']+)' file not found", self.message)
        if missing:
            return DiagnosticKey("'_' file not found", "", missing.group(1))
        if self.file.startswith("/"):
            header = PurePath(self.file).name
        names = re.findall(r"'([^']*)'", self.message)
        return DiagnosticKey(abstracted(self.message), names[0] if names else "", header)

    @property
    def symbol(self) -> str:
        """The bare identifier concerned (`__ldcs`, `cub::Max` -> `Max`), empty when the message names none."""
        words = re.findall(r"[A-Za-z_]\w*", re.sub(r"<[^<>]*>", "", self.key.identifier))
        return words[-1] if words else ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}: {self.severity}: {self.message}"


def abstracted(message: str) -> str:
    """The message with quoted names and numbers blanked and clang's spelling suggestion removed."""
    message = re.sub(r"; did you mean .*", "", message)
    message = re.sub(r"'[^']*'( \(aka '[^']*'\))?", "'_'", message)
    return re.sub(r"\b\d+\b", "N", message)


def parse_diagnostics(stderr: str, root: str, pass_name: str) -> list[Diagnostic]:
    """Diagnostics of one run of clang with `-fdiagnostics-format=sarif`; file names become relative to `root`.

    The back end (LDS limit, register constraints) and the linker write plain lines beside the SARIF document: read too.
    """
    found: list[Diagnostic] = []
    plain: list[str] = []
    for line in stderr.splitlines():
        if line.startswith('{"$schema"'):
            found += _from_sarif(json.loads(line), root, pass_name)
        else:
            plain.append(line)
    found += _from_text(plain, root, pass_name)
    return list(_distinct(found))


def merge_passes(groups: Iterable[Iterable[Diagnostic]]) -> list[Diagnostic]:
    """One list over the passes, the same complaint of several passes once, in source order."""
    merged: dict[tuple[str, str, int, int], Diagnostic] = {}
    for group in groups:
        for d in group:
            place = (d.message, d.file, d.line, d.column)
            old = merged.get(place)
            merged[place] = d if old is None else replace(old, passes=tuple(dict.fromkeys(old.passes + d.passes)))
    return sorted(merged.values(), key=lambda d: (d.severity, d.file, d.line, d.column))


def _from_sarif(document: dict[str, Any], root: str, pass_name: str) -> Iterator[Diagnostic]:
    run = document["runs"][0]
    paths = {a["location"]["index"]: _relative(a["location"]["uri"], root) for a in run.get("artifacts", [])}
    current: Diagnostic | None = None
    for result in run.get("results", []):
        file, line, column = "", 0, 0
        for location in result.get("locations", [])[:1]:
            physical = location["physicalLocation"]
            file = paths.get(physical["artifactLocation"].get("index"), "")
            line, column = physical["region"].get("startLine", 0), physical["region"].get("startColumn", 0)
            for place in result["locations"][1:2]:  # the caret; the first one is the highlighted range
                region = place["physicalLocation"]["region"]
                line, column = region.get("startLine", line), region.get("startColumn", column)
        text = result["message"]["text"]
        if result["level"] == "note":
            if current is not None:
                current = replace(current, notes=(*current.notes, Note(text, file, line)))
            continue
        if current is not None:
            yield current
        severity: Severity = "error" if result["level"] == "error" else "warning"
        current = Diagnostic(severity, text, file, line, column, (pass_name,))
    if current is not None:
        yield current


_PLAIN = re.compile(
    r"^(?:(?P<file>[^:\s][^:]*):(?P<line>\d+):(?P<column>\d+): )?(?:fatal )?(?P<level>error|warning): (?P<text>.+)$"
)
_LINKER = re.compile(r"^(?:ld\.lld|lld|clang[\w+.-]*): error: (?P<text>.+)$")
_IGNORED = ("linker command failed", "diagnostic formatting in SARIF mode", "unable to execute command")


def _from_text(lines: Iterable[str], root: str, pass_name: str) -> Iterator[Diagnostic]:
    for line in lines:
        if any(words in line for words in _IGNORED):
            continue
        if m := _PLAIN.match(line):
            severity: Severity = "error" if m["level"] == "error" else "warning"
            file = _relative(m["file"], root) if m["file"] else ""
            yield Diagnostic(severity, m["text"], file, int(m["line"] or 0), int(m["column"] or 0), (pass_name,))
        elif m := _LINKER.match(line):
            yield Diagnostic("error", m["text"], "", 0, 0, (pass_name,))


def _distinct(found: Iterable[Diagnostic]) -> Iterator[Diagnostic]:
    seen: set[tuple[str, str, int, int]] = set()
    for d in found:
        place = (d.message, d.file, d.line, d.column)
        if place not in seen:
            seen.add(place)
            yield d


def _relative(uri: str, root: str) -> str:
    path = unquote(urlsplit(uri).path) if uri.startswith("file:") else uri
    prefix = root.rstrip("/") + "/"
    return path.removeprefix(prefix).removeprefix("./")
