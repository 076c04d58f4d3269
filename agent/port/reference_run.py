"""Build the reference program and run it, confined: it executes code of the user's."""

from __future__ import annotations

import hashlib
import json
import re
import struct
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent.port.reference_model import model_digest, model_flags
from sandbox.compile_cache import CompileCache
from sandbox.isolation import Confinement, Ended, Limits, run_isolated
from sandbox.toolchain import Toolchain

EXITS = {30: "fault", 31: "deadlock", 32: "undefined", 33: "unsupported", 34: "race"}
_RACE_FLAGS = ("-DWAVESMITH_RACES", "-fsanitize-coverage=func,trace-loads,trace-stores", "-fno-sanitize-link-runtime")
_FORMAT = 8


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
    single: bool = False
    """Its double-precision values come from single-precision arithmetic, whose rounding differs."""


@dataclass(frozen=True, slots=True)
class ReferenceRun:
    """`status` is ok, fault, deadlock, undefined, unsupported, race, timeout or failed. Buffers in argument order."""

    status: str
    buffers: tuple[bytes, ...]
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Complaint:
    """One error of the compiler; `via` are the lines of other code that led to it, such as `("kernels", 3)`."""

    file: str
    line: int
    message: str
    via: tuple[tuple[str, int], ...] = ()

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.message}" if self.file else self.message


class ReferenceBuildError(Exception):
    """The original does not build for the CPU model. The message is the compiler's first complaint."""

    def __init__(self, complaints: Sequence[Complaint]) -> None:
        super().__init__(str(complaints[0]))
        self.complaints = tuple(complaints)


@dataclass(frozen=True)
class ReferenceProgram:
    """A built reference with its kernels' parameters, in the order they were asked for."""

    binary: bytes
    parameters: tuple[tuple[ParameterInfo, ...], ...]

    def run(
        self, kernel: int, grid: Sequence[int], block: Sequence[int], shared_bytes: int,
        arguments: Sequence[bytes | tuple[bytes]], *, schedules: Sequence[int] = (0, 1), timeout_s: float = 20.0,
    ) -> list[ReferenceRun]:  # fmt: skip
        """One launch under each schedule, up to the first that goes wrong: 0 takes blocks and threads in order,
        1 a block's threads in reverse, 2 the blocks too, others mix both.

        An argument is raw bytes of a value, or a 1-tuple of the bytes a pointer's buffer holds.
        """
        packed = struct.pack("<9I", kernel, *grid, *block, shared_bytes, len(arguments))
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
            outputs = [work / f"{schedule}.bin" for schedule in schedules]
            pairs = [word for s, o in zip(schedules, outputs, strict=True) for word in (str(s), str(o))]
            command = [str(program), "run", str(work / "in.bin"), str(work / "codes"), *pairs]
            ended = _confined(command, work, timeout_s)
            if ended.ending == "timeout":
                return [ReferenceRun("timeout", (), "the original did not end in time")]
            if ended.code != 0:
                return [ReferenceRun("failed", (), ended.stderr.strip()[-200:] or f"{ended.ending} {ended.signal}")]
            codes = [int(c) for c in (work / "codes").read_text().split()]
            return [_read_run(o, c, sizes) for o, c in zip(outputs, codes, strict=False)]


def _read_run(output: Path, code: int, sizes: Sequence[int]) -> ReferenceRun:
    if code != 0:
        said = Path(f"{output}.error").read_text(encoding="utf-8", errors="replace").strip()[-200:]
        return ReferenceRun(EXITS.get(code, "failed"), (), said or f"it ended with {code}")
    data = output.read_bytes()
    buffers, at = [], 0
    for size in sizes:
        buffers.append(data[at : at + size])
        at += size
    return ReferenceRun("ok", tuple(buffers))


def build_reference(
    files: Mapping[str, str], unit: str, toolchain: Toolchain, folders: Sequence[str] = (), *,
    races: bool = False, lanes: int = 32,
) -> ReferenceProgram:  # fmt: skip
    """Compile the program of `reference_tree`; raises `ReferenceBuildError` when it does not build.

    `folders` of the tree are searched for includes. With `races` a launch ends as a `race` when two threads use
    the same memory in an order that nothing settles. `lanes` of a warp: 32 is CUDA, 64 HIP on a CDNA GPU.
    """
    key = hashlib.sha256(
        "\0".join(
            [
                str(_FORMAT),
                model_digest(),
                toolchain.digest,
                unit,
                str(races),
                str(lanes),
                *folders,
                *(f"{n}\0{t}" for n, t in sorted(files.items())),
            ]
        ).encode()
    ).hexdigest()
    cache = CompileCache.default()
    blobs = cache.load(f"{key}") if cache is not None else None
    if blobs is None:
        blobs = _compile(
            files, unit, toolchain, folders, (*(_RACE_FLAGS if races else ()), f"-DWAVESMITH_LANES={lanes}")
        )
        if cache is not None:
            cache.store(key, blobs)
    if "errors" in blobs:
        raise ReferenceBuildError(
            [Complaint(f, n, m, tuple(map(tuple, v))) for f, n, m, v in json.loads(blobs["errors"])]
        )
    described: list[list[dict[str, Any]]] = json.loads(blobs["parameters"])
    return ReferenceProgram(blobs["binary"], tuple(tuple(_parameter(p) for p in k) for k in described))


def _parameter(data: Mapping[str, Any]) -> ParameterInfo:
    return ParameterInfo(
        data["kind"], data["size"], data.get("element", "raw"), data.get("element_size", 1), data.get("whole", 1),
        data.get("const", False),
    )  # fmt: skip


_MESSAGE = re.compile(
    r"^(?P<file>[^\s:][^:\n]*):(?P<line>\d+):\d+: (?P<kind>(?:fatal )?error|note|warning): (?P<text>.*)$"
)


def _complaints(stderr: str) -> list[Complaint]:
    found: list[Complaint] = []
    for line in stderr.splitlines():
        m = _MESSAGE.match(line)
        if m is None:
            continue
        place = (m["file"].removeprefix("./"), int(m["line"]))
        if m["kind"].endswith("error"):
            found.append(Complaint(*place, m["text"]))
        elif m["kind"] == "note" and found and "requested here" in m["text"]:
            last = found[-1]
            found[-1] = Complaint(last.file, last.line, last.message, (*last.via, place))
    return found or [Complaint("", 0, stderr.strip()[-300:] or "the compiler ended without a word")]


def _compile(
    files: Mapping[str, str], unit: str, toolchain: Toolchain, folders: Sequence[str], more: Sequence[str]
) -> dict[str, bytes]:
    with tempfile.TemporaryDirectory(prefix="wavesmith-reference-") as name:
        folder = Path(name)
        for path, text in files.items():
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
        flags = [
            "-std=c++20", "-O1", "-w", "-fno-strict-aliasing", "-fwrapv", "-fsanitize=bounds", "-fsanitize-trap=all",
            "-ftrivial-auto-var-init=zero", "-Xclang", "-no-enable-noundef-analysis",
            "-ffp-contract=on", *_cpu_flags(), *more,
        ]  # fmt: skip
        command = [
            str(toolchain.clang), "-x", "c++", *flags, *model_flags(flags, toolchain, folder / "wavesmith_reference"),
            "-ferror-limit=0", "-fno-color-diagnostics", "-fno-caret-diagnostics", "-I.", *(f"-I{f}" for f in folders),
            unit, "-o", "reference", "-lm",
        ]  # fmt: skip
        done = subprocess.run(
            command, cwd=folder, env=toolchain.environment(), capture_output=True, text=True, errors="replace",
            timeout=300, check=False,
        )  # fmt: skip
        if done.returncode:
            found = [(c.file, c.line, c.message, c.via) for c in _complaints(done.stderr)]
            return {"errors": json.dumps(found).encode()}
        binary = (folder / "reference").read_bytes()
        ended = _confined([str(folder / "reference"), "describe", "kernels"], folder, 20.0)
        if ended.code != 0:
            return {"errors": json.dumps([("", 0, f"it does not start: {ended.stderr[-200:]}", ())]).encode()}
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
