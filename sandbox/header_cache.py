"""Precompiled headers, made once and kept: reading a large header takes longer than compiling a small kernel."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from sandbox.compile_cache import CompileCache, cache_root
from sandbox.toolchain import Toolchain

Command = Callable[[Path, Path], list[str]]
"""Writes what the compiler reads to the first path, a folder, and gives the command that compiles it to the second."""


@dataclass(frozen=True, slots=True)
class HeaderCache:
    """Precompiled headers of one kind, each in a folder of its own in the user's cache."""

    kind: str
    """Name of the folder that holds them."""
    file: str
    most: int
    """How many stay; those unused for longest go."""

    def get(self, key: Sequence[str], command: Command, toolchain: Toolchain) -> Path | None:
        """The header for `key`, made where it is missing; None where nothing is kept or it cannot be made."""
        if CompileCache.default() is None:
            return None
        folder = cache_root() / self.kind / hashlib.sha256("\0".join(key).encode()).hexdigest()[:24]
        compiled = folder / self.file
        if not compiled.exists() and not self._make(folder, command, toolchain):
            return None
        with suppress(OSError):
            folder.touch()
        return compiled

    def _make(self, folder: Path, command: Command, toolchain: Toolchain) -> bool:
        """Compile where it stays, because the result names its headers; False when that cannot be written."""
        new = folder / f".new-{os.getpid()}-{threading.get_ident()}.pch"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            done = subprocess.run(
                command(folder, new), cwd=folder, env=toolchain.environment(), capture_output=True, timeout=300,
                check=False,
            )  # fmt: skip
            if done.returncode:
                return False
            new.replace(folder / self.file)
        except OSError:
            return False
        with suppress(OSError):
            for old in sorted(folder.parent.iterdir(), key=lambda p: p.stat().st_mtime)[: -self.most]:
                shutil.rmtree(old, ignore_errors=True)
        return True
