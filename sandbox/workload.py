"""What a run of a kernel file did, as data: kernel launches, the host calls that caused them, and the values they saw.

A `Workload` is a folder, `workload.json` and `tensors.safetensors`, that replays standalone (`sandbox.capture.replay`).
Reading the JSON needs neither torch nor numpy. Tensor memory is kept per *storage snapshot*, not per tensor, so that
aliasing views, strides and offsets survive exactly; a storage too large to keep stays in the record with the reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal

from pydantic import ConfigDict, TypeAdapter, ValidationError

from sandbox.errors import InputError
from sandbox.limits import LimitKind
from sandbox.tensor_file import TensorFile, write_tensor_file

FORMAT = 1
"""Raised when the meaning of a stored field changes; a folder of another format is refused."""

_JSON = ConfigDict(extra="forbid")

ValueKind = Literal[
    "tensor", "int", "float", "bool", "str", "none", "complex", "dtype", "tl_dtype", "device", "size", "list", "tuple",
    "dict", "namedtuple", "dataclass", "slice", "ellipsis", "global", "module", "object", "descriptor", "generator",
    "unsupported",
]  # fmt: skip
Status = Literal["executed", "unknown", "skipped"]
ExecutorName = Literal["gpu", "interpreter", "emulator", "none"]
Phase = Literal["forward", "backward"]


@dataclass(frozen=True, slots=True)
class StorageRecord:
    """The bytes of one tensor storage at one moment.

    Dense: `key` names a 1-D tensor of the file. Sparse (huge, mostly untouched): `page_key` names the int64 numbers of
    the 4096-byte pages that were touched and `key` their bytes; every other page reads as zeros. Neither: `reason` says
    why.
    """

    id: int
    nbytes: int
    dtype: str
    key: str | None = None
    page_key: str | None = None
    reason: str | None = None
    zero: bool = False
    """Whether every byte is zero, as in a buffer that is added into."""

    __pydantic_config__ = _JSON


@dataclass(frozen=True, slots=True)
class TensorRecord:
    """A view of a storage snapshot. `dtype` is torch's name without `torch.`; `stride` and `offset` count elements."""

    dtype: str
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int
    storage: int
    requires_grad: bool = False
    aligned: bool = True
    """Whether the address was a multiple of 16 bytes, as Triton's specialisation asks."""
    device: str = "cuda"

    @property
    def numel(self) -> int:
        n = 1
        for size in self.shape:
            n *= size
        return n

    __pydantic_config__ = _JSON


@dataclass(frozen=True, slots=True)
class Value:
    """One Python value as data; a tree for containers.

    `value` holds plain scalars and names (infinite and NaN floats as text); `items` the elements, `keys` their names
    (dict, namedtuple, dataclass, object); `type` the qualified class name where there is one. `unsupported` carries the
    `repr` and cannot be replayed.
    """

    kind: ValueKind
    value: bool | int | float | str | None = None
    items: tuple[Value, ...] = ()
    keys: tuple[str, ...] = ()
    tensor: TensorRecord | None = None
    type: str | None = None

    def tensors(self) -> tuple[TensorRecord, ...]:
        """Every tensor of the tree, depth first."""
        own = (self.tensor,) if self.tensor is not None else ()
        return own + tuple(t for item in self.items for t in item.tensors())

    def replayable(self) -> bool:
        return self.kind != "unsupported" and all(item.replayable() for item in self.items)

    __pydantic_config__ = _JSON


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a kernel launch, by parameter name. `kind` is how the kernel takes it."""

    name: str
    kind: Literal["tensor", "scalar", "constexpr", "none", "tuple", "descriptor", "unsupported"]
    value: Value
    written: bool | None = None
    """Whether the launch changed the tensor's contents; None when it was not executed or not compared."""
    after: TensorRecord | None = None
    """The tensor after the launch, for a written argument that was kept."""

    __pydantic_config__ = _JSON


@dataclass(frozen=True, slots=True)
class TuningConfig:
    """One `triton.Config`. `grid` is what the launch's grid function gives for it."""

    kwargs: Mapping[str, Value]
    options: Mapping[str, int | bool | str | float | None]
    grid: tuple[int, int, int] | None = None
    fits: bool | None = None
    """Whether it compiles and keeps to the target's launch limits; None when it was not tried."""
    reason: str | None = None
    limit_kind: LimitKind | None = None
    """Which limit of the target it breaks; None where `reason` is another, or the recording is older."""

    __pydantic_config__ = _JSON


@dataclass(frozen=True, slots=True)
class Autotune:
    """The autotuner around a kernel: every config, and the one that is assumed as baseline (`index`).

    Without a GPU nothing is timed: the assumed config is the first that fits the target, else the first.
    """

    configs: tuple[TuningConfig, ...]
    index: int
    key: tuple[str, ...] = ()
    total: int = 0
    """Configs before pruning."""

    __pydantic_config__ = _JSON


OVER_BUDGET = "programs ran"
"""How a reason ends that speaks of time: `12 of 2048 programs ran`."""


@dataclass(frozen=True, slots=True)
class Execution:
    """Whether and by what a launch ran. `unknown`: its outputs hold nothing to compare; `reason` says why."""

    status: Status
    by: ExecutorName = "none"
    reason: str | None = None
    elapsed_s: float | None = None
    findings: tuple[str, ...] = ()
    """What went wrong without stopping it, such as an access outside its tensor."""

    __pydantic_config__ = _JSON

    @property
    def over_budget(self) -> bool:
        """Whether the time for it would not do."""
        return self.status == "unknown" and (self.reason or "").endswith(OVER_BUDGET)


@dataclass(frozen=True, slots=True)
class CompileRecord:
    """The compile result of a launch for one target. `blob` names the result in `Workload.compiled`."""

    arch: str
    ok: bool
    blob: str
    error_kind: str | None = None
    message: str | None = None
    file: str | None = None
    line: int | None = None
    limit: str | None = None
    """A launch limit of the target that the compiled kernel breaks (LDS, threads, grid), in words."""
    limit_kind: LimitKind | None = None
    """Which limit that is; None without one, and in older recordings."""

    @property
    def launches(self) -> bool:
        return self.ok and self.limit is None

    __pydantic_config__ = _JSON


@dataclass(frozen=True, slots=True)
class Launch:
    """One kernel launch, recorded before it was compiled or executed."""

    index: int
    kernel: str
    file: str
    line: int
    args: tuple[Argument, ...]
    grid: tuple[int, int, int]
    options: Mapping[str, Value]
    """Keyword arguments that are not kernel parameters: `num_warps`, `num_stages`, ..."""
    call_line: int | None = None
    """Line of the user's file that launched it."""
    autotune: Autotune | None = None
    heuristics: tuple[str, ...] = ()
    """Parameters whose values `triton.heuristics` computed."""
    execution: Execution = Execution("unknown", reason="the run ended before it was executed")
    compiles: tuple[CompileRecord, ...] = ()
    entry: int | None = None
    phase: Phase = "forward"
    benchmark: bool = False
    """Launched from inside `triton.testing.do_bench`."""

    @property
    def constexprs(self) -> dict[str, Value]:
        return {a.name: a.value for a in self.args if a.kind == "constexpr"}

    def argument(self, name: str) -> Argument:
        for a in self.args:
            if a.name == name:
                return a
        raise KeyError(name)

    __pydantic_config__ = _JSON


EntryKind = Literal["function", "method", "autograd", "program", "kernel"]


@dataclass(frozen=True, slots=True)
class EntryCall:
    """A host call that a replay repeats: the outermost function of the user's file that takes and gives tensors.

    `function`: module-level callable; `method`: a method, `receiver` rebuilds its object; `autograd`: `apply` of a
    `torch.autograd.Function`; `program`: a callable that makes its own inputs (only the random state varies); `kernel`:
    no such function exists, the launch itself is repeated. With `grads`, replay continues with `backward`.
    """

    index: int
    kind: EntryKind
    qualname: str
    args: tuple[Value, ...]
    kwargs: Mapping[str, Value]
    parameters: tuple[str, ...] = ()
    """Names of the positional arguments."""
    receiver: Value | None = None
    outputs: Value | None = None
    mutated: Mapping[str, TensorRecord] = field(default_factory=dict)
    """Path of an argument tensor (`args.0`, `kwargs.out`, `args.2.1`) to its contents after the call."""
    grads: tuple[Value, ...] = ()
    """Gradient of each output tensor that received one, else a `none` value; in order of the output tree."""
    rng_state: int | None = None
    """Storage snapshot of torch's CPU generator at the call."""
    launches: tuple[int, ...] = ()
    known: bool = True
    """Whether every launch below it was executed, so that outputs hold real values."""
    exact: bool = True
    """Whether the inputs are exactly those at the call (False: the function changed some before its first launch)."""

    __pydantic_config__ = _JSON


@dataclass(frozen=True, slots=True)
class HarnessCheck:
    """A comparison the harness itself made (`torch.testing.assert_close`, `torch.allclose`, ...)."""

    call: str
    passed: bool
    known: bool
    """False when a launch before it had unknown outputs: then `passed` says nothing."""
    rtol: float | None = None
    atol: float | None = None
    max_abs_error: float | None = None
    line: int | None = None
    expected: TensorRecord | None = None
    """What the harness expected: its own reference, usable as an oracle."""
    entry: int | None = None
    """The entry call whose output was compared, where that is known."""
    output: int | None = None
    """Which tensor of that entry's outputs (depth first); None for a mutated argument or a derived tensor."""
    actual_dtype: str | None = None

    __pydantic_config__ = _JSON


HarnessForm = Literal["main", "tests", "kernelbench", "other-file", "workload-file", "static", "program"]


@dataclass(frozen=True, slots=True)
class HarnessOutcome:
    """How the harness itself ended. `unknown`: it failed, but launches before had unknown outputs; not a fault."""

    form: HarnessForm
    status: Literal["passed", "failed", "unknown", "none"]
    exception: str | None = None
    """Type and message, one line."""
    file: str | None = None
    line: int | None = None
    traceback: str | None = None
    checks: tuple[HarnessCheck, ...] = ()

    __pydantic_config__ = _JSON


@dataclass(frozen=True, slots=True)
class Workload:
    """One recorded run: replayable entry calls, the launches below them, and every value kept.

    `tensors` and `compiled` hold the bytes; both are empty views until a folder is loaded or a capture made.
    """

    filename: str
    kernel_digest: str
    target: str
    board: str
    launches: tuple[Launch, ...]
    entries: tuple[EntryCall, ...]
    storages: tuple[StorageRecord, ...]
    outcome: HarnessOutcome
    versions: Mapping[str, str]
    skip_statements: tuple[str, ...] = ()
    """Digests of module-level statements that ran the harness: importing a candidate leaves them out."""
    harness_filename: str | None = None
    seed: int = 0
    distribution: str = "recorded"
    scale: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables that the harness set: the file may need them where it is imported."""
    notes: tuple[str, ...] = ()
    format: int = FORMAT

    def kernels(self) -> tuple[str, ...]:
        """Names of the kernels launched, in order of first launch."""
        return tuple(dict.fromkeys(launch.kernel for launch in self.launches))

    __pydantic_config__ = _JSON


@dataclass(frozen=True, slots=True)
class StoredWorkload:
    """A workload together with its bytes."""

    workload: Workload
    tensors: TensorFile
    compiled: Mapping[str, Mapping[str, bytes]] = field(default_factory=dict)
    """Compile results by `CompileRecord.blob`, as `sandbox.compiling.unpack` takes them."""


def launch_place(workload: Workload, entry: EntryCall) -> tuple[int, int]:
    """Which of the file's statements at module level that launch this kernel an entry of kind `kernel` came from, and
    of how many, in the order of their lines."""
    same = [e for e in workload.entries if e.kind == "kernel" and e.qualname == entry.qualname]
    lines = {e.index: workload.launches[e.launches[0]].call_line or 0 for e in same}
    places = sorted(set(lines.values()))
    return places.index(lines[entry.index]), len(places)


def save(stored: StoredWorkload, folder: Path) -> Path:
    """Write the folder (created where missing); returns it. Compile results are left out: they can be made again."""
    folder.mkdir(parents=True, exist_ok=True)
    write_tensor_file(folder / "tensors.safetensors", stored.tensors)
    (folder / "workload.json").write_bytes(dumped(stored.workload))
    return folder


def dumped(workload: Workload) -> bytes:
    """A workload as JSON; inverse of `parse`."""
    return bytes(_adapter().dump_json(workload, indent=1))


def load_workload(folder: Path) -> StoredWorkload:
    """Read a folder written by `save`; raises `InputError` when it is not one or of another format."""
    path = folder / "workload.json"
    if not path.is_file():
        raise InputError("this folder is no workload.", file=folder, remedy="Make one with `wavesmith capture`.")
    workload = parse(path.read_bytes(), path)
    return StoredWorkload(workload, TensorFile.open(folder / "tensors.safetensors"))


def parse(data: bytes, path: Path | str = "workload.json") -> Workload:
    """A workload from its JSON; raises `InputError`."""
    try:
        workload: Workload = _adapter().validate_json(data)
    except ValidationError as e:
        first = e.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise InputError(f"not a workload: {place}: {first['msg']}.", file=path, remedy="Capture it again.") from None
    if workload.format != FORMAT:
        raise InputError(
            f"workload format {workload.format}, this version reads {FORMAT}.", file=path, remedy="Capture it again."
        )
    return workload


@cache
def _adapter() -> TypeAdapter[Any]:
    return TypeAdapter(Workload)
