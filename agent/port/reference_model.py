"""The CPU model of CUDA as headers, and precompiled and kept: reading them costs more than compiling a kernel."""

from __future__ import annotations

import hashlib
import re
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from pathlib import Path

from agent.shims.catalogue import load_catalogue
from sandbox.header_cache import HeaderCache
from sandbox.toolchain import Toolchain

HEADER = "model.h"
_KEPT = HeaderCache("reference", "model.pch", most=4)
"""One per toolchain, version of the model, and flags."""


@cache
def model_files() -> Mapping[str, str]:
    """The model's headers by name; `HEADER` includes all that a program needs."""
    folder = resources.files("agent.port") / "reference"
    files = {r.name: r.read_text(encoding="utf-8") for r in folder.iterdir() if r.name.endswith(".h")}
    arithmetic = load_catalogue()["ptx_arithmetic"].text
    macros = {"WAVESMITH_FN": "static inline", "WAVESMITH_FN_PLAIN": "inline", "WAVESMITH_CTOR": "inline"}
    head = "#pragma once\n" + "".join(f"#define {name} {text}\n" for name, text in macros.items())
    files["ptx_arithmetic.h"] = head + arithmetic + "\n"
    files["ptx_host.h"] = files["ptx_host.h"].replace(
        '#include "cub.h"', '#include "cub.h"\n#include "ptx_arithmetic.h"'
    )
    parts = ("ptx_host.h", "random.h", "torch.h", "hip.h", "driver.h")
    return {**files, HEADER: "".join(f'#include "{part}"\n' for part in parts)}


@cache
def model_namespaces() -> frozenset[str]:
    """Namespaces that the model opens."""
    return frozenset(n for text in model_files().values() for n in re.findall(r"\bnamespace\s+(\w+)", text))


@cache
def model_digest() -> str:
    """Changes with the text of the model."""
    return hashlib.sha256("\0".join(f"{n}\0{t}" for n, t in sorted(model_files().items())).encode()).hexdigest()


def model_flags(flags: Sequence[str], toolchain: Toolchain, folder: Path) -> list[str]:
    """What brings the model into a program compiled with `flags`: precompiled and kept in the user's cache, or, where
    nothing is kept, as headers written to `folder`."""

    def command(kept: Path, new: Path) -> list[str]:
        _write(kept)
        words = [str(toolchain.clang), *flags, "-x", "c++-header", "-Xclang", "-fno-pch-timestamp"]
        return [*words, HEADER, "-o", new.name]

    compiled = _KEPT.get([model_digest(), toolchain.digest, *flags], command, toolchain)
    if compiled is None:
        _write(folder)
        return ["-include", str(folder / HEADER)]
    return ["-include-pch", str(compiled)]


def _write(folder: Path) -> None:
    """Each header in one piece, so that others may read them meanwhile."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in model_files().items():
        path = folder / name
        if not path.exists():
            with tempfile.NamedTemporaryFile("w", dir=folder, prefix=".new-", delete=False, encoding="utf-8") as file:
                file.write(text)
            Path(file.name).replace(path)
