"""HIP's runtime header, precompiled and kept: reading it takes longer than compiling a kernel of fifty lines."""

from __future__ import annotations

import hashlib
import os
import posixpath
import re
import shutil
import subprocess
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from sandbox.compile_cache import CompileCache, cache_root
from sandbox.toolchain import Toolchain

_HEADER = "runtime.h"
_TEXT = "#include <hip/hip_runtime.h>\n"
_KEPT = 24
"""One per toolchain, architecture or host, and language standard; those unused for longest go."""
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
    if CompileCache.default() is None:
        return []
    key = hashlib.sha256("\0".join([toolchain.digest, str(arch), *flags]).encode()).hexdigest()[:24]
    folder = cache_root() / "hip-headers" / key
    compiled = folder / "runtime.pch"
    if not compiled.exists() and not _precompile(folder, arch, flags, toolchain):
        return []
    with suppress(OSError):
        os.utime(folder)
    return ["-Xclang", "-include-pch", "-Xclang", str(compiled)]


def forget(words: Sequence[str]) -> None:
    """Delete the header of `precompiled_runtime`'s words: the compiler could not read it."""
    for word in words:
        if word.endswith(".pch"):
            Path(word).unlink(missing_ok=True)


def _precompile(folder: Path, arch: str | None, flags: Sequence[str], toolchain: Toolchain) -> bool:
    new = folder / f".new-{os.getpid()}-{threading.get_ident()}.pch"
    mode = ["--cuda-host-only"] if arch is None else [f"--offload-arch={arch}", "--cuda-device-only"]
    words = [str(toolchain.clang), *flags, *mode, "-fsyntax-only", "-Xclang", "-fno-pch-timestamp"]
    words += ["-Xclang", "-emit-pch", "-Xclang", "-o", "-Xclang", str(new), _HEADER]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / _HEADER).write_text(_TEXT, encoding="utf-8")
        done = subprocess.run(
            words, cwd=folder, env=toolchain.environment(), capture_output=True, timeout=300, check=False
        )
        if done.returncode:
            return False
        new.replace(folder / "runtime.pch")
    except OSError:
        return False
    _tidy(folder.parent)
    return True


def _tidy(folder: Path) -> None:
    with suppress(OSError):
        kept = sorted((p for p in folder.iterdir()), key=lambda p: p.stat().st_mtime)
        for old in kept[:-_KEPT]:
            shutil.rmtree(old, ignore_errors=True)
