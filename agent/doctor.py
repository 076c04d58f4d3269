"""What this machine can prove: tools, devices, isolation, and the evidence levels they allow for each target."""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from agent.versions import toolchain_versions
from sandbox.compile_cache import cache_root
from sandbox.emulator import native
from sandbox.errors import ToolMissing
from sandbox.isolation import isolation_level
from sandbox.target import Target, known_archs, load_target
from sandbox.toolchain import damaged_files, find_toolchain
from sandbox.verdict import Correctness, Speed

_KFD_NODES = Path("/sys/class/kfd/kfd/topology/nodes")
_TRITON_REMEDY = "Install the ROCm build of torch and triton on an AMD machine, elsewhere `wavesmith[triton]`."


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at. `remedy` is empty when it is as it should be."""

    name: str
    ok: bool
    detail: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Reach:
    """The strongest evidence that can be had for a target here."""

    arch: str
    correctness: Correctness
    speed: Speed


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU that torch could use. `arch` is the compiler's name, `gfx942` or `sm_90`."""

    name: str
    arch: str


def findings() -> Iterator[Finding]:
    """Every check of this machine, each independent of the others."""
    versions = toolchain_versions()
    yield Finding("python", True, f"{platform.python_version()} on {platform.machine()}")
    for name in ("torch", "triton"):
        found = importlib.util.find_spec(name) is not None
        yield Finding(name, found, versions.get(name, "not installed"), "" if found else _TRITON_REMEDY)
    yield _isolation()
    gpus = visible_gpus()
    yield Finding(
        "gpu", True, ", ".join(f"{g.name} ({g.arch})" for g in gpus) or "none: nothing is timed or run on one"
    )
    yield _hip()
    yield _emulator()
    yield _cache()
    git = shutil.which("git")
    remedy = "" if git else "Install git: ports of repositories need it."
    yield Finding("git", git is not None, git or "not installed", remedy)
    second = shutil.which("rocjitsu")
    yield Finding("rocjitsu", True, second or "not installed: no second opinion on emulated results (optional)")
    yield Finding("rocprofv3", True, shutil.which("rocprofv3") or "not installed: no hardware counters")


def _isolation() -> Finding:
    level = isolation_level()
    if level == "bubblewrap":
        return Finding("isolation", True, "bubblewrap: own user, process, network and file spaces")
    return Finding(
        "isolation",
        False,
        "process: limits and an empty environment only",
        "Install bubblewrap, and let it use user namespaces, before running code you do not trust.",
    )


def _hip() -> Finding:
    try:
        toolchain = find_toolchain()
    except ToolMissing as e:
        return Finding("hip compiler", False, str(e), "Run `wavesmith doctor --fix`.")
    damaged = damaged_files(toolchain)
    if damaged:
        return Finding("hip compiler", False, f"{len(damaged)} files are damaged", "Run `wavesmith doctor --fix`.")
    return Finding("hip compiler", True, ", ".join(f"{k} {v}" for k, v in toolchain.versions().items()))


def _emulator() -> Finding:
    if native.library() is not None:
        return Finding("emulator", True, "compiled core")
    return Finding("emulator", True, "numpy core: slow", "Install a C compiler for the fast core.")


def _cache() -> Finding:
    root = cache_root()
    try:
        root.mkdir(parents=True, exist_ok=True)
        free_gib = shutil.disk_usage(root).free / 2**30
    except OSError as e:
        return Finding("cache", False, f"{root}: {e.strerror}", "Set WAVESMITH_CACHE_DIR to a writable folder.")
    if not os.access(root, os.W_OK):
        return Finding("cache", False, f"{root} cannot be written", "Set WAVESMITH_CACHE_DIR to a writable folder.")
    low = free_gib < 1
    return Finding("cache", not low, f"{root}, {free_gib:.0f} GiB free", "Make room." if low else "")


def visible_gpus() -> tuple[Gpu, ...]:
    """GPUs of this machine: AMD from the kernel driver's topology, NVIDIA from nvidia-smi."""
    return (*_amd_gpus(), *_nvidia_gpus())


def _amd_gpus() -> Iterator[Gpu]:
    for node in sorted(_KFD_NODES.glob("*/properties")) if _KFD_NODES.is_dir() else ():
        try:
            lines = dict(line.split(None, 1) for line in node.read_text().splitlines() if " " in line)
            version = int(lines.get("gfx_target_version", "0"))
        except (OSError, ValueError):
            continue
        if version:  # 90402 is 9.4.2; the last two parts are written in hexadecimal
            arch = f"gfx{version // 10000}{version // 100 % 100:x}{version % 100:x}"
            yield Gpu("AMD GPU", arch)


def _nvidia_gpus() -> Iterator[Gpu]:
    words = ["nvidia-smi", "--query-gpu=name,compute_cap", "--format=csv,noheader"]
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return
    for line in done.stdout.splitlines() if done.returncode == 0 else ():
        name, _, capability = line.rpartition(",")
        yield Gpu(name.strip(), "sm_" + capability.strip().replace(".", ""))


def reach(gpus: tuple[Gpu, ...]) -> tuple[Reach, ...]:
    """For every target the strongest evidence, given torch and triton."""
    runnable = importlib.util.find_spec("torch") is not None and importlib.util.find_spec("triton") is not None
    archs = {g.arch for g in gpus}
    return tuple(_reach(load_target(arch), archs) for arch in known_archs()) if runnable else ()


def _reach(target: Target, archs: set[str]) -> Reach:
    if target.arch in archs:
        return Reach(target.arch, Correctness.EXECUTED, Speed.MEASURED)
    if target.is_amd and target.arch != "gfx90a":
        return Reach(target.arch, Correctness.EMULATED, Speed.MEASURED_ELSEWHERE if archs else Speed.COUNTED)
    elsewhere = Correctness.EXECUTED_ELSEWHERE if archs else Correctness.INTERPRETED
    return Reach(target.arch, elsewhere, Speed.MEASURED_ELSEWHERE if archs else Speed.STATIC)


def fix(say: Callable[[str], None]) -> None:
    """Prepare what compiles HIP without a GPU, and the emulator's core. Raises `ToolMissing` when it cannot be had."""
    from agent.port.prepare import prepare_port
    from sandbox.toolchain import prepare_toolchain

    prepare_toolchain(say)
    native.library()
    say("preparing headers and probes of ports")
    prepare_port()
