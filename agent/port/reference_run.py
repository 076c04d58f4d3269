"""Build the reference program and run it, confined: it executes code of the user's."""

from __future__ import annotations

import hashlib
import json
import struct
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sandbox.compile_cache import CompileCache
from sandbox.isolation import Confinement, Ended, Limits, run_isolated
from sandbox.toolchain import Toolchain

EXITS = {30: "fault", 31: "deadlock", 32: "undefined", 33: "unsupported"}
_FORMAT = 2


@dataclass(frozen=True, slots=True)
class ParameterInfo:
    """One kernel parameter as the compiler sees it. `element` is float, half, bfloat16, int, uint, bool or raw."""

    kind: str
    """pointer, value or other."""
    size_bytes: int
    element: str = "raw"
    element_bytes: int = 1
    whole_bytes: int = 1
    """Size of what a pointer points to, for example 16 for float4."""
    constant: bool = False


@dataclass(frozen=True, slots=True)
class ReferenceRun:
    """`status` is ok, fault, deadlock, undefined, unsupported, timeout or failed; buffers in argument order."""

    status: str
    buffers: tuple[bytes, ...]
    detail: str = ""


class ReferenceBuildError(Exception):
    """The original does not build for the CPU model. The message is the compiler's first complaint."""


@dataclass(frozen=True)
class ReferenceProgram:
    """A built reference with its kernels' parameters, in the order they were asked for."""

    binary: bytes
    parameters: tuple[tuple[ParameterInfo, ...], ...]

    def run(
        self, kernel: int, grid: Sequence[int], block: Sequence[int], shared_bytes: int,
        arguments: Sequence[bytes | tuple[bytes]], *, reverse: bool, timeout_s: float = 20.0,
    ) -> ReferenceRun:  # fmt: skip
        """One launch. An argument is raw bytes of a value, or a 1-tuple of the bytes a pointer's buffer holds."""
        packed = struct.pack("<10I", kernel, *grid, *block, shared_bytes, int(reverse), len(arguments))
        sizes = []
        for a in arguments:
            data = a[0] if isinstance(a, tuple) else a
            packed += struct.pack("<IQ", int(isinstance(a, tuple)), len(data)) + data
            if isinstance(a, tuple):
                sizes.append(len(data))
        with tempfile.TemporaryDirectory(prefix="wavesmith-reference-") as name:
            work = Path(name)
            program = work / "reference"
            program.write_bytes(self.binary)
            program.chmod(0o755)
            (work / "in.bin").write_bytes(packed)
            ended = _confined([str(program), "run", str(work / "in.bin"), str(work / "out.bin")], work, timeout_s)
            if ended.ending == "timeout":
                return ReferenceRun("timeout", (), "the original did not end in time")
            if ended.code != 0:
                status = EXITS.get(ended.code or -1, "failed")
                return ReferenceRun(status, (), ended.stderr.strip()[-200:] or f"{ended.ending} {ended.signal}")
            data = (work / "out.bin").read_bytes()
        buffers, at = [], 0
        for size in sizes:
            buffers.append(data[at : at + size])
            at += size
        return ReferenceRun("ok", tuple(buffers))


def build_reference(files: Mapping[str, str], unit: str, toolchain: Toolchain) -> ReferenceProgram:
    """Compile the program of `reference_source.reference_tree`; raises `ReferenceBuildError` when it does not build."""
    key = hashlib.sha256(
        "\0".join([str(_FORMAT), toolchain.digest, unit, *(f"{n}\0{t}" for n, t in sorted(files.items()))]).encode()
    ).hexdigest()
    cache = CompileCache.default()
    blobs = cache.load(f"{key}") if cache is not None else None
    if blobs is None:
        blobs = _compile(files, unit, toolchain)
        if cache is not None:
            cache.store(key, blobs)
    if "error" in blobs:
        raise ReferenceBuildError(blobs["error"].decode())
    described: list[list[dict[str, Any]]] = json.loads(blobs["parameters"])
    return ReferenceProgram(blobs["binary"], tuple(tuple(_parameter(p) for p in k) for k in described))


def _parameter(data: Mapping[str, Any]) -> ParameterInfo:
    return ParameterInfo(
        data["kind"], data["size"], data.get("element", "raw"), data.get("element_size", 1), data.get("whole", 1),
        data.get("const", False),
    )  # fmt: skip


def _compile(files: Mapping[str, str], unit: str, toolchain: Toolchain) -> dict[str, bytes]:
    with tempfile.TemporaryDirectory(prefix="wavesmith-reference-") as name:
        folder = Path(name)
        for path, text in files.items():
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
        command = [
            str(toolchain.clang), "-x", "c++", "-std=c++20", "-O1", "-w", "-fno-strict-aliasing", "-fwrapv",
            "-fsanitize=bounds", "-fsanitize-trap=all", "-ffp-contract=on", *_cpu_flags(), "-I.",
            unit, "-o", "reference", "-lm",
        ]  # fmt: skip
        done = subprocess.run(
            command, cwd=folder, env=toolchain.environment(), capture_output=True, text=True, errors="replace",
            timeout=300, check=False,
        )  # fmt: skip
        if done.returncode:
            errors = [line for line in done.stderr.splitlines() if "error:" in line]
            return {"error": (errors[0] if errors else done.stderr[-300:]).encode()}
        binary = (folder / "reference").read_bytes()
        ended = _confined([str(folder / "reference"), "describe", "kernels"], folder, 20.0)
        if ended.code != 0:
            return {"error": f"the reference does not start: {ended.stderr[-200:]}".encode()}
        return {"binary": binary, "parameters": ended.stdout.encode()}


def _confined(command: Sequence[str], work: Path, timeout_s: float) -> Ended:
    """The program holds code of the user's, its static constructors included."""
    return run_isolated(
        command, confinement=Confinement(writable=(work,)), limits=Limits(wall_s=timeout_s, memory_bytes=4 * 2**30),
        on_result=lambda data: None,
    )  # fmt: skip


def _cpu_flags() -> list[str]:
    """Fused multiply-add and half conversion where this CPU has them."""
    try:
        flags = Path("/proc/cpuinfo").read_text(encoding="utf-8").split("flags", 1)[-1].split("\n", 1)[0].split()
    except OSError:
        return []
    return [f"-m{name}" for name in ("fma", "f16c") if name in flags]
