"""A recorded launch repeated in the emulator from its recorded bytes, in this process, without the user's code.

Where not every workgroup of a grid runs, results are compared only where the ones that ran changed memory, and not at
all where the kernel updates memory atomically: there other writers are missing.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sandbox.compiling import Compiled, unpack
from sandbox.correctness import Mismatch, TensorValue, compare
from sandbox.emulator import Allocation, EmulationResult, Memory, emulate, load_code_object
from sandbox.emulator.run import Schedule
from sandbox.workload import Launch, StorageRecord, StoredWorkload, TensorRecord, Value

Bytes = npt.NDArray[np.uint8]
MIN_SAMPLE = 64
"""Workgroups drawn from a large grid, beside the first, the last and the tail of each axis."""
_PAGE_BYTES = 4096
_NUMPY = {"bfloat16": "uint16", "bool": "uint8"}


class CannotRepeat(Exception):  # noqa: N818 - an outcome: nothing is known of the launch
    """The launch cannot be repeated from what was recorded; the message says why."""


@dataclass(frozen=True, slots=True)
class Repeated:
    """One emulated launch. `compared` counts the elements whose recorded results were known and were compared."""

    result: EmulationResult
    compared: int
    mismatches: tuple[Mismatch, ...]

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
) -> Repeated:
    """Run the workgroups on the recorded inputs, and compare what they wrote with what was recorded after the launch.

    Raises `CannotRepeat` where inputs were not kept, `InputError` for a launch that hardware would refuse. What the
    kernel does wrong is in the result.
    """
    memory = Memory()
    tensors: dict[int, Allocation] = {}
    arguments = [_pass(stored, name, value, memory, tensors) for name, value in _arguments(launch, compiled)]
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
    )
    if not result.completed or launch.execution.status != "executed":
        return Repeated(result, 0, ())
    partial = len(workgroups) < math.prod(launch.grid)
    if partial and result.counters.get("lane_atomics"):
        return Repeated(result, 0, ())
    compared, mismatches = 0, list[Mismatch]()
    for argument in launch.args:
        expected = argument.after or argument.value.tensor
        if argument.kind != "tensor" or argument.written is None or expected is None:
            continue
        given = argument.value.tensor
        assert given is not None
        count, found = _compare(stored, argument.name, given, expected, tensors, before, partial)
        compared += count
        mismatches += found
    return Repeated(result, compared, tuple(mismatches))


def _compare(
    stored: StoredWorkload, name: str, given: TensorRecord, expected: TensorRecord, tensors: Mapping[int, Allocation],
    before: Mapping[int, Bytes], partial: bool,
) -> tuple[int, tuple[Mismatch, ...]]:  # fmt: skip
    """Elements compared, and the mismatches of one tensor argument."""
    storage = stored.workload.storages[expected.storage]
    if storage.key is None:
        return 0, ()
    want = _view(_bytes_of(stored, storage), expected)
    got = _view(tensors[given.storage].data, given)
    old = _view(before[given.storage], given)
    if partial:
        changed = got != old
        got, want = got[changed], want[changed]
    if got.size == 0:
        return 0, ()
    values = [TensorValue(given.dtype, v.shape, (), np.ascontiguousarray(v)) for v in (got, want)]
    values = [TensorValue(v.dtype, v.shape, (0,) * len(v.shape), v.data) for v in values]
    found = compare({name: values[0]}, {name: values[1]})
    return int(got.size), found.mismatches


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
    stored: StoredWorkload, name: str, value: Value, memory: Memory, tensors: dict[int, Allocation]
) -> int | float:
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
        tensors[storage.id] = memory.allocate(name, _bytes_of(stored, storage))
    kind = "uint8" if tensor.dtype.startswith("float8") else _NUMPY.get(tensor.dtype, tensor.dtype)
    return tensors[storage.id].base + tensor.offset * np.dtype(kind).itemsize
