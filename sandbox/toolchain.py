"""The compiler that builds HIP for AMD GPUs on a machine that has none.

A ROCm installation is used when there is one. Otherwise a clang with the amdgcn back end, HIP's headers and the device
bitcode libraries lie unpacked in a private folder below the user's cache; `prepare_toolchain` fills it once, and
nothing touches the network afterwards.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from sandbox.errors import ToolMissing

PREFIX_VARIABLE = "WAVESMITH_TOOLCHAIN"
"""Environment variable naming another prepared folder."""
MANIFEST = "manifest.json"
_OLDEST_CLANG, _NEWEST_CLANG = 19, 30
_NEEDED_ISAS = ("942", "950")

Origin = Literal["rocm", "prefix", "frozen"]
Progress = Callable[[str], None]


@dataclass(frozen=True)
class Toolchain:
    """Paths and versions of one working set; `flags()` is what every compilation starts with."""

    clang: Path
    llvm_bin: Path
    """Folder of llvm-readelf, llvm-objdump, lld ... (names without a version suffix)."""
    hip_root: Path
    """Holds `include/hip/hip_runtime.h`."""
    bitcode: Path
    """Folder of ocml.bc, ockl.bc and the oclc_* constants."""
    hip_version: tuple[int, int, int]
    clang_version: str
    origin: Origin
    """`rocm`: an installation; `prefix`: distribution packages unpacked by us; `frozen`: older headers with synthesised
    control constants, the last resort."""
    packages: tuple[str, ...] = ()
    hipify_perl: Path | None = None
    library_path: tuple[Path, ...] = field(default=())
    """Folders the compiler's own shared libraries lie in, when they are not installed system-wide."""

    def flags(self, arch: str | None = None) -> list[str]:
        """Compiler flags common to every HIP translation unit; `arch` None means the host pass."""
        words = [
            "-x", "hip", f"--hip-path={self.hip_root}", f"--rocm-device-lib-path={self.bitcode}",
            "-D__HIP_PLATFORM_AMD__=1",
        ]  # fmt: skip
        if self.hip_version < (7, 0, 0):
            # Headers before ROCm 7 read a macro that newer compilers no longer define.
            words.append("-D__AMDGCN_WAVEFRONT_SIZE=64")
        if self.origin == "frozen":
            words.append("-mcode-object-version=5")
        if arch == "gfx950" and not self._rocprim_knows_gfx950:
            # rocPRIM reads only this macro and then takes the CDNA3 path; faking gfx942 would flip HIP's fp8 to FNUZ.
            words.append("-D__gfx9_4_generic__")
        return words

    @cached_property
    def _rocprim_knows_gfx950(self) -> bool:
        config = self.hip_root / "include" / "rocprim" / "config.hpp"
        try:
            return "gfx950" in config.read_text(encoding="utf-8", errors="replace")
        except OSError:
            return False

    def environment(self) -> dict[str, str]:
        """The environment to start the compiler with: a copy of ours, minus what would redirect its includes."""
        env = {k: v for k, v in os.environ.items() if k not in _REDIRECTING_VARIABLES}
        if self.library_path:
            env["LD_LIBRARY_PATH"] = ":".join(str(p) for p in self.library_path)
        return env

    def tool(self, name: str) -> Path:
        """An LLVM tool such as `llvm-readelf`; raises `ToolMissing` when it was not shipped."""
        path = self.llvm_bin / name
        if not path.exists():
            raise ToolMissing(f"{name} is not in {self.llvm_bin}. Run `wavesmith doctor --fix`.")
        return path

    @cached_property
    def digest(self) -> str:
        """Changes when anything that decides a compilation's result changes: part of every compile cache key."""
        parts = [str(self.clang), self.clang_version, str(self.hip_root), str(self.bitcode), repr(self.hip_version)]
        parts += [*self.packages, self.origin]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]

    def versions(self) -> dict[str, str]:
        """What a report names: compiler, HIP headers, where they came from, packages."""
        found = {
            "clang": self.clang_version,
            "hip": ".".join(str(n) for n in self.hip_version),
            "toolchain": self.origin,
        }
        for package in self.packages:
            name, _, version = package.partition("=")
            if name.startswith(("rocm-device-libs", "hipify-perl", "librocprim", "libhipcub")):
                found[name] = version
        return found


_REDIRECTING_VARIABLES = {
    "CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "HIP_PATH", "ROCM_PATH", "HIP_DEVICE_LIB_PATH",
    "HIPCC_COMPILE_FLAGS_APPEND", "CCC_OVERRIDE_OPTIONS",
}  # fmt: skip


def find_toolchain() -> Toolchain:
    """The toolchain of this machine: a ROCm installation, else the prepared folder. Starts no download.

    Raises `ToolMissing`, naming the command that prepares one.
    """
    named = os.environ.get(PREFIX_VARIABLE)
    candidates: Iterator[Toolchain | None]
    if named:
        candidates = iter([_from_prefix(Path(named))])
    else:
        candidates = (find() for find in (_from_rocm, lambda: _from_prefix(default_prefix())))
    for toolchain in candidates:
        if toolchain is not None:
            return toolchain
    raise ToolMissing("No compiler for AMD GPUs was found. Run `wavesmith doctor --fix` to prepare one (about 120 MB).")


def prepare_toolchain(progress: Progress = lambda line: None) -> Toolchain:
    """The toolchain of this machine, prepared first when there is none (needs apt and a network, once).

    `progress` receives one short line per step. Raises `ToolMissing` when neither is possible.
    """
    try:
        return find_toolchain()
    except ToolMissing:
        from sandbox.toolchain_prepare import prepare

        prepare(Path(os.environ.get(PREFIX_VARIABLE) or default_prefix()), progress)
        return find_toolchain()


def damaged_files(toolchain: Toolchain) -> list[str]:
    """Files of the prepared folder that no longer have the recorded SHA-256; empty for a ROCm installation."""
    if toolchain.origin == "rocm":
        return []
    prefix = next(p for p in toolchain.hip_root.parents if (p / MANIFEST).exists())
    recorded: dict[str, str] = json.loads((prefix / MANIFEST).read_text())["files"]
    return sorted(name for name, digest in recorded.items() if file_digest(prefix / name) != digest)


def file_digest(path: Path) -> str | None:
    """SHA-256 of a file as hex, None when it cannot be read."""
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError:
        return None


def default_prefix() -> Path:
    """Where `prepare_toolchain` puts things."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "wavesmith" / "toolchain"


def _from_rocm() -> Toolchain | None:
    for name in (os.environ.get("ROCM_PATH"), "/opt/rocm"):
        if not name or not (root := Path(name)).is_dir():
            continue
        llvm_bin = root / "lib" / "llvm" / "bin"
        clang = llvm_bin / "clang++"
        bitcode = root / "amdgcn" / "bitcode"
        if clang.exists() and _has_bitcode(bitcode) and (root / "include/hip/hip_runtime.h").exists():
            perl = root / "bin" / "hipify-perl"
            return Toolchain(
                clang, llvm_bin, root, bitcode, hip_version(root), clang_version(clang) or "unknown", "rocm",
                hipify_perl=perl if perl.exists() else None,
            )  # fmt: skip
    return None


def _from_prefix(prefix: Path) -> Toolchain | None:
    try:
        manifest: dict[str, Any] = json.loads((prefix / MANIFEST).read_text())
    except (OSError, ValueError):
        return None
    hip_root = prefix / manifest["hip_root"]
    bitcode = prefix / manifest["bitcode"]
    private = prefix / "compiler"
    clang, libraries = find_clang(private)
    if clang is None or not _has_bitcode(bitcode) or not (hip_root / "include/hip/hip_runtime.h").exists():
        return None
    version = clang_version(clang, libraries)
    if version is None:
        return None
    perl = hip_root / "bin" / "hipify-perl"
    return Toolchain(
        clang, clang.resolve().parent, hip_root, bitcode, hip_version(hip_root), version, manifest["origin"],
        tuple(manifest["packages"]), perl if perl.exists() else None, libraries,
    )  # fmt: skip


def find_clang(private: Path) -> tuple[Path | None, tuple[Path, ...]]:
    """A clang++ new enough for gfx950 with lld beside it: the machine's own, else one unpacked below `private`.

    The second value names the library folders the private one needs.
    """
    for release in range(_NEWEST_CLANG, _OLDEST_CLANG, -1):
        found = shutil.which(f"clang++-{release}")
        if found and (Path(found).resolve().parent / "lld").exists():
            return Path(found), ()
    for release in range(_NEWEST_CLANG, _OLDEST_CLANG, -1):
        home = private / "usr" / "lib" / f"llvm-{release}"
        if (home / "bin" / "clang++").exists() and (home / "bin" / "lld").exists():
            triple = next((p.parent for p in (private / "usr" / "lib").glob("*/libLLVM.so*")), home / "lib")
            return home / "bin" / "clang++", (home / "lib", triple)
    return None, ()


def clang_version(clang: Path, libraries: tuple[Path, ...] = ()) -> str | None:
    """`22.1.8` and the like; None when the compiler does not start or has no amdgcn back end."""
    env = dict(os.environ)
    if libraries:
        env["LD_LIBRARY_PATH"] = ":".join(str(p) for p in libraries)
    try:
        done = subprocess.run(
            [str(clang), "--version"], env=env, capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r"version (\d+\.\d+\.\d+)", done.stdout)
    return match.group(1) if match else None


def hip_version(root: Path) -> tuple[int, int, int]:
    """The version the headers state, from `hip/hip_version.h` (falls back to `share/hip/version`)."""
    numbers: dict[str, int] = {}
    for path in (root / "include" / "hip" / "hip_version.h", root / "share" / "hip" / "version"):
        if path.exists():
            text = path.read_text(encoding="utf-8", errors="replace")
            for name, value in re.findall(r"HIP_VERSION_(MAJOR|MINOR|PATCH)[ =]+(\d+)", text):
                numbers.setdefault(name, int(value))
    return numbers.get("MAJOR", 0), numbers.get("MINOR", 0), numbers.get("PATCH", 0)


def _has_bitcode(folder: Path) -> bool:
    names = ["ocml", "ockl", *(f"oclc_isa_version_{isa}" for isa in _NEEDED_ISAS)]
    return all((folder / f"{name}.bc").exists() for name in names)
