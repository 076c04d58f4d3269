"""The compiled core: built from `core/*.c` with the system's C compiler on first use, then taken from the cache.

Without a compiler, or where the build fails, `library()` is None and the numpy core runs instead.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

from sandbox.compile_cache import cache_root

SOURCE = Path(__file__).parent / "core"
_FLAGS = (
    "-O2", "-ftree-vectorize", "-std=gnu11", "-fPIC", "-fno-math-errno", "-fno-trapping-math", "-fno-strict-aliasing",
    "-frounding-math", "-w",
)  # fmt: skip
_COMPILE_TIMEOUT_S = 180
_UNIT_FLAGS = {"matrix.c": ("-O3", "-ffp-contract=fast")}
"""Sums of products may be fused only where the order of a matrix unit's additions is unknown anyway."""


def compiler() -> str | None:
    """The C compiler: `$CC`, else cc, gcc or clang on PATH."""
    for name in (os.environ.get("CC"), "cc", "gcc", "clang"):
        if name and (path := shutil.which(name)):
            return path
    return None


def _run(command: list[str]) -> bool:
    try:
        done = subprocess.run(command, capture_output=True, timeout=_COMPILE_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def _version(path: str) -> str:
    try:
        done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout


def _processor() -> str:
    """What `-march=native` depends on."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return ""
    return "\n".join(sorted({line for line in lines if line.startswith(("flags", "Features", "model name"))}))


def _key(path: str) -> str:
    digest = hashlib.sha256()
    for part in (_version(path), _processor(), repr((_FLAGS, _UNIT_FLAGS))):
        digest.update(part.encode())
    for file in sorted(SOURCE.iterdir()):
        if file.suffix in (".c", ".h", ".def"):
            digest.update(file.name.encode() + file.read_bytes())
    return digest.hexdigest()[:32]


def _build(path: str, target: Path) -> bool:
    """Compile every unit and link them; the library appears under its name in one step."""
    with tempfile.TemporaryDirectory(prefix="wavesmith-core-") as folder:
        units = sorted(SOURCE.glob("*.c"))
        for tuning in (["-march=native"], []):
            commands = [
                [
                    path, *_FLAGS, *tuning, *_UNIT_FLAGS.get(unit.name, ("-ffp-contract=off",)), "-c", str(unit), "-o",
                    str(Path(folder) / f"{unit.stem}.o"),
                ]
                for unit in units
            ]  # fmt: skip
            with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
                if all(pool.map(_run, commands)):
                    break
        else:
            return False
        linked = Path(folder) / "core.so"
        objects = [str(Path(folder) / f"{unit.stem}.o") for unit in units]
        if not _run([path, "-shared", "-o", str(linked), *objects, "-lm"]):
            return False
        target.parent.mkdir(parents=True, exist_ok=True)
        staged = target.with_name(f"{target.name}.{os.getpid()}")
        shutil.copyfile(linked, staged)
        staged.replace(target)
    return True


def is_built() -> bool:
    """Whether the core of this source lies in the cache already, so that `library` only loads it."""
    path = compiler()
    return path is not None and (cache_root() / "emulator" / f"core-{_key(path)}.so").exists()


@cache
def library() -> ctypes.CDLL | None:
    """The loaded core, or None. `$WAVESMITH_EMULATOR_CORE=numpy` turns it off."""
    if os.environ.get("WAVESMITH_EMULATOR_CORE", "").lower() == "numpy":
        return None
    path = compiler()
    if path is None:
        return None
    target = cache_root() / "emulator" / f"core-{_key(path)}.so"
    try:
        if not target.exists() and not _build(path, target):
            return None
        return ctypes.CDLL(str(target))
    except OSError:  # a cache that cannot be written or read
        return None
