"""A failed build log the user already has, as a source of diagnostics and of the build's definitions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from agent.port.includes import Include, PathIndex
from agent.port.request import Project
from agent.port.result import Applied
from agent.port.rule_table import Answer, answer
from sandbox.hip_diagnostics import Diagnostic

MAX_LOG_CHARACTERS = 16 * 2**20
_ERROR = re.compile(
    r"^(?P<file>[^\s:(][^:\n(]*?)(?:\((?P<l2>\d+)\)|:(?P<line>\d+)(?::\d+)?): "
    r"(?:fatal )?error\s*(?:#[\w-]+)?\s*:? (?P<text>.+)$",
    re.M,
)
_SPELLINGS = (
    (r'^identifier "([^"]+)" is undefined', r"use of undeclared identifier '\1'"),
    (r"^'([^']+)' was not declared in this scope", r"use of undeclared identifier '\1'"),
    (r"^'([^']+)' does not name a type", r"unknown type name '\1'"),
    (r"^'([^']+)' is not a member of '(\w+)'", r"no member named '\1' in namespace '\2'"),
    (r'^namespace "(\w+)" has no member "([^"]+)"', r"no member named '\2' in namespace '\1'"),
    (r"^([^\s':]+): No such file or directory", r"'\1' file not found"),
    (r'^cannot open source file "([^"]+)"', r"'\1' file not found"),
    (r'^no instance of overloaded function "(?:\w+::)*(\w+)[^"]*" matches.*', r"no matching function for call to '\1'"),
)
"""nvcc's and gcc's words for what clang says in the table's words."""
_COMPILERS = re.compile(r"\b(?:nvcc|hipcc|amdclang\+\+|clang\+\+|g\+\+|c\+\+)\b")
_DEFINITION = re.compile(r"(?:^|\s)-D\s*([A-Za-z_]\w*(?:=[\w.+-]+)?)(?=\s|$)")
_NOT_TAKEN = re.compile(r"^(?:__HIP|__CUDA|USE_ROCM|TORCH_|HIP_|CUDA_HAS|PYBIND11_|_GLIBCXX|NDEBUG|__AMDGCN|HIPBLAS)")


@dataclass(frozen=True)
class BuildLog:
    """What a log says: errors in clang's words with the file they name, and definitions of the compiler's command."""

    errors: tuple[Diagnostic, ...]
    definitions: tuple[str, ...]


def read_log(log: str) -> BuildLog:
    """Errors of clang, hipcc, nvcc or gcc, in order; colours and curly quotes are taken off."""
    text = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", log[:MAX_LOG_CHARACTERS])
    text = text.replace("\u2018", "'").replace("\u2019", "'").replace("\r", "")
    errors = [
        Diagnostic("error", _in_clangs_words(m["text"].strip()), m["file"], int(m["line"] or m["l2"] or 0), 0)
        for m in _ERROR.finditer(text)
    ]
    commands = [line for line in text.splitlines() if _COMPILERS.search(line)]
    found = dict.fromkeys(d for line in commands for d in _DEFINITION.findall(line) if not _NOT_TAKEN.match(d))
    return BuildLog(tuple(dict.fromkeys(errors)), tuple(found))


def _in_clangs_words(message: str) -> str:
    for pattern, words in _SPELLINGS:
        if re.match(pattern, message):
            return re.sub(pattern, words, message)
    return message


def answer_log(
    log: BuildLog, project: Project, texts: Mapping[str, str], known: frozenset[str]
) -> tuple[dict[str, str], list[Applied]]:
    """The texts with the log's errors answered by the table, and one record per kind of error.

    A log is of another text, so only rules that need no place apply. `known` are names that tables and shims deal with.
    """
    index = PathIndex.of(project.sources)
    fresh = dict(texts)
    records: dict[Applied, None] = {}
    for path, errors in _by_path(log.errors, index).items():
        answers: list[Answer] = []
        if path:
            fresh[path], answers = answer(fresh[path], errors, placed=False)
            records |= {Applied(path, f"log:{a.rule}", a.detail): None for a in answers}
        for d in errors:
            if any(d.key.text in a.detail for a in answers):
                continue
            count = sum(e.key == d.key for e in errors)
            state = "the rules know this name" if d.symbol in known else "no rule knows it; the compiler decides"
            records[Applied(path or d.file, "log", f"{count} times: {d.key.text}: {state}")] = None
    records |= {Applied("", "log", f"-D{d} taken from the build's command"): None for d in log.definitions}
    return fresh, list(records)


def _by_path(errors: Sequence[Diagnostic], index: PathIndex) -> Mapping[str, list[Diagnostic]]:
    grouped: dict[str, list[Diagnostic]] = {}
    for d in errors:
        grouped.setdefault(_path_of(d.file, index) or "", []).append(d)
    return grouped


def _path_of(file: str, index: PathIndex) -> str | None:
    """The project's file a log means, also by the names that hipify gives."""
    for name in _names(file):
        parts = name.lstrip("./").split("/")
        for i in range(len(parts)):
            found = index.find(Include("/".join(parts[i:]), quoted=True, line=0), "")
            if found is not None:
                return found
    return None


def _names(file: str) -> Iterable[str]:
    yield file
    stem = re.sub(r"(?:_hip)?\.(?:hip|cu\.hip|cpp|cu)$", "", file)
    yield f"{stem}.cu"
    yield f"{stem.replace('/hip/', '/cuda/')}.cu"
    yield re.sub(r"_hip\.(h|cuh|hpp)$", r".\1", file)
