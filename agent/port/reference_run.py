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

from agent.port.record_layout import Leaf, layouts
from agent.port.reference_model import model_digest, model_flags
from sandbox.compile_cache import CompileCache
from sandbox.isolation import Confinement, Ended, Limits, run_isolated
from sandbox.toolchain import Toolchain

EXITS = {30: "fault", 31: "deadlock", 32: "undefined", 33: "unsupported", 34: "race", 35: "block-size"}
REFILLED = 1 << 8
"""Threads as under schedule 0, but other contents of what nothing has written, and other undefined results."""
_RACE_FLAGS = ("-DWAVESMITH_RACES", "-fsanitize-coverage=func,trace-loads,trace-stores", "-fno-sanitize-link-runtime")
_LAYOUT_FLAGS = ("-Xclang", "-fdump-record-layouts-canonical")
_FORMAT = 12


@dataclass(frozen=True, slots=True)
class Packed:
    """A structure passed by value: its bytes, and for each pointer inside its place and what its buffer holds."""

    data: bytes
    pointers: tuple[tuple[int, bytes], ...]


Argument = bytes | tuple[bytes] | Packed
"""Raw bytes of a value, a 1-tuple of what a pointer's buffer holds, or a structure."""


@dataclass(frozen=True, slots=True)
class ParameterInfo:
    """One kernel parameter as the compiler sees it. `element` is float, half, bfloat16, int, uint, bool or raw."""

    kind: str
    """pointer, value, structure or other."""
    size_bytes: int
    element: str = "raw"
    element_bytes: int = 1
    whole_bytes: int = 1
    """Size of what a pointer points to, for example 16 for float4."""
    constant: bool = False
    single: bool = False
    """Its double-precision values come from single-precision arithmetic, whose rounding differs."""
    leaves: tuple[Leaf, ...] = ()
    """Of a structure."""

    @property
    def pointers(self) -> tuple[ParameterInfo, ...]:
        """The buffers that it leads to: its own, or those of the pointers inside it."""
        if self.kind == "pointer":
            return (self,)
        return tuple(
            ParameterInfo("pointer", 8, p.element, p.element_bytes, p.pointee_bytes, single=self.single)
            for p in self.leaves if p.pointee_bytes is not None
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class ReferenceRun:
    """`status` is ok, fault, deadlock, undefined, unsupported, race, block-size, timeout or failed. Buffers in argument
    order."""

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
        arguments: Sequence[Argument], *, schedules: Sequence[int] = (0, 1), timeout_s: float = 20.0,
    ) -> list[ReferenceRun]:  # fmt: skip
        """One launch under each schedule, up to the first that goes wrong: 0 takes blocks and threads in order,
        1 a block's threads in reverse, 2 the blocks too, others mix both. Each has contents of its own for what nothing
        has written; `REFILLED` changes these alone.
        """
        packed = struct.pack("<9I", kernel, *grid, *block, shared_bytes, len(arguments))
        packed += b"".join(_pack(a) for a in arguments)
        sizes = [len(data) for data in buffers_of(arguments)]
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


def buffers_of(arguments: Sequence[Argument]) -> list[bytes]:
    """What the buffers hold that arguments lead to, in order."""
    found: list[bytes] = []
    for a in arguments:
        if isinstance(a, Packed):
            found += [data for _, data in a.pointers]
        elif isinstance(a, tuple):
            found.append(a[0])
    return found


def _pack(a: Argument) -> bytes:
    if isinstance(a, tuple):
        return struct.pack("<IQ", 1, len(a[0])) + a[0]
    if isinstance(a, bytes):
        return struct.pack("<IQ", 0, len(a)) + a
    head = struct.pack("<IQ", 2, len(a.data)) + a.data + struct.pack("<I", len(a.pointers))
    return head + b"".join(struct.pack("<QQ", place, len(data)) + data for place, data in a.pointers)


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
    the same memory in an order that nothing settles, and local variables that nothing has written hold other values.
    `lanes` of a warp: 32 is CUDA, 64 HIP on a CDNA GPU.
    """
    blobs = _cached(files, unit, toolchain, folders, "races" if races else "kernels", lanes)
    if "errors" in blobs:
        raise ReferenceBuildError(
            [Complaint(f, n, m, tuple(map(tuple, v))) for f, n, m, v in json.loads(blobs["errors"])]
        )
    described: list[list[dict[str, Any]]] = json.loads(blobs["parameters"])
    records = layouts(blobs["layouts"].decode(), [p.get("type", "") for k in described for p in k])
    return ReferenceProgram(blobs["binary"], tuple(tuple(_parameter(p, records) for p in k) for k in described))


def build_program(files: Mapping[str, str], unit: str, toolchain: Toolchain, folders: Sequence[str] = ()) -> bytes:
    """The binary of a whole program on the CPU model; raises `ReferenceBuildError` when it does not build."""
    blobs = _cached(files, unit, toolchain, folders, "program")
    if "errors" in blobs:
        raise ReferenceBuildError(
            [Complaint(f, n, m, tuple(map(tuple, v))) for f, n, m, v in json.loads(blobs["errors"])]
        )
    return blobs["binary"]


@dataclass(frozen=True, slots=True)
class OriginalRun:
    """How the original program ended under one schedule. `code` is None when it did not end in time."""

    code: int | None
    stdout: str = ""
    stderr: str = ""


_EACH_SCHEDULE = """
ulimit -f 16384
for s in 0 1; do WAVESMITH_SCHEDULE=$s "$0" < /dev/null > "$1/out.$s" 2> "$1/err.$s"; echo $? > "$1/code.$s"; done
"""


def run_program(binary: bytes, timeout_s: float = 120.0) -> list[OriginalRun]:
    """The program under two schedules of its threads, which also differ in what fresh memory holds."""
    with tempfile.TemporaryDirectory(prefix="wavesmith-original-") as name:
        work = Path(name)
        program = work / "program"
        program.write_bytes(binary)
        program.chmod(0o755)
        _confined(["/bin/sh", "-c", _EACH_SCHEDULE, str(program), str(work)], work, timeout_s)
        return [_original_run(work, s) for s in (0, 1)]


def _original_run(work: Path, schedule: int) -> OriginalRun:
    code = work / f"code.{schedule}"
    if not code.exists():
        return OriginalRun(None)
    out, err = (work / f"{n}.{schedule}" for n in ("out", "err"))
    said = out.read_text(encoding="utf-8", errors="replace")
    return OriginalRun(int(code.read_text()), said, err.read_text(encoding="utf-8", errors="replace")[-2000:])


def _cached(
    files: Mapping[str, str], unit: str, toolchain: Toolchain, folders: Sequence[str], kind: str, lanes: int = 32
) -> dict[str, bytes]:
    """What `_compile` makes of it, kept."""
    parts = [str(_FORMAT), model_digest(), toolchain.digest, unit, kind, str(lanes), *folders]
    parts += [f"{n}\0{t}" for n, t in sorted(files.items())]
    key = hashlib.sha256("\0".join(parts).encode()).hexdigest()
    cache = CompileCache.default()
    blobs = cache.load(key) if cache is not None else None
    if blobs is None:
        blobs = _compile(files, unit, toolchain, folders, kind, lanes)
        if cache is not None:
            cache.store(key, blobs)
    return blobs


def _parameter(data: Mapping[str, Any], records: Mapping[str, list[Leaf]]) -> ParameterInfo:
    if data["kind"] == "other" and (leaves := records.get(data.get("type", ""))) is not None:
        return ParameterInfo("structure", data["size"], leaves=tuple(leaves))
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
    files: Mapping[str, str], unit: str, toolchain: Toolchain, folders: Sequence[str], kind: str, lanes: int
) -> dict[str, bytes]:
    with tempfile.TemporaryDirectory(prefix="wavesmith-reference-") as name:
        folder = Path(name)
        for path, text in files.items():
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
        flags = [
            "-std=c++20", "-O1", "-w", "-fno-strict-aliasing", "-fwrapv", "-fsanitize=bounds", "-fsanitize-trap=all",
            f"-ftrivial-auto-var-init={'pattern' if kind == 'races' else 'zero'}", "-Xclang",
            "-no-enable-noundef-analysis",
            "-ffp-contract=on", f"-DWAVESMITH_LANES={lanes}", *_cpu_flags(), *(_RACE_FLAGS if kind == "races" else ()),
        ]  # fmt: skip
        command = [
            str(toolchain.clang), "-x", "c++", *flags, *model_flags(flags, toolchain, folder / "wavesmith_reference"),
            "-ferror-limit=0", "-fno-color-diagnostics", "-fno-caret-diagnostics", "-I.", *(f"-I{f}" for f in folders),
            unit, "-o", "reference", "-lm", *(_LAYOUT_FLAGS if kind == "kernels" else ()),
        ]  # fmt: skip
        done = subprocess.run(
            command, cwd=folder, env=toolchain.environment(), capture_output=True, text=True, errors="replace",
            timeout=300, check=False,
        )  # fmt: skip
        if done.returncode:
            found = [(c.file, c.line, c.message, c.via) for c in _complaints(done.stderr)]
            return {"errors": json.dumps(found).encode()}
        binary = (folder / "reference").read_bytes()
        if kind == "program":
            return {"binary": binary}
        ended = _confined([str(folder / "reference"), "describe", "kernels"], folder, 20.0)
        if ended.code != 0:
            return {"errors": json.dumps([("", 0, f"it does not start: {ended.stderr[-200:]}", ())]).encode()}
        return {"binary": binary, "parameters": ended.stdout.encode(), "layouts": done.stdout.encode()}


def _confined(command: Sequence[str], work: Path, timeout_s: float) -> Ended:
    """The program holds code of the user's, its static constructors included. Its output is kept whole: the description
    of some hundred kernels is long."""
    limits = Limits(wall_s=timeout_s, memory_bytes=4 * 2**30, tail_bytes=64 * 2**20)
    return run_isolated(command, confinement=Confinement(writable=(work,)), limits=limits, on_result=lambda data: None)


def _cpu_flags() -> list[str]:
    """Fused multiply-add and half conversion where this CPU has them."""
    try:
        flags = Path("/proc/cpuinfo").read_text(encoding="utf-8").split("flags", 1)[-1].split("\n", 1)[0].split()
    except OSError:
        return []
    return [f"-m{name}" for name in ("fma", "f16c") if name in flags]
