"""Compile results on disk, so that the same program is compiled once.

One zip file per entry, named by a SHA-256 over everything that decides the result. Files appear atomically; a damaged
or foreign file reads as a miss. A folder that cannot be written is no fault: the cache then only misses.
"""

from __future__ import annotations

import os
import tempfile
import zipfile
import zlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

DEFAULT_MAX_BYTES = 2 * 1024**3


def cache_root() -> Path:
    """`$WAVESMITH_CACHE_DIR`, else `$XDG_CACHE_HOME/wavesmith`, else `~/.cache/wavesmith`."""
    if own := os.environ.get("WAVESMITH_CACHE_DIR"):
        return Path(own)
    if xdg := os.environ.get("XDG_CACHE_HOME"):
        return Path(xdg) / "wavesmith"
    return Path("~/.cache/wavesmith").expanduser()


@dataclass(frozen=True, slots=True)
class CompileCache:
    """Named blobs per key under `folder`. `max_bytes` bounds the folder; the entries unused for longest go first."""

    folder: Path
    max_bytes: int = DEFAULT_MAX_BYTES

    @classmethod
    def default(cls) -> CompileCache | None:
        """The user's cache, or None when `WAVESMITH_COMPILE_CACHE=off`."""
        if os.environ.get("WAVESMITH_COMPILE_CACHE", "").lower() == "off":
            return None
        return cls(cache_root() / "compile")

    def load(self, key: str) -> dict[str, bytes] | None:
        path = self._path(key)
        try:
            with zipfile.ZipFile(path) as archive:
                blobs = {name: archive.read(name) for name in archive.namelist()}
        except (OSError, zipfile.BadZipFile, zlib.error, EOFError):
            return None
        with suppress(OSError):
            os.utime(path)
        return blobs

    def store(self, key: str, blobs: Mapping[str, bytes]) -> None:
        """Keep `blobs` under `key`. Failing to write (read-only or full disk) leaves the cache as it was."""
        path = self._path(key)
        temporary: Path | None = None
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".new-", delete=False) as file:
                temporary = Path(file.name)
                with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
                    for name, data in blobs.items():
                        archive.writestr(name, data)
            temporary.replace(path)
        except OSError:
            if temporary is not None:
                with suppress(OSError):
                    temporary.unlink()
            return
        if key.startswith("00"):  # one store in 256 pays for tidying
            self.prune()

    def prune(self) -> None:
        """Delete the entries unused for longest until the folder holds at most `max_bytes`."""
        entries = []
        for path in self.folder.glob("*/*.zip"):
            with suppress(OSError):
                status = path.stat()
                entries.append((status.st_mtime, status.st_size, path))
        total = sum(size for _, size, _ in entries)
        for _, size, path in sorted(entries):
            if total <= self.max_bytes:
                break
            with suppress(OSError):
                path.unlink()
                total -= size

    def _path(self, key: str) -> Path:
        return self.folder / key[:2] / f"{key}.zip"
