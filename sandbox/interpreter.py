"""The interpreter: executes a Triton launch on CPU tensors, without a GPU and without Triton's own interpreter.

It runs the Triton IR that Triton's front end makes for the target, so types, promotions, library functions and inlining
are those that are compiled; user files and modules stay as they are. Child side: works on live kernels and tensors.

What it cannot see: launch options (`num_warps`, `num_stages`, ...), anything below Triton IR (instruction selection,
LDS, barriers, spills), races between programs (a batch runs in lockstep, waiting kernels in program order), flushed
denormals, and the last bits of transcendental functions, which it computes more exactly than a device. `tl.dot`
multiplies and adds in float32 whatever the matrix instruction; float atomics add in program order.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from sandbox.compile_worker import ttir_in_fork
from sandbox.compiling import Compiled, CompileError, Specialization, cache_key, specialize
from sandbox.interpreter_atomics import waits_for_others
from sandbox.interpreter_engine import BudgetExceededError, DeviceAssertionError, Machine, operations
from sandbox.interpreter_ir import IrError, Module, Type, parse_module
from sandbox.interpreter_memory import Memory
from sandbox.interpreter_numerics import Array, held_dtype, is_float, settle, widened
from sandbox.target import Target, load_target
from sandbox.workload import OVER_BUDGET

DEFAULT_BUDGET_S = 20.0
_FRONT_END_TIMEOUT_S = 60.0
_BATCH_ELEMENTS = 1 << 18
"""Elements of the largest tensor in a batch of programs: about what stays in cache."""

_REVERSED_BATCHES = 16
Order = Literal["lockstep", "reversed"]
"""`reversed`: small batches of programs, the last first. A kernel without races computes the same."""
Grid = Sequence[int] | Callable[[Mapping[str, Any]], Sequence[int]]


class InterpreterUnsupported(Exception):  # noqa: N818 - an outcome, named as callers read it
    """The launch cannot be executed here; the text says why. Outputs may be partly written."""


class InterpreterBudget(InterpreterUnsupported):
    """The time budget ended first."""


class InterpreterAssertion(Exception):  # noqa: N818 - an outcome, as above
    """A `tl.device_assert` of the kernel did not hold."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something wrong that did not stop the run: an access outside its tensor, a false promise to the compiler."""

    message: str
    file: str | None
    line: int | None
    lanes: int


@dataclass(frozen=True, slots=True)
class Execution:
    """A launch that ran to its end."""

    programs: int
    seconds: float
    findings: tuple[Finding, ...] = ()


def interpret_launch(
    fn: Any,
    grid: Grid,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    *,
    budget_s: float = DEFAULT_BUDGET_S,
    target: Target | None = None,
    compiled: Compiled | None = None,
    order: Order = "lockstep",
    wide: bool = False,
) -> Execution:
    """Execute `fn[grid](*args, **kwargs)`, writing to the CPU tensors among the arguments.

    `fn` is a `triton.JITFunction`; autotuners and heuristics are resolved by the caller. With `compiled` (of this very
    launch) the IR that was compiled is what runs. A kernel the target's front end refuses is read by NVIDIA's instead,
    so that a baseline that does not build yet still has reference results. Raises `InterpreterUnsupported` with the
    reason (`InterpreterBudget` when `budget_s` seconds were not enough) and `InterpreterAssertion`. `wide` computes in
    float64 throughout (see `sandbox.interpreter_numerics.widened`).
    """
    with widened(wide):
        return _interpret(fn, grid, args, kwargs, budget_s, target, compiled, order)


def _interpret(
    fn: Any,
    grid: Grid,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    budget_s: float,
    target: Target | None,
    compiled: Compiled | None,
    order: Order,
) -> Execution:
    started = time.monotonic()
    arch = target or load_target(compiled.arch if compiled is not None else "gfx942")
    module, special = _module(fn, args, kwargs, arch, compiled)
    whole = _whole_grid(grid, special.arguments)
    memory = Memory()
    total = whole[0] * whole[1] * whole[2]
    machine = Machine(module, memory, whole, started + budget_s)
    done = 0
    try:
        arguments = _arguments(module, special, memory)
        for first, last in _batches(total, _batch(module), order):
            machine.run(first, last, arguments)
            done += last - first
            _give_up_early(time.monotonic() - started, done, total, budget_s)
    except BudgetExceededError:
        message = f"the launch did not finish within {budget_s:g} s: {done} of {total} {OVER_BUDGET}"
        raise InterpreterBudget(message) from None
    except DeviceAssertionError as e:
        raise InterpreterAssertion(f"{e}{_where(machine)}") from None
    except IrError as e:
        raise InterpreterUnsupported(f"{e}{_where(machine)}") from None
    except InterpreterBudget:
        raise
    except Exception as e:
        operation = machine.current.name if machine.current else "set-up"
        raise InterpreterUnsupported(f"{operation} failed: {type(e).__name__}: {e}{_where(machine)}") from e
    return Execution(total, time.monotonic() - started, _findings(machine))


def _give_up_early(spent_s: float, done: int, total: int, budget_s: float) -> None:
    """Raises `InterpreterBudget` when a quarter of the budget shows that twice of it would not do."""
    expected_s = spent_s * total / done
    if spent_s > budget_s / 4 and expected_s > 2 * budget_s:
        said = f"the launch would take about {expected_s:.0f} s, {budget_s:g} s are allowed"
        raise InterpreterBudget(f"{said}: {done} of {total} {OVER_BUDGET}")


def _module(
    fn: Any, args: Sequence[Any], kwargs: Mapping[str, Any], target: Target, compiled: Compiled | None
) -> tuple[Module, Specialization]:
    """The parsed IR and the specialisation it belongs to."""
    if getattr(fn, "is_gluon", lambda: False)():
        raise InterpreterUnsupported("Gluon kernels have no Triton IR")
    own = {k: v for k, v in kwargs.items() if k in fn.arg_names or k == "debug"}
    if compiled is not None:
        special = specialize(fn, args, own, target)
        return _parsed(hashlib.sha256(compiled.ttir.encode()).hexdigest(), lambda: compiled.ttir), special
    failure: CompileError | None = None
    for candidate in (target, load_target("sm_90")):
        try:
            special = specialize(fn, args, own, candidate)
            key = cache_key(special, candidate)
        except Exception as e:
            raise InterpreterUnsupported(f"Triton refuses the arguments: {type(e).__name__}: {e}") from e
        if key in _MODULES:
            return _MODULES[key], special
        text = ttir_in_fork(special, candidate, _FRONT_END_TIMEOUT_S)
        if isinstance(text, str):
            return _parsed(key, lambda text=text: text), special  # type: ignore[misc]
        failure = failure or text
    assert failure is not None
    raise InterpreterUnsupported(f"Triton's front end refuses the kernel: {failure.message}")


_MODULES: dict[str, Module] = {}
"""Parsed IR by cache key: harnesses launch the same kernel many times."""


def _parsed(key: str, text: Callable[[], str]) -> Module:
    if key not in _MODULES:
        try:
            _MODULES[key] = parse_module(text())
        except (IrError, AssertionError, ValueError, IndexError) as e:
            raise InterpreterUnsupported(f"cannot read the Triton IR: {e}") from e
    return _MODULES[key]


def _whole_grid(grid: Grid, arguments: Mapping[str, Any]) -> tuple[int, int, int]:
    sizes = [int(n) for n in (grid(arguments) if callable(grid) else grid)]
    padded = [*sizes, 1, 1, 1]
    return padded[0], padded[1], padded[2]


def _batches(total: int, batch: int, order: Order) -> list[tuple[int, int]]:
    """Ranges of programs that run together, in turn. A kernel whose programs wait for others keeps their order."""
    if order == "lockstep" or batch == 1:
        return [(first, min(total, first + batch)) for first in range(0, total, batch)]
    batch = min(batch, max(1, total // _REVERSED_BATCHES))
    return [(first, min(total, first + batch)) for first in range(0, total, batch)][::-1]


def _batch(module: Module) -> int:
    """How many programs run together; one when a program may wait for another."""
    largest = 1
    for function in module.functions.values():
        for op in operations(function.body):
            for kind in op.result_types:
                largest = max(largest, int(np.prod(kind.shape, dtype=np.int64)))
            if op.name == "scf.while" and any(
                waits_for_others(o.name, o.text) or o.name == "tt.atomic_rmw"
                for region in op.regions
                for o in operations(region)
            ):
                return 1
    return max(1, _BATCH_ELEMENTS // largest)


def _arguments(module: Module, special: Specialization, memory: Memory) -> list[Array]:
    """The entry function's arguments: pointers to registered storages, scalars as arrays of one program."""
    entry = module.functions[module.entry]
    for flags in (1, 2):  # Triton 3.7 and later pass a second flag with every descriptor
        values: list[tuple[str, Any]] = []
        for name, kind in special.signature.items():
            values.extend(_flat(kind, special.arguments[name], name, flags))
        if len(values) == len(entry.parameters):
            return [_argument(v, t, memory) for v, t in zip(values, entry.parameter_types, strict=True)]
    raise IrError(f"the kernel takes {len(entry.parameters)} arguments, the launch has {len(values)}")


def _flat(kind: Any, value: Any, name: str, flags: int) -> list[tuple[str, Any]]:
    """The values one parameter passes; a descriptor is pointer, shape, strides, flags, shape and strides again."""
    if isinstance(kind, tuple):
        parts = enumerate(zip(kind, value, strict=True))
        return [part for i, (k, v) in parts for part in _flat(k, v, f"{name}.{i}", flags)]
    if kind == "constexpr":
        return []
    if str(kind).startswith("tensordesc"):
        shape, strides = list(value.shape), list(value.strides)
        told = [getattr(value, "padding", "zero") == "nan", bool(getattr(value, "round_f32_to_tf32", False))]
        return [(name, part) for part in (value.base, *shape, *strides, *told[:flags], *shape, *strides)]
    if str(kind).startswith("nvTmaDesc"):
        raise IrError("raw TMA descriptors are not interpreted")
    return [(name, value)]


def _argument(named: tuple[str, Any], kind: Type, memory: Memory) -> Array:
    name, value = named
    if kind.element == "ptr":
        return np.array([_pointer(name, value, memory)], np.int64)
    if is_float(kind.element):
        return settle(np.array([float(value)], np.float64), kind.element)
    dtype = held_dtype(kind.element)
    return np.array([int(value) & (2 ** (8 * dtype.itemsize) - 1)], np.uint64).astype(dtype)


def _pointer(name: str, value: Any, memory: Memory) -> int:
    tensor = getattr(value, "base", value) if not hasattr(value, "untyped_storage") else value
    if not hasattr(tensor, "untyped_storage"):
        address = value.data_ptr() if hasattr(value, "data_ptr") else int(value)
        return int(memory.to_virtual(np.array([address], np.int64))[0])
    if tensor.device.type != "cpu":
        raise IrError(f"argument {name} is on {tensor.device.type}, the interpreter needs CPU tensors")
    return memory.register_tensor(name, tensor)


def _where(machine: Machine) -> str:
    place = machine.module.places.get(machine.current.location) if machine.current else None
    return f" ({place[0]}:{place[1]})" if place else ""


def _findings(machine: Machine) -> tuple[Finding, ...]:
    merged: dict[tuple[str, str, Any], Finding] = {}
    for bad, place in zip(machine.memory.bad, machine.bad_places, strict=True):
        key = (bad.action, bad.storage, place)
        lanes = bad.lanes + (merged[key].lanes if key in merged else 0)
        message = merged[key].message if key in merged else str(bad)
        merged[key] = Finding(message, place[0] if place else None, place[1] if place else None, lanes)
    broken = [
        Finding(f"broken promise: {text}", place[0] if place else None, place[1] if place else None, 0)
        for text, place in machine.broken
    ]
    return (*merged.values(), *broken)
