"""Promises a kernel makes to the compiler, checked against the values it computes.

`tl.multiple_of`, `tl.max_contiguous`, `tl.max_constancy` become attributes of the operation whose result they describe,
`tl.assume` an operation of its own. The compiler believes them: a false one makes a compiled kernel read the wrong
memory while everything interpreted stays right.
"""

from __future__ import annotations

import re

import numpy as np

from sandbox.interpreter_ir import Op
from sandbox.interpreter_numerics import Array

DIVISIBILITY, CONTIGUITY, CONSTANCY = "tt.divisibility", "tt.contiguity", "tt.constancy"
ASSUME = "llvm.intr.assume"


def promises(op: Op) -> bool:
    """Whether the operation carries a promise that can be checked here."""
    if op.name == ASSUME:
        return True
    described = op.attributes.keys() & {DIVISIBILITY, CONTIGUITY, CONSTANCY}
    return bool(described) and bool(op.result_types) and op.result_types[0].element.startswith("i")


def broken_promise(op: Op, value: Array, active: Array | None) -> str | None:
    """In words what does not hold of `value` (programs first) for the active programs; None when all does."""
    if op.name == ASSUME:
        lanes = np.broadcast_to(value.reshape(value.shape[0], -1).all(axis=1), _programs(value, active))
        return None if _chosen(lanes, active).all() else "tl.assume does not hold"
    shape = op.result_types[0].shape
    values = _chosen(np.broadcast_to(value, (_programs(value, active)[0], *shape)), active).astype(np.int64)
    if values.size == 0:
        return None
    axes = range(1, values.ndim) if shape else [0]
    for number, axis in enumerate(axes):
        checked = values if shape else values[:, None]
        along = axis if shape else 1
        run = _numbers(op, CONTIGUITY, number)
        if run > 1 and not _rises(checked, along, run):
            return f"tl.max_contiguous({run}) does not hold"
        same = _numbers(op, CONSTANCY, number)
        if same > 1 and not _stays(checked, along, same):
            return f"tl.max_constancy({same}) does not hold"
        divisor = _numbers(op, DIVISIBILITY, number)
        if divisor > 1 and (_starts(checked, along, run) % divisor).any():
            return f"tl.multiple_of({divisor}) does not hold"
    return None


def _programs(value: Array, active: Array | None) -> tuple[int]:
    return (max(value.shape[0], active.shape[0] if active is not None else 1),)


def _chosen(values: Array, active: Array | None) -> Array:
    return values if active is None else values[active]


def _numbers(op: Op, name: str, dimension: int) -> int:
    found = re.findall(r"\d+", op.attributes.get(name, "").split(":")[0])
    return int(found[min(dimension, len(found) - 1)]) if found else 1


def _rises(values: Array, axis: int, run: int) -> bool:
    """Groups of `run` elements rise by one."""
    steps = np.diff(values, axis=axis)
    inside = np.arange(1, values.shape[axis]) % run != 0
    return bool((np.compress(inside, steps, axis=axis) == 1).all())


def _stays(values: Array, axis: int, run: int) -> bool:
    steps = np.diff(values, axis=axis)
    inside = np.arange(1, values.shape[axis]) % run != 0
    return bool((np.compress(inside, steps, axis=axis) == 0).all())


def _starts(values: Array, axis: int, run: int) -> Array:
    """First elements of contiguous groups: the promised ones, else those that the values form."""
    if run > 1:
        return np.take(values, np.arange(0, values.shape[axis], run), axis=axis)
    first = np.ones(values.shape, np.bool_)
    later = [slice(None)] * values.ndim
    later[axis] = slice(1, None)
    first[tuple(later)] = np.diff(values, axis=axis) != 1
    return values[first]
