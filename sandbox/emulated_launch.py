"""A recorded launch repeated in the emulator from its recorded bytes, in this process, without the user's code.

Where not every workgroup of a grid runs, results are compared only where the ones that ran changed memory, and not at
all where the kernel updates memory atomically: there other writers are missing.
"""

from __future__ import annotations

import hashlib
import math
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sandbox.compiling import Compiled, unpack
from sandbox.correctness import Mismatch, TensorValue, compare
from sandbox.emulator import Allocation, EmulationResult, Memory, emulate, load_code_object
from sandbox.emulator.run import Schedule
from sandbox.number_formats import FORMATS, decode
from sandbox.workload import Argument, Launch, StorageRecord, StoredWorkload, TensorRecord, Value

Bytes = npt.NDArray[np.uint8]
MIN_SAMPLE = 64
"""Workgroups drawn from a large grid, beside the first, the last and the tail of each axis."""
_PAGE_BYTES = 4096
_NUMPY = {"bfloat16": "uint16", "bool": "uint8"}
_NARROW_MULTIPLE, _WIDE_MULTIPLE, _RMS_MULTIPLE, _WIDE_ROUNDOFF = 8, 64, 4, 2.0**-20
"""Roundings that an element (of 16-bit types, of wider ones) and the whole tensor may be off, relative to the size of
the element and the root mean square of the tensor."""
_NARROWED = re.compile(r"(?:truncf|fp_to_fp).* (?:to|->) (?:tensor<[^>]*x)?(bf16|f16)\b")


class CannotRepeat(Exception):  # noqa: N818 - an outcome: nothing is known of the launch
    """The launch cannot be repeated from what was recorded; the message says why."""


@dataclass(frozen=True, slots=True)
class Repeated:
    """One emulated launch. `compared` counts the elements whose recorded results were known and were compared.

    `mismatches` break the rule candidates are judged by, for the type of the result and without an oracle; `wrong` are
    those of them where the tensor as a whole disagrees too, in roundings of the narrowest type inside the kernel.
    """

    result: EmulationResult
    compared: int
    mismatches: tuple[Mismatch, ...]
    wrong: tuple[Mismatch, ...] = ()
    digest: str = ""
    """Of everything the kernel could write, after the run."""

    @property
    def sampled(self) -> bool:
        return len(self.result.workgroups_run) < self.result.workgroups_total


def compiled_for(stored: StoredWorkload, launch: Launch, arch: str) -> Compiled | None:
    """The launch's code for `arch`; None where it did not compile, breaks a limit, or was not compiled for it."""
    for record in launch.compiles:
        blobs = stored.compiled.get(record.blob)
        if record.arch == arch and record.launches and blobs is not None:
            result = unpack(blobs)
            return result if isinstance(result, Compiled) else None
    return None


def sample_grid(grid: tuple[int, int, int], whole: int, seed: int = 0) -> list[int]:
    """Numbers of the workgroups to run: all up to `whole`; else first, last, the last along each axis, seeded ones."""
    x, y, z = grid
    total = x * y * z
    if total <= whole:
        return list(range(total))
    chosen = {0, total - 1, x - 1, x * (y - 1), x * y * (z - 1)}
    draw = random.Random(seed)
    wanted = min(total, len(chosen) + MIN_SAMPLE)
    while len(chosen) < wanted:
        chosen.add(draw.randrange(total))
    return sorted(chosen)


def launch_key(launch: Launch) -> tuple[Any, ...]:
    """What makes two launches different: kernel, grid, constants, options, and types, shapes and strides of tensors."""
    values = tuple((a.name, a.kind, _shape(a.value)) for a in launch.args)
    return launch.kernel, launch.grid, values, tuple((k, v.value) for k, v in launch.options.items())


def _shape(value: Value) -> Any:
    t = value.tensor
    if t is not None:
        return t.dtype, t.shape, t.stride
    return value.value if not value.items else tuple(_shape(item) for item in value.items)


def repeat_launch(
    stored: StoredWorkload,
    launch: Launch,
    compiled: Compiled,
    *,
    workgroups: Sequence[int],
    instruction_budget: int,
    schedule: Schedule = "lockstep",
    model: bool = False,
    slack_bytes: int = 0,
    block_bytes: int = 1,
) -> Repeated:
    """Run the workgroups on the recorded inputs, and compare what they wrote with what was recorded after the launch.

    Tensors end at a multiple of `block_bytes`, as those of an allocator of such blocks do, and `slack_bytes` zeros
    follow, as other memory would on a device: accesses there are no fault then. What the kernel does wrong is in the
    result. Raises `CannotRepeat` where inputs were not kept, `InputError` for a launch
    that hardware would refuse.
    """
    memory = Memory()
    tensors: dict[int, Allocation] = {}
    arguments = [
        _pass(stored, name, value, memory, tensors, (block_bytes, slack_bytes))
        for name, value in _arguments(launch, compiled)
    ]
    before = {number: a.data.copy() for number, a in tensors.items()}
    result = emulate(
        load_code_object(compiled.code),
        compiled.kernel,
        launch.grid,
        (compiled.threads_per_workgroup, 1, 1),
        arguments,
        memory,
        dynamic_lds_bytes=compiled.lds_bytes,
        schedule=schedule,
        instruction_budget=instruction_budget,
        workgroups=list(workgroups),
        model=model,
        copied_lanes=compiled.copied_lanes,
    )
    digest = hashlib.blake2b(b"".join(a.data.tobytes() for a in tensors.values()), digest_size=16).hexdigest()
    partial = len(workgroups) < math.prod(launch.grid)
    missing_writers = partial and bool(result.counters.get("lane_atomics"))
    if not result.completed or launch.execution.status != "executed" or missing_writers:
        return Repeated(result, 0, (), digest=digest)
    pairs = {
        a.name: pair
        for a in launch.args
        if (pair := _pair(stored, a, tensors, before, partial)) is not None and pair[0].data.size
    }
    mismatches = [m for name, (got, want) in pairs.items() for m in compare({name: got}, {name: want}).mismatches]
    roundoff = narrowest_roundoff(compiled.ttir)
    wrong = [m for m in mismatches if m.check != "tolerance" or not _within(*pairs[m.place], roundoff)]
    compared = sum(int(got.data.size) for got, _ in pairs.values())
    return Repeated(result, compared, tuple(mismatches), tuple(wrong), digest)


def narrowest_roundoff(ttir: str) -> float:
    """Half a unit in the last place of the narrowest type a kernel rounds to on the way; 0 where it rounds to none.

    Products in tf32 count as float16, which has as many bits.
    """
    kinds = {match[1] for match in _NARROWED.finditer(ttir)}
    roundoffs = [FORMATS["bfloat16" if kind == "bf16" else "float16"].roundoff for kind in kinds]
    roundoffs += [FORMATS["float16"].roundoff] if "tf32" in ttir else []
    return max(roundoffs, default=0.0)


def _within(got: TensorValue, want: TensorValue, roundoff: float) -> bool:
    """Whether the tensors agree as a whole: errors small beside the tensor's own size, in units of the narrowest type.

    Candidates are judged more strictly, against an oracle; here both sides round, and neither is right.
    """
    fmt = FORMATS.get(got.dtype)
    if fmt is None:
        return False
    unit = max(roundoff, fmt.roundoff)
    c, b = decode(got.dtype, got.data), decode(want.dtype, want.data)
    with np.errstate(invalid="ignore"):
        error = np.where(c == b, 0.0, np.abs(c - b))
    if not np.isfinite(error).all():
        return False
    finite = np.where(np.isfinite(b), b, 0.0)
    scale = np.sqrt(np.mean(finite**2))
    multiple = _NARROW_MULTIPLE if unit > _WIDE_ROUNDOFF else _WIDE_MULTIPLE
    close = error <= multiple * unit * (np.abs(finite) + scale)
    return bool(close.all() and np.sqrt(np.mean(error**2)) <= _RMS_MULTIPLE * unit * scale)


def _pair(
    stored: StoredWorkload, argument: Argument, tensors: Mapping[int, Allocation], before: Mapping[int, Bytes],
    partial: bool,
) -> tuple[TensorValue, TensorValue] | None:  # fmt: skip
    """What the emulator left in a tensor argument, and what was recorded; None where that is not known.

    Of a part of the grid, only the elements it changed.
    """
    given = argument.value.tensor
    expected = argument.after or given
    if argument.kind != "tensor" or argument.written is None or expected is None or given is None:
        return None
    storage = stored.workload.storages[expected.storage]
    if storage.key is None or given.numel == 0:
        return None
    want = _view(_bytes_of(stored, storage), expected)
    got = _view(tensors[given.storage].data, given)
    if partial:
        bits = f"u{got.dtype.itemsize}"
        changed = got.view(bits) != _view(before[given.storage], given).view(bits)
        got, want = got[changed], want[changed]
    got_value, want_value = (
        TensorValue(given.dtype, v.shape, (0,) * v.ndim, np.ascontiguousarray(v)) for v in (got, want)
    )
    return got_value, want_value


def _view(data: Bytes, record: TensorRecord) -> npt.NDArray[Any]:
    """A tensor in its storage's bytes; bfloat16 and float8 as their bits."""
    kind = "uint8" if record.dtype.startswith("float8") else _NUMPY.get(record.dtype, record.dtype)
    dtype = np.dtype(kind)
    flat = data[: data.size // dtype.itemsize * dtype.itemsize].view(dtype)[record.offset :]
    steps = tuple(s * dtype.itemsize for s in record.stride)
    return np.lib.stride_tricks.as_strided(flat, record.shape, steps, writeable=False)


def _bytes_of(stored: StoredWorkload, storage: StorageRecord) -> Bytes:
    """A storage's contents, copied. Raises `CannotRepeat` where they were not kept."""
    if storage.key is None:
        raise CannotRepeat(storage.reason or "the recorded values were not kept")
    kept = np.frombuffer(stored.tensors[storage.key], np.uint8)
    if storage.page_key is None:
        return kept.copy()
    out = np.zeros(storage.nbytes, np.uint8)
    pages = np.frombuffer(stored.tensors[storage.page_key], np.int64)
    for i, page in enumerate(pages.tolist()):
        end = min(storage.nbytes, (page + 1) * _PAGE_BYTES)
        start = page * _PAGE_BYTES
        out[start:end] = kept[i * _PAGE_BYTES : i * _PAGE_BYTES + end - start]
    return out


def _arguments(launch: Launch, compiled: Compiled) -> Iterator[tuple[str, Value]]:
    """The kernel's explicit arguments in order, with tuples and descriptors spread out."""
    given = {a.name: a.value for a in launch.args}
    for name, kind in compiled.signature.items():
        if name in given:
            yield from _spread(name, kind, given[name])
        elif kind != "constexpr":
            raise CannotRepeat(f"argument {name} was not recorded")


def _spread(name: str, kind: Any, value: Value) -> Iterator[tuple[str, Value]]:
    if isinstance(kind, list | tuple):
        for part, item in zip(kind, value.items, strict=True):
            yield from _spread(name, part, item)
    elif kind == "constexpr":
        return
    elif str(kind).startswith("tensordesc"):
        parts = dict(zip(value.keys, value.items, strict=True))
        sizes = [(name, item) for field in ("shape", "strides") for item in parts[field].items]
        yield name, parts["base"]
        yield from sizes
        yield name, Value("int", 0)  # padding with zeros
        yield from sizes
    else:
        yield name, value


def _pass(
    stored: StoredWorkload, name: str, value: Value, memory: Memory, tensors: dict[int, Allocation],
    behind: tuple[int, int],
) -> int | float:  # fmt: skip
    """One argument as the emulator takes it: a number, or the address of a tensor's first element."""
    tensor = value.tensor
    if tensor is None:
        if value.kind == "none":
            return 0
        if value.kind in ("int", "bool") and isinstance(value.value, int):
            return int(value.value)
        if value.kind == "float" and value.value is not None:
            return float(value.value)
        raise CannotRepeat(f"argument {name} is a {value.kind}")
    storage = stored.workload.storages[tensor.storage]
    if storage.nbytes == 0:
        return 0
    if storage.id not in tensors:
        data = _bytes_of(stored, storage)
        extra = -data.size % behind[0] + behind[1]
        tensors[storage.id] = memory.allocate(name, np.pad(data, (0, extra)) if extra else data)
    kind = "uint8" if tensor.dtype.startswith("float8") else _NUMPY.get(tensor.dtype, tensor.dtype)
    return tensors[storage.id].base + tensor.offset * np.dtype(kind).itemsize
