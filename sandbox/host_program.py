"""Run a whole HIP program without a GPU: its host code natively and confined, its kernels in the emulator.

`build_host_program` compiles the host side and links it with a small runtime (`host_runtime/runtime.cpp`), which hands
memory and launches to `child_host_program`. A function of HIP that the runtime does not have is named, never guessed.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, Literal

from sandbox.compile_cache import CompileCache, cache_root
from sandbox.emulator import native
from sandbox.errors import SandboxError
from sandbox.hip import HipOptions, SourceTree
from sandbox.isolation import Confinement, Limits, run_isolated
from sandbox.target import load_target
from sandbox.toolchain import Toolchain

Status = Literal["ended", "unknown", "stopped", "trapped"]
INSTRUCTION_BUDGET = 200_000_000
"""Wave instructions of all launches of a program: about two minutes."""
_BOOT = "import sys; sys.path.append({root!r}); from sandbox.child_host_program import main; main()"
_FORMAT = 3
_PARTS = {"hipblaslt": r"\bhipblasLt"}
"""Further parts of the runtime, and what of a program's undefined symbols asks for them."""
_UNRESOLVED = re.compile(r"undefined (?:reference to|symbol:) [`']?([^`'\n(]+)")


@dataclass(frozen=True, slots=True)
class ProgramRun:
    """How a program ended. `unknown`: it called what the runtime does not have; `stopped`: the emulator or a limit gave
    up; `trapped`: a kernel did what hardware forbids. `reason` says which, `launched` names the kernels that ran."""

    status: Status
    code: int | None = None
    """Exit status, negative for a signal; None when it did not end by itself."""
    stdout: str = ""
    stderr: str = ""
    reason: str = ""
    launched: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HostProgram:
    """A linked program; `missing` names what it calls and nothing provides, in which case there is no `binary`."""

    binary: bytes | None
    missing: tuple[str, ...] = ()
    complaint: str = ""

    def run(
        self, code_object: bytes, arch: str, limits: Limits | None = None, *, skip: Sequence[str] = (),
        budget: int = INSTRUCTION_BUDGET,
    ) -> ProgramRun:  # fmt: skip
        """Run it with the device code of one architecture, leaving out the launches of the kernels in `skip` (symbols).

        Raises `SandboxError` when the sandbox itself failed.
        """
        if self.binary is None:
            return ProgramRun("unknown", reason=self.complaint)
        with tempfile.TemporaryDirectory(prefix="wavesmith-program-") as name:
            scratch = Path(name)
            work = scratch / "work"
            work.mkdir()
            (scratch / "program").write_bytes(self.binary)
            (scratch / "program").chmod(0o755)
            (scratch / "code").write_bytes(code_object)
            native.library()  # built here once: inside the child it would be built anew for every run
            target = load_target(arch)
            job = {
                "program": str(scratch / "program"), "code": str(scratch / "code"), "budget": budget,
                "skip": list(skip),
                "units": target.board.compute_units, "board": target.board.device_name,
                "lds_bytes": target.lds_bytes_per_workgroup, "cache_root": str(cache_root()),
            }  # fmt: skip
            (scratch / "job.json").write_text(json.dumps(job))
            return _confined(scratch, work, limits or Limits(wall_s=180.0, memory_bytes=4 * 2**30))


def _confined(scratch: Path, work: Path, limits: Limits) -> ProgramRun:
    root = Path(__file__).resolve().parent.parent
    command = [sys.executable, "-P", "-s", "-c", _BOOT.format(root=str(root)), "--job", str(scratch / "job.json")]
    readable = tuple(p for p in (scratch, cache_root() / "emulator") if p.exists())
    received = bytearray()
    ended = run_isolated(command, confinement=Confinement(readable, (), work), limits=limits, on_result=received.extend)
    if ended.ending == "timeout":
        return ProgramRun("stopped", reason=f"it did not end within {limits.wall_s:.0f} s")
    if ended.ending in ("memory", "output"):
        return ProgramRun("stopped", reason=f"it used more {ended.ending} than it may")
    try:
        said: dict[str, Any] = json.loads(received)
    except ValueError:
        raise SandboxError(f"the emulated device ended without a word: {ended.stderr[-400:].strip()}") from None
    return ProgramRun(
        said["status"], said["code"], said["stdout"], said["stderr"], said["reason"], tuple(said["launched"])
    )


def build_host_program(
    tree: SourceTree, main: str, toolchain: Toolchain, options: HipOptions | None = None
) -> HostProgram:
    """Compile and link `main` of `tree`, which holds a `main()`. A program that does not link is a result: see
    `missing` and `complaint`."""
    options = options or HipOptions()
    words = [*toolchain.flags(None), f"-std={options.standard}", *tree.flags]
    words += [f"-I{folder}" for folder in tree.include_folders]
    words += [word for folder in tree.system_folders for word in ("-isystem", str(folder))]
    words += [word for header in tree.forced_includes for word in ("-include", header)]
    parts = [str(_FORMAT), *_runtime_texts().values(), tree.digest, toolchain.digest, main, *words]
    key = hashlib.sha256("\0".join(parts).encode()).hexdigest()
    compile_cache = CompileCache.default()
    blobs = compile_cache.load(key) if compile_cache is not None else None
    if blobs is None:
        with tempfile.TemporaryDirectory(prefix="wavesmith-program-") as name:
            folder = Path(name)
            tree.write_to(folder / "src")
            blobs = _build(folder, main, words, toolchain, options.timeout_s)
        if compile_cache is not None:
            compile_cache.store(key, blobs)
    if "binary" in blobs:
        return HostProgram(blobs["binary"])
    said: dict[str, Any] = json.loads(blobs["failed"])
    return HostProgram(None, tuple(said["missing"]), said["complaint"])


@cache
def _runtime_texts() -> dict[str, str]:
    folder = resources.files("sandbox") / "host_runtime"
    return {r.name: r.read_text(encoding="utf-8") for r in folder.iterdir() if r.name.endswith((".cpp", ".h"))}


def _runtime_object(name: str, toolchain: Toolchain, folder: Path) -> Path:
    """A compiled part of the runtime, from the cache where it lies there."""
    words = [*toolchain.flags(None), "-std=c++17", "-O1", "-w", "--cuda-host-only", "-c"]
    texts = _runtime_texts()
    parts = [str(_FORMAT), name, *texts.values(), toolchain.digest, *words]
    key = hashlib.sha256("\0".join(parts).encode()).hexdigest()
    compile_cache = CompileCache.default()
    blobs = compile_cache.load(key) if compile_cache is not None else None
    path = folder / f"{name}.o"
    if blobs is None:
        for file, text in texts.items():
            (folder / file).write_text(text, encoding="utf-8")
        done = _run([str(toolchain.clang), *words, f"{name}.cpp", "-o", path.name], folder, toolchain, 180.0)
        if done.returncode:
            raise SandboxError(f"the host runtime does not compile: {done.stderr[-400:]}")
        blobs = {"object": path.read_bytes()}
        if compile_cache is not None:
            compile_cache.store(key, blobs)
    path.write_bytes(blobs["object"])
    return path


def _build(folder: Path, main: str, words: Sequence[str], toolchain: Toolchain, timeout_s: float) -> dict[str, bytes]:
    clang = str(toolchain.clang)
    command = [clang, *words, "-O1", "-w", "--cuda-host-only", "-c", main, "-o", "../program.o"]
    done = _run(command, folder / "src", toolchain, timeout_s)
    if done.returncode:
        first = next((line for line in done.stderr.splitlines() if "error:" in line), done.stderr[-300:])
        return _failed((), f"its host side does not compile: {first}")
    program = folder / "program.o"
    listed = _run([str(toolchain.tool("llvm-nm")), "-u", program.name], folder, toolchain, 60.0).stdout
    fatbins = re.findall(r"\b(__hip_fatbin\w*)", listed)
    parts = ["runtime", *(part for part, pattern in _PARTS.items() if re.search(pattern, listed))]
    runtime = [_runtime_object(part, toolchain, folder).name for part in parts]
    definitions = [f"-Wl,--defsym={name}=wavesmith_fatbin" for name in dict.fromkeys(fatbins)]
    link = [clang, "-o", "program", program.name, *runtime, *definitions, "-lstdc++", "-lm", "-lpthread"]
    done = _run(link, folder, toolchain, 120.0)
    if done.returncode:
        missing = tuple(dict.fromkeys(m.strip() for m in _UNRESOLVED.findall(done.stderr)))
        names = ", ".join(missing[:4]) or done.stderr.strip()[-300:]
        return _failed(missing, f"the host runtime does not know {names}")
    return {"binary": (folder / "program").read_bytes()}


def _failed(missing: Sequence[str], complaint: str) -> dict[str, bytes]:
    return {"failed": json.dumps({"missing": list(missing), "complaint": complaint}).encode()}


def _run(
    command: Sequence[str], folder: Path, toolchain: Toolchain, timeout_s: float
) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            command, cwd=folder, env=toolchain.environment(), capture_output=True, text=True, errors="replace",
            timeout=timeout_s, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired as e:
        raise SandboxError(f"clang took longer than {timeout_s:.0f} s.") from e
