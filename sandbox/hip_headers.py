"""HIP's runtime header, precompiled and kept: reading it takes longer than compiling a kernel of fifty lines."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from sandbox.header_cache import HeaderCache
from sandbox.toolchain import Toolchain

_HEADER = "runtime.h"
_TEXT = "#include <hip/hip_runtime.h>\n"
_KEPT = HeaderCache("hip-headers", "runtime.pch", most=24)
"""One per toolchain, architecture or host, and language standard."""
_FIRST_INCLUDE = re.compile(
    r"\A(?:\s+|//[^\n]*\n|/\*.*?\*/|\#pragma once\n|\#endif\n"
    r"|\#if !defined\(__HIP_PLATFORM_AMD__\)\n|\#define __HIP_PLATFORM_AMD__ 1\n)*"
    r"\#include (?:<(?P<system>[^>\n]+)>|\"(?P<own>[^\"\n]+)\")",
    re.S,
)


def starts_with_runtime(files: Mapping[str, str], main: str) -> bool:
    """Whether the first that `main` compiles is HIP's runtime header, so that reading it earlier changes nothing."""
    path = main
    for _ in range(3):
        m = _FIRST_INCLUDE.match(files.get(path, ""))
        if m is None:
            return False
        if m["system"] is not None:
            return str(m["system"]) == "hip/hip_runtime.h"
        path = posixpath.normpath(posixpath.join(posixpath.dirname(path), m["own"]))
    return False


def precompiled_runtime(arch: str | None, flags: Sequence[str], toolchain: Toolchain) -> list[str]:
    """The words that bring the precompiled header into a compilation for `arch` (None: the host) with `flags`.

    There are none where nothing is kept or it cannot be made.
    """
    mode = ["--cuda-host-only"] if arch is None else [f"--offload-arch={arch}", "--cuda-device-only"]

    def command(folder: Path, new: Path) -> list[str]:
        (folder / _HEADER).write_text(_TEXT, encoding="utf-8")
        words = [str(toolchain.clang), *flags, *mode, "-fsyntax-only", "-Xclang", "-fno-pch-timestamp"]
        return [*words, "-Xclang", "-emit-pch", "-Xclang", "-o", "-Xclang", str(new), _HEADER]

    compiled = _KEPT.get([toolchain.digest, str(arch), *flags], command, toolchain)
    return [] if compiled is None else ["-Xclang", "-include-pch", "-Xclang", str(compiled)]


def forget(words: Sequence[str]) -> None:
    """Delete the header of `precompiled_runtime`'s words: the compiler could not read it."""
    for word in words:
        if word.endswith(".pch"):
            Path(word).unlink(missing_ok=True)
