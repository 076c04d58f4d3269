"""Run a program many times in a confined child, on recorded and widened inputs, and bring back what each call did.

The child gets inputs only: recorded results stay here. Its messages are data from code nobody vouches for; whatever
does not parse is dropped, and what is missing counts against the program.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from sandbox.assembly import Assembly
from sandbox.capture import run_child
from sandbox.compiling import Compiled, CompileError, unpack
from sandbox.correctness import Results, TensorValue, Value
from sandbox.isolation import Ended, Limits
from sandbox.kernel import Kernel
from sandbox.target import Target
from sandbox.tensor_file import sealed, subset
from sandbox.variants import Step
from sandbox.workload import (
    Argument,
    CompileRecord,
    EntryCall,
    Launch,
    StorageRecord,
    StoredWorkload,
    TensorRecord,
    dumped,
)
from sandbox.workload import Value as Recorded

POISON_BYTE = 0xFF
"""What the child fills memory with that was allocated without a value."""
_BITS = {"bfloat16": "uint16", "bool": "bool", "complex64": "complex64", "complex128": "complex128"}
_MAX_ELEMENTS = 1 << 28


@dataclass(frozen=True, slots=True)
class Request:
    """One call to make: the step, and how. `again` marks a repetition that must give the same."""

    step: Step
    number: int
    """Which step of the plan it is."""
    order: str = "lockstep"
    wide: bool = False
    compile: bool = False
    reuse: bool = False
    all_configs: bool = False
    again: bool = False
    execute: bool = True
    """False: the call is made for what its launches compile to; none runs, and no value is read."""
    watch: tuple[str, ...] = ()
    schedule: str = "lockstep"
    """Order of waves in the emulator: `lockstep`, `sequential`, `reverse`, `random:SEED`."""
    shuffle: bool = False
    """Made once more with random orders where its host code puts integers in order."""
    name_inputs: bool = False
    """Say which inputs it was given (`Call.inputs_digest`), as every `wide` call does, which it is compared with."""

    def to_json(self) -> dict[str, Any]:
        return {
            "entry": self.step.entry,
            "variant": self.step.variant.to_json(),
            "order": self.order,
            "wide": self.wide,
            "compile": self.compile,
            "reuse": self.reuse,
            "all_configs": self.all_configs,
            "execute": self.execute,
            "watch": list(self.watch),
            "schedule": self.schedule,
            "shuffle": self.shuffle,
            "name_inputs": self.name_inputs or self.wide,
        }


@dataclass(frozen=True, slots=True)
class TrialLaunch:
    """One launch below a call."""

    kernel: str
    own: bool
    """Whether its source is text of the program's own files."""
    executed: bool
    reason: str | None
    findings: tuple[str, ...]
    grid: tuple[int, ...]
    by: str = "interpreter"
    """Which executor ran it."""
    counters: Mapping[str, int] = field(default_factory=dict)
    """What the emulator counted, named as rocprofv3 names it."""
    persistent: tuple[str, ...] = ()
    """Arguments whose memory outlives calls and was changed."""


@dataclass(frozen=True, slots=True)
class ProgramError:
    """What the program raised."""

    type: str
    message: str
    line: int | None

    def __str__(self) -> str:
        return f"{self.type}: {self.message}" + (f" (line {self.line})" if self.line is not None else "")


@dataclass(frozen=True, slots=True)
class Call:
    """What one call did. `skipped` says why it could not be made; then nothing else is set."""

    request: Request
    results: Results = field(default_factory=dict)
    changed: tuple[str, ...] = ()
    """Argument tensors whose memory the call changed."""
    launches: tuple[TrialLaunch, ...] = ()
    torch_functions: Mapping[str, int] = field(default_factory=dict)
    orderings: Mapping[str, int] = field(default_factory=dict)
    """torch functions that put integers in order for kernels: no library calls."""
    misordered: tuple[str, ...] = ()
    """What else was done with such integers."""
    fed: Mapping[str, int] = field(default_factory=dict)
    """Kernels that were given such integers, with in how many launches."""
    shuffled: bool = False
    """Whether random orders took the place of those found."""
    inputs_digest: str = ""
    error: ProgramError | None = None
    broken_guards: int = 0
    config: int = 0
    skipped: str | None = None

    @property
    def executed(self) -> bool:
        """Whether every launch ran, so that the results are real."""
        return self.skipped is None and all(launch.executed for launch in self.launches)

    @property
    def findings(self) -> tuple[str, ...]:
        return tuple(f for launch in self.launches for f in launch.findings)


@dataclass(frozen=True, slots=True)
class CompiledLaunch:
    """A launch of a recorded call, compiled for the target."""

    kernel: str
    grid: tuple[int, ...]
    record: CompileRecord
    result: Compiled | CompileError | None


@dataclass(frozen=True, slots=True)
class Trial:
    """Everything one child run showed of a program."""

    executor: str
    calls: tuple[Call, ...]
    compiled: tuple[CompiledLaunch, ...]
    changed_later: frozenset[int]
    """Indices of requests whose results a later call overwrote."""
    source_sha256: str | None
    device: str | None
    """Name of the GPU that executed, None where none did."""
    device_arch: str | None
    import_error: ProgramError | None
    failure: str | None
    """Why the child did not come to its end."""
    ended: Ended

    def of(self, number: int, *, wide: bool = False) -> Call | None:
        """The first plain call of a step, or the one in wider arithmetic."""
        for call in self.calls:
            request = call.request
            plain = not request.again and request.order == "lockstep" and call.config == 0 and not call.shuffled
            if request.number == number and request.wide == wide and plain:
                return call
        return None


def run_trial(
    kernel: Kernel,
    stored: StoredWorkload,
    target: Target,
    requests: Sequence[Request],
    *,
    executor: str,
    limits: Limits,
    seed: int,
    device: int | None = None,
) -> Trial:
    """Make the calls in the given order, on GPU number `device` where one is named.

    Raises `SandboxError` when no child can run.
    """
    job = {
        "mode": "trials",
        "kernel": kernel.filename,
        "harness": None,
        "targets": [target.board.name],
        "executor": executor,
        "seed": seed,
        "distribution": "recorded",
        "compile": True,
        "options": {"steps": [r.to_json() for r in requests], "seed": seed},
        "device": device,
    }
    given = inputs_only(stored)
    tensors = sealed(stored.tensors, given.tensors)
    files = {"workload.json": dumped(given.workload)}
    assembly, ended, failure = run_child(job, kernel, None, limits, files=files, tensors=tensors)
    return _trial(assembly, ended, failure, requests, executor)


def source_digest(kernel: Kernel) -> str:
    """What a child must say it loaded."""
    return hashlib.sha256(kernel.source.encode()).hexdigest()


# --- what the child gets ----------------------------------------------------------------------------------------------


def inputs_only(stored: StoredWorkload) -> StoredWorkload:
    """The workload without any recorded result: a program cannot return what it was never given."""
    workload = stored.workload
    needed: set[int] = set()
    entries = [_entry_inputs(e, needed) for e in workload.entries]
    storages = tuple(s if s.id in needed else StorageRecord(s.id, s.nbytes, s.dtype) for s in workload.storages)
    names = {k for s in storages for k in (s.key, s.page_key) if k is not None}
    launches = tuple(_launch_inputs(launch) for launch in workload.launches)
    outcome = replace(workload.outcome, checks=(), traceback=None, exception=None)
    reduced = replace(workload, entries=tuple(entries), storages=storages, launches=launches, outcome=outcome)
    return StoredWorkload(reduced, subset(stored.tensors, names))


def _entry_inputs(entry: EntryCall, needed: set[int]) -> EntryCall:
    given: dict[str, TensorRecord] = {}
    roots = {f"args.{i}": v for i, v in enumerate(entry.args)} | {f"kwargs.{k}": v for k, v in entry.kwargs.items()}
    for path, value in roots.items():
        given |= _tensor_paths(path, value)
    for value in (*entry.grads, *([entry.receiver] if entry.receiver is not None else [])):
        needed.update(t.storage for t in value.tensors())
    needed.update(t.storage for t in given.values())
    if entry.rng_state is not None:
        needed.add(entry.rng_state)
    mutated = {path: given[path] for path in entry.mutated if path in given}
    return replace(entry, outputs=None, mutated=mutated)


def _tensor_paths(path: str, value: Recorded) -> dict[str, TensorRecord]:
    own = {path: value.tensor} if value.tensor is not None else {}
    for i, item in enumerate(value.items):
        own |= _tensor_paths(f"{path}.{i}", item)
    return own


def _launch_inputs(launch: Launch) -> Launch:
    none = Recorded("none")
    args = tuple(Argument(a.name, a.kind, a.value if a.kind == "constexpr" else none) for a in launch.args)
    return replace(launch, args=args, compiles=())


# --- what it said -----------------------------------------------------------------------------------------------------


def _trial(assembly: Assembly, ended: Ended, failure: str | None, requests: Sequence[Request], executor: str) -> Trial:
    calls: list[Call] = []
    launches: dict[int, Mapping[str, Any]] = {}
    changed: set[int] = set()
    source: Mapping[str, Any] = {}
    import_error: ProgramError | None = None
    for kind, data, blob in assembly.trial:
        if kind == "trial":
            number = int(data["step"])
            if 0 <= number < len(requests):
                calls.append(_call(requests[number], data["report"], blob))
        elif kind == "trial-launch":
            launches[int(data["index"])] = data
        elif kind == "trial-changed":
            changed.add(int(data["step"]))
        elif kind == "trial-source":
            source = data
        elif kind == "trial-import":
            import_error = _error(data["error"])
    compiled = tuple(
        CompiledLaunch(str(d["kernel"]), tuple(d["grid"]), record, _unpacked(assembly, record))
        for index, d in launches.items()
        for record in assembly.compiles.get(index, ())
    )
    sha256, device, arch = (str(source[k]) if source.get(k) else None for k in ("sha256", "device", "arch"))
    return Trial(
        executor, tuple(calls), compiled, frozenset(changed), sha256, device, arch, import_error, failure, ended
    )


def _unpacked(assembly: Assembly, record: CompileRecord) -> Compiled | CompileError | None:
    blobs = assembly.blobs.get(record.blob)
    return unpack(blobs) if blobs else None


def _call(request: Request, report: Mapping[str, Any], blob: bytes) -> Call:
    if "skipped" in report:
        return Call(request, skipped=str(report["skipped"]))
    return Call(
        request,
        results=_results(report["results"], blob),
        changed=tuple(map(str, report["changed"])),
        launches=tuple(_launch(x) for x in report["launches"]),
        torch_functions={str(k): int(v) for k, v in report["torch"].items()},
        orderings={str(k): int(v) for k, v in report["orderings"].items()},
        misordered=tuple(map(str, report["misordered"])),
        fed={str(k): int(v) for k, v in report["fed"].items()},
        shuffled=bool(report["shuffled"]),
        inputs_digest=str(report["inputs"]),
        error=_error(report["error"]) if report.get("error") else None,
        broken_guards=int(report["broken_guards"]),
        config=int(report["config"]),
    )


def _launch(data: Mapping[str, Any]) -> TrialLaunch:
    return TrialLaunch(
        kernel=str(data["kernel"]),
        own=bool(data["own"]),
        executed=data["status"] == "executed",
        reason=str(data["reason"]) if data["reason"] is not None else None,
        findings=tuple(map(str, data["findings"])),
        grid=tuple(int(n) for n in data["grid"]),
        by=str(data["by"]),
        counters={str(k): int(v) for k, v in data["counters"].items()},
        persistent=tuple(map(str, data["persistent"])),
    )


def _error(data: Mapping[str, Any]) -> ProgramError:
    line = data.get("line")
    first = str(data["message"]).strip().partition("\n")[0]  # CUDA's go on with advice
    return ProgramError(str(data["type"]), first, int(line) if line is not None else None)


def _results(listing: Sequence[Mapping[str, Any]], blob: bytes) -> dict[str, Value]:
    found: dict[str, Value] = {}
    position, view = 0, memoryview(blob)
    for item in listing:
        place = str(item["place"])
        if "dtype" not in item:
            found[place] = f"{item['type']} {item['value']}"
            continue
        shape = tuple(int(n) for n in item["shape"])
        size = int(item["nbytes"])
        found[place] = _tensor(str(item["dtype"]), shape, item["stride"], view[position : position + size])
        position += size
    return found


def _tensor(dtype: str, shape: tuple[int, ...], stride: Sequence[int], data: memoryview) -> TensorValue:
    """A tensor from its elements' bytes; bytes that do not fit its shape give a value that equals no other."""
    kind = "uint8" if dtype.startswith("float8") else _BITS.get(dtype, dtype)
    strides = tuple(int(n) for n in stride)
    try:
        numpy_dtype = np.dtype(kind)
        count = int(np.prod(shape, dtype=np.int64)) if shape else 1
        if count > _MAX_ELEMENTS or count * numpy_dtype.itemsize != len(data):
            raise ValueError("another size")
        return TensorValue(dtype, shape, strides, np.frombuffer(data, numpy_dtype).reshape(shape))
    except (TypeError, ValueError):
        return TensorValue(f"unreadable {dtype}", shape, strides, np.zeros(0, np.uint8))
