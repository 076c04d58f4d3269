"""Child side: a compiled launch run in the CPU emulator on its own memory. The one seam to `sandbox.emulator`."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sandbox.child_values import raw, storage_of
from sandbox.compiling import Compiled, specialize
from sandbox.emulator import EmulationResult, Memory, emulate, fast, load_code_object
from sandbox.errors import InputError
from sandbox.target import Target

_FAST_INSTRUCTIONS_PER_S = 2_000_000
_REFERENCE_INSTRUCTIONS_PER_S = 5_000
"""Wave instructions the two cores do at least, on a slow machine: a time budget becomes an instruction budget."""


class CannotEmulate(Exception):  # noqa: N818 - an outcome: the launch's results stay unknown
    """The emulator does not run this launch to its end; the message says why."""


def emulate_launch(
    compiled: Compiled,
    fn: Any,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    grid: tuple[int, int, int],
    target: Target,
    *,
    budget_s: float,
    schedule: str = "lockstep",
) -> EmulationResult:
    """Run every workgroup; results are in the tensors among the arguments. Raises `CannotEmulate`.

    `schedule` orders the waves: `lockstep`, `sequential`, `reverse` or `random:SEED`. A kernel that does something
    forbidden (`trapped`) raises as well: what it wrote up to there is no result.
    """
    order, _, seed = schedule.partition(":")
    if not target.is_amd:
        raise CannotEmulate(f"the emulator runs AMD code objects, not {target.arch}")
    if compiled.metadata.get("global_scratch_size"):
        raise CannotEmulate("the kernel needs global scratch memory")
    memory = Memory()
    with raw():
        values = _arguments(compiled, fn, args, kwargs, target, memory)
        rate = _FAST_INSTRUCTIONS_PER_S if fast.available() else _REFERENCE_INSTRUCTIONS_PER_S
        try:
            result = emulate(
                load_code_object(compiled.code),
                compiled.kernel,
                grid,
                (compiled.threads_per_workgroup, 1, 1),
                values,
                memory,
                dynamic_lds_bytes=compiled.lds_bytes,
                schedule=order,  # type: ignore[arg-type]
                seed=int(seed or 0),
                instruction_budget=max(1, int(budget_s * rate)),
                copied_lanes=compiled.copied_lanes,
            )
        except InputError as e:
            raise CannotEmulate(str(e)) from e
    if not result.completed:
        raise CannotEmulate(f"{result.status}: {result.reason}")
    return result


def _arguments(
    compiled: Compiled, fn: Any, args: Sequence[Any], kwargs: Mapping[str, Any], target: Target, memory: Memory
) -> list[Any]:
    """The kernel's explicit arguments in order: numbers, and addresses in `memory`."""
    special = specialize(fn, args, {k: v for k, v in kwargs.items() if k in fn.arg_names}, target)
    storages: dict[int, int] = {}
    return [
        _address(name, value, memory, storages) if _is_pointer(value) else value
        for parameter, kind in special.signature.items()
        for name, value in _flat(kind, special.arguments[parameter], parameter)
    ]


def _flat(kind: Any, value: Any, name: str) -> list[tuple[str, Any]]:
    """One parameter's values: tuples spread out, descriptors as pointer, shape, strides, padding, shape, strides."""
    if isinstance(kind, tuple):
        return [part for i, (k, v) in enumerate(zip(kind, value, strict=True)) for part in _flat(k, v, f"{name}.{i}")]
    if kind == "constexpr":
        return []
    if str(kind).startswith("tensordesc"):
        shape, strides = list(value.shape), list(value.strides)
        padding = getattr(value, "padding", "zero") == "nan"
        return [(name, part) for part in [value.base, *shape, *strides, padding, *shape, *strides]]
    return [(name, value)]


def _is_pointer(value: Any) -> bool:
    return hasattr(value, "data_ptr")


def _address(name: str, value: Any, memory: Memory, storages: dict[int, int]) -> int:
    """The synthetic address of a tensor: its storage is one allocation, shared by every tensor that views it."""
    tensor = getattr(value, "base", value) if not hasattr(value, "untyped_storage") else value
    if tensor.device.type != "cpu":
        raise CannotEmulate(f"argument {name} is on {tensor.device.type}, the emulator needs host memory")
    start, nbytes = storage_of(tensor)
    if nbytes == 0:
        return 0
    if start not in storages:
        view = memoryview((ctypes.c_char * nbytes).from_address(start)).cast("B")
        data = np.frombuffer(view, np.uint8)
        storages[start] = memory.allocate(name, data).base
    return storages[start] + int(tensor.data_ptr()) - start
