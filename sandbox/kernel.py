"""The thing under work: one source file, and the files it needs beside it."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path, PurePosixPath
from types import MappingProxyType

from sandbox.errors import InputError

MAX_SOURCE_BYTES = 4 * 1024 * 1024


class Language(StrEnum):
    TRITON = "triton"
    CUDA = "cuda"
    HIP = "hip"


_SUFFIXES = {
    ".py": Language.TRITON,
    ".cu": Language.CUDA,
    ".cuh": Language.CUDA,
    ".hip": Language.HIP,
}


@dataclass(frozen=True, slots=True)
class Kernel:
    """A source file, unmodified or rewritten, with the companions it imports or includes.

    `source` is the text of `filename`: a base name such as `gemm.py`, or for a file in a Python package its POSIX path
    from the folder that holds the package, `mathlib/gemm.py`. `companions` maps such paths to texts.
    Two kernels with the same `digest` are the same program.
    """

    source: str
    filename: str
    language: Language
    companions: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def digest(self) -> str:
        """SHA-256 over file name, source and companions, as lower-case hex."""
        h = hashlib.sha256()
        for name, text in [(self.filename, self.source), *sorted(self.companions.items())]:
            for part in (name, text):
                data = part.encode()
                h.update(len(data).to_bytes(8, "little"))
                h.update(data)
        return h.hexdigest()

    def with_source(self, source: str) -> Kernel:
        return replace(self, source=source)

    def write_to(self, folder: Path) -> Path:
        """Write the file and its companions below `folder`; returns the path of the file."""
        for name, text in self.companions.items():
            path = folder / PurePosixPath(name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        path = folder / PurePosixPath(self.filename)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.source, encoding="utf-8")
        return path


def language_of(filename: str) -> Language:
    """The language a file name stands for; raises `InputError` for any other ending."""
    try:
        return _SUFFIXES[Path(filename).suffix]
    except KeyError:
        raise InputError(
            "this file type is not a kernel source.",
            file=filename,
            remedy=f"Give a file ending in {', '.join(_SUFFIXES)}.",
        ) from None


def load_kernel(path: Path, companions: Mapping[str, str] | None = None) -> Kernel:
    """Read a kernel file; raises `InputError` when it is missing, too large, not UTF-8 text or not parseable Python."""
    if path.is_dir():
        raise InputError("it is a folder.", file=path, remedy="Give the kernel's own file.")
    if not path.is_file():
        raise InputError("there is no such file.", file=path, remedy="Check the path.")
    if path.stat().st_size > MAX_SOURCE_BYTES:
        raise InputError(
            f"the file is larger than {MAX_SOURCE_BYTES // 2**20} MiB.", file=path, remedy="Give the kernel's own file."
        )
    return parse_kernel(path.read_bytes(), path.name, companions)


def parse_kernel(data: bytes, filename: str, companions: Mapping[str, str] | None = None) -> Kernel:
    """A kernel from bytes as uploaded or read; errors as `load_kernel`."""
    language = language_of(filename)
    try:
        source = data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as e:
        line = data[: e.start].count(b"\n") + 1
        raise InputError("the file is not UTF-8 text.", file=filename, line=line, remedy="Save it as UTF-8.") from None
    if "\0" in source:
        raise InputError(
            "the file holds NUL bytes, so it is not source text.", file=filename, remedy="Give the source file."
        )
    if language is Language.TRITON:
        _check_python(source, filename)
    return Kernel(source, filename, language, MappingProxyType(dict(companions or {})))


def _check_python(source: str, filename: str) -> None:
    try:
        ast.parse(source, filename)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as e:
        line = getattr(e, "lineno", None)
        reason = getattr(e, "msg", None) or str(e) or type(e).__name__
        raise InputError(
            f"Python cannot parse it: {reason}.", file=filename, line=line, remedy="Correct the syntax."
        ) from None
