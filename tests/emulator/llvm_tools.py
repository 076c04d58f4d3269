"""LLVM's tools that know gfx942 and gfx950: the machine's own, else those that `wavesmith doctor --fix` prepared."""

from __future__ import annotations

import shutil
import tempfile
from functools import cache
from pathlib import Path

from sandbox.compile_cache import cache_root
from sandbox.errors import ToolMissing
from sandbox.toolchain import Toolchain, find_toolchain

RELEASES = (22, 21, 20)


@cache
def llvm_tool(name: str) -> str | None:
    """Command of a tool such as `llvm-objdump`; None where there is none of these releases."""
    for release in RELEASES:
        if found := shutil.which(f"{name}-{release}"):
            return found
    try:
        toolchain = find_toolchain()
    except ToolMissing:
        return None
    tool = toolchain.llvm_bin / name
    if not tool.exists():
        return None
    return str(tool) if not toolchain.library_path else str(_with_libraries(tool, toolchain))


def _with_libraries(tool: Path, toolchain: Toolchain) -> Path:
    """A script that starts the tool with the libraries it was unpacked with."""
    script = cache_root() / "tools" / f"{tool.name}-{toolchain.digest}"
    if not script.exists():
        script.parent.mkdir(parents=True, exist_ok=True)
        libraries = ":".join(str(p) for p in toolchain.library_path)
        with tempfile.NamedTemporaryFile("w", dir=script.parent, delete=False) as file:
            file.write(f'#!/bin/sh\nLD_LIBRARY_PATH="{libraries}" exec "{tool}" "$@"\n')
        written = Path(file.name)
        written.chmod(0o755)
        written.replace(script)  # another process may have been faster
    return script
