"""Runs parsed Triton IR for many programs at once.

A batch of programs advances together, as the lanes of a wavefront do: values have a leading axis of programs, and
control flow that differs between programs runs under a mask of active ones. Kernels that wait for other programs
(locks, polling) run one program at a time, in the order of their ids.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable

import numpy as np

from sandbox.interpreter_arith import POINTWISE, constant
from sandbox.interpreter_atomics import atomic_cas, atomic_rmw
from sandbox.interpreter_ir import Block, Function, IrError, Module, Op, Region
from sandbox.interpreter_library import extern_elementwise, inline_asm
from sandbox.interpreter_memory import Memory
from sandbox.interpreter_numerics import Array, from_memory, held_dtype, stored_dtype, to_memory
from sandbox.interpreter_promises import ASSUME, broken_promise, promises
from sandbox.interpreter_tensor import SHAPE_OPS, dot, dot_scaled, full, reduce, scan, shape_op

_TERMINATORS = frozenset(
    {"scf.yield", "scf.condition", "tt.return", "tt.reduce.return", "tt.scan.return", "cf.br", "cf.cond_br"}
)
_IGNORED = frozenset({"gpu.barrier", "ttg.barrier", "ttg.local_barrier", "llvm.intr.assume", "tt.print"})
_SUCCESSOR = re.compile(r"(\^\w+)(?:\(([^)]*)\))?")


class BudgetExceededError(Exception):
    """The time budget ended while a batch was running."""


class DeviceAssertionError(Exception):
    """A `tl.device_assert` did not hold."""


class Machine:
    """The state of one launch: module, memory, grid, and the batch that is running."""

    def __init__(self, module: Module, memory: Memory, grid: tuple[int, int, int], deadline: float) -> None:
        self.module = module
        self.memory = memory
        self.grid = grid
        self.deadline = deadline
        self.programs = 1
        self.pids: tuple[Array, Array, Array] = (np.zeros(1, np.int32),) * 3
        self.active: Array | None = None
        self.current: Op | None = None
        self.bad_places: list[tuple[str, int] | None] = []
        """The source place of each entry of `memory.bad`."""
        self.broken: dict[tuple[str, tuple[str, int] | None], None] = {}
        """Promises to the compiler that did not hold, with their source places."""
        self._constants: dict[int, Array] = {}
        self._used = {f.name: _used_slots(f.body) for f in module.functions.values()}
        self._frames: list[tuple[str, list[Array]]] = []

    def run(self, first: int, last: int, arguments: list[Array]) -> None:
        """Run the programs with linear ids `first` to `last` - 1 (x varies fastest)."""
        numbers = np.arange(first, last, dtype=np.int64)
        x, y, _ = self.grid
        self.programs = last - first
        self.pids = (
            (numbers % x).astype(np.int32),
            (numbers // x % y).astype(np.int32),
            (numbers // (x * y)).astype(np.int32),
        )
        self.active = None
        self._frames.clear()
        with np.errstate(all="ignore"):
            self._call(self.module.functions[self.module.entry], arguments)

    # Functions and blocks

    def _call(self, function: Function, arguments: list[Array]) -> list[Array]:
        frame: list[Array] = [np.zeros(1)] * function.slots
        for slot, value in zip(function.parameters, arguments, strict=True):
            frame[slot] = value
        self._frames.append((function.name, frame))
        try:
            if len(function.body.blocks) == 1:
                return self._block(function.body.blocks[0], frame)[1]
            return self._graph(function.body, frame)
        finally:
            self._frames.pop()

    def _graph(self, region: Region, frame: list[Array]) -> list[Array]:
        """A function of several blocks: the earliest pending block runs next, for the programs that reached it."""
        outer = self.active
        waiting: dict[int, Array] = {0: outer if outer is not None else np.ones(self.programs, np.bool_)}
        results: list[Array] | None = None
        while waiting:
            number = min(waiting)
            lanes = waiting.pop(number)
            if not lanes.any():
                continue
            self.active = None if lanes.all() else lanes
            end, values = self._block(region.blocks[number], frame)
            if end is None or end.name == "tt.return":
                results = (
                    values if results is None else [_merge(lanes, n, o) for n, o in zip(values, results, strict=True)]
                )
                continue
            self._branch(end, values, region, frame, lanes, waiting)
        self.active = outer
        return results or []

    def _branch(
        self, end: Op, values: list[Array], region: Region, frame: list[Array], lanes: Array, waiting: dict[int, Array]
    ) -> None:
        targets = _SUCCESSOR.findall(end.text)
        taken = [lanes]
        if end.name == "cf.cond_br":
            condition = np.broadcast_to(values.pop(0), lanes.shape)
            taken = [lanes & condition, lanes & ~condition]
        for (label, passed), mask in zip(targets, taken, strict=True):
            number = region.labels[label]
            count = passed.split(" : ")[0].count("%")
            given, values = values[:count], values[count:]
            for slot, value in zip(region.blocks[number].arguments, given, strict=True):
                frame[slot] = _merge(mask, value, frame[slot]) if number in waiting else value
            waiting[number] = waiting[number] | mask if number in waiting else mask

    def _block(self, block: Block, frame: list[Array]) -> tuple[Op | None, list[Array]]:
        """Runs to the terminator; returns it and its operands."""
        for op in block.operations:
            if op.name in _TERMINATORS:
                return op, [frame[s] for s in op.operands]
            self._op(op, frame)
        return None, []

    def _op(self, op: Op, frame: list[Array]) -> None:
        self.current = op
        if time.monotonic() > self.deadline:
            raise BudgetExceededError
        known = len(self.memory.bad)
        result = self._value(op, [frame[s] for s in op.operands], frame)
        if promises(op):
            self._check_promise(op, frame[op.operands[0]] if op.name == ASSUME else result)
        if len(self.memory.bad) > known:
            place = self.module.places.get(op.location)
            self.bad_places.extend([place] * (len(self.memory.bad) - len(self.bad_places)))
        if isinstance(result, tuple):
            for slot, value in zip(op.results, result, strict=True):
                frame[slot] = value
        elif op.results:
            frame[op.results[0]] = result

    def _check_promise(self, op: Op, value: Array | tuple[Array, ...]) -> None:
        text = broken_promise(op, value, self.active) if not isinstance(value, tuple) else None
        if text is not None:
            self.broken[text, self.module.places.get(op.location)] = None

    def _value(self, op: Op, args: list[Array], frame: list[Array]) -> Array | tuple[Array, ...]:
        name = op.name
        if (handler := POINTWISE.get(name)) is not None:
            return handler(op, args)
        if name in SHAPE_OPS:
            return shape_op(op, args)
        if name == "arith.constant":
            if id(op) not in self._constants:
                self._constants[id(op)] = constant(op)
            return self._constants[id(op)]
        if name in _IGNORED:
            return ()
        if name.startswith("scf."):
            return tuple(self._control(op, args, frame))
        if name in ("tt.reduce", "tt.scan"):
            along = reduce if name == "tt.reduce" else scan
            return along(op, args, lambda values: self._combine(op.regions[0], values, frame))
        if name in ("tt.dot", "tt.dot_scaled"):
            return dot(op, args) if name == "tt.dot" else dot_scaled(op, args)
        return self._effect(op, args)

    def _combine(self, region: Region, values: list[Array], frame: list[Array]) -> list[Array]:
        block = region.blocks[0]
        for slot, value in zip(block.arguments, values, strict=True):
            frame[slot] = value
        return self._block(block, frame)[1]

    # Control flow

    def _control(self, op: Op, args: list[Array], frame: list[Array]) -> list[Array]:
        match op.name:
            case "scf.for":
                return self._for(op, args, frame)
            case "scf.if":
                return self._if(op, args[0], frame)
            case "scf.while":
                return self._while(op, args, frame)
        raise IrError(f"the operation {op.name} is not interpreted")

    def _for(self, op: Op, args: list[Array], frame: list[Array]) -> list[Array]:
        low, high, step, *carried = args
        block = op.regions[0].blocks[0]
        outer = self.active
        count = -(-(high.astype(np.int64) - low) // step)
        trips = np.broadcast_to(count, (self.programs,))
        lanes = outer if outer is not None else np.ones(self.programs, np.bool_)
        most = int(trips[lanes].max()) if lanes.any() else 0
        for trip in range(most):
            running = lanes & (trips > trip)
            everyone = bool((running == lanes).all())
            self.active = outer if everyone else running
            frame[block.arguments[0]] = (low + trip * step).astype(low.dtype)
            for slot, value in zip(block.arguments[1:], carried, strict=True):
                frame[slot] = value
            fresh = self._block(block, frame)[1]
            if everyone:
                carried = fresh
            else:
                carried = [_merge(running, n, o) for n, o in zip(fresh, carried, strict=True)]
        self.active = outer
        return carried

    def _if(self, op: Op, condition: Array, frame: list[Array]) -> list[Array]:
        outer = self.active
        lanes = outer if outer is not None else np.ones(self.programs, np.bool_)
        chosen = np.broadcast_to(condition, (self.programs,))
        outcomes: list[list[Array] | None] = []
        for number, mask in enumerate((lanes & chosen, lanes & ~chosen)):
            if number >= len(op.regions) or not mask.any():
                outcomes.append(None)
                continue
            self.active = outer if bool((mask == lanes).all()) else mask
            outcomes.append(self._block(op.regions[number].blocks[0], frame)[1])
        self.active = outer
        yes, no = outcomes
        if yes is None or no is None:
            return yes or no or []
        return [_merge(chosen, a, b) for a, b in zip(yes, no, strict=True)]

    def _while(self, op: Op, args: list[Array], frame: list[Array]) -> list[Array]:
        outer = self.active
        running = (outer if outer is not None else np.ones(self.programs, np.bool_)).copy()
        before, after = (region.blocks[0] for region in op.regions)
        carried, results = args, None
        while running.any():
            self.active = running.copy()
            for slot, value in zip(before.arguments, carried, strict=True):
                frame[slot] = value
            condition, *passed = self._block(before, frame)[1]
            results = (
                passed if results is None else [_merge(running, n, o) for n, o in zip(passed, results, strict=True)]
            )
            running &= np.broadcast_to(condition, running.shape)
            if not running.any():
                break
            self.active = running.copy()
            for slot, value in zip(after.arguments, passed, strict=True):
                frame[slot] = value
            fresh = self._block(after, frame)[1]
            carried = [_merge(running, n, o) for n, o in zip(fresh, carried, strict=True)]
        self.active = outer
        return results or []

    # Effects

    def _effect(self, op: Op, args: list[Array]) -> Array | tuple[Array, ...]:
        match op.name:
            case "tt.get_program_id":
                return self.pids["xyz".index(op.text.split()[1])]
            case "tt.get_num_programs":
                return np.array([self.grid["xyz".index(op.text.split()[1])]], np.int32)
            case "tt.addptr":
                width = stored_dtype(self._pointee(op)).itemsize
                moved: Array = args[0] + np.multiply(args[1], width, dtype=np.int64)
                return moved
            case "tt.load":
                return self._load(op, args)
            case "tt.store":
                self._store(op, args)
                return ()
            case "tt.atomic_rmw":
                return atomic_rmw(op, args, self.memory, self.programs, self.active, self._is_used(op))
            case "tt.atomic_cas":
                return atomic_cas(op, args, self.memory, self.programs, self.active)
            case "tt.call":
                return tuple(self._call(self._callee(op), args))
            case "tt.extern_elementwise":
                return extern_elementwise(op, args)
            case "tt.elementwise_inline_asm":
                return inline_asm(op, args)
            case "tt.ptr_to_int":
                return self.memory.to_real(args[0])
            case "tt.int_to_ptr":
                return self.memory.to_virtual(args[0].astype(np.int64))
            case "tt.assert":
                self._assert(op, args[0])
                return ()
            case "ub.poison":
                kind = op.result_types[0]
                return np.zeros((1,) * (len(kind.shape) + 1), held_dtype(kind.element))
        raise IrError(f"the operation {op.name} is not interpreted")

    def _pointee(self, op: Op) -> str:
        pointee = op.operand_types[0].pointee
        return "i64" if pointee.startswith("!") else pointee

    def _is_used(self, op: Op) -> bool:
        return op.results[0] in self._used[self._frames[-1][0]]

    def _callee(self, op: Op) -> Function:
        found = re.search(r'@([\w$.\-]+|"[^"]+")', op.text)
        assert found is not None
        return self.module.functions[found[1].strip('"')]

    def _mask(self, given: Array | None, ndim: int) -> Array | None:
        """The given mask and the active programs together; None for all."""
        if self.active is None:
            return given
        active: Array = self.active.reshape((-1,) + (1,) * (ndim - 1))
        return active if given is None else given & active

    def _load(self, op: Op, args: list[Array]) -> Array:
        if not op.operand_types[0].element == "ptr" or "<tensor" in op.operand_types[0].pointee:
            raise IrError("tt.load through a block pointer or descriptor is not interpreted")
        element = self._pointee(op)
        other = to_memory(args[2], element) if len(args) > 2 else None
        mask = self._mask(args[1] if len(args) > 1 else None, args[0].ndim)
        raw = self.memory.load(args[0], mask, stored_dtype(element), other)
        if op.operand_types[0].pointee.startswith("!"):
            return self.memory.to_virtual(raw)
        return from_memory(raw, element)

    def _store(self, op: Op, args: list[Array]) -> None:
        element = self._pointee(op)
        addresses, values = args[0], args[1]
        if op.operand_types[0].pointee.startswith("!"):
            values = self.memory.to_real(values)
        mask = self._mask(args[2] if len(args) > 2 else None, addresses.ndim)
        parts = [addresses, to_memory(values, element), *([mask] if mask is not None else [])]
        spread = np.broadcast_arrays(*parts)
        if mask is None:
            self.memory.store(spread[0].reshape(-1), spread[1].reshape(-1))
        elif spread[2].any():
            self.memory.store(spread[0][spread[2]], spread[1][spread[2]])

    def _assert(self, op: Op, condition: Array) -> None:
        holds = full(condition, op.operand_types[0])
        mask = self._mask(None, holds.ndim)
        if not (holds if mask is None else holds | ~mask).all():
            message = re.search(r'"((?:[^"\\]|\\.)*)"', op.text)
            raise DeviceAssertionError(message[1] if message else "device assertion failed")


def _merge(lanes: Array, new: Array, old: Array) -> Array:
    """`new` for the programs in `lanes`, `old` for the others."""
    if new is old:
        return new
    mask = lanes.reshape((-1,) + (1,) * (new.ndim - 1))
    merged: Array = np.where(mask, new, old)
    return merged.astype(new.dtype, copy=False)


def _used_slots(region: Region) -> set[int]:
    used: set[int] = set()
    for op in operations(region):
        used.update(op.operands)
    return used


def operations(region: Region) -> Iterable[Op]:
    """Every operation of a region, inner regions included."""
    for block in region.blocks:
        for op in block.operations:
            yield op
            for inner in op.regions:
                yield from operations(inner)
