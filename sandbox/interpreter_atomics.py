"""Atomic operations of interpreted kernels: lanes on one address act one after the other, by program id."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from sandbox.interpreter_ir import IrError, Op
from sandbox.interpreter_memory import Memory
from sandbox.interpreter_numerics import Array, from_memory, stored_dtype, to_memory, unsigned


def _as_unsigned(function: Callable[..., Any]) -> Callable[..., Any]:
    def run(old: Array, value: Array) -> Array:
        result: Array = function(unsigned(old), unsigned(value))
        return result.view(old.dtype)

    return run


_KINDS: Mapping[str, Callable[..., Any]] = {
    "add": np.add,
    "fadd": np.add,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "max": np.maximum,
    "min": np.minimum,
    "umax": _as_unsigned(np.maximum),
    "umin": _as_unsigned(np.minimum),
    "exch": lambda old, value: value,
}
_UNORDERED = ("add", "fadd", "and", "or", "xor", "max", "min")
"""Kinds that numpy can apply in one call when nobody asks for the old values."""


def atomic_rmw(op: Op, args: list[Array], memory: Memory, programs: int, active: Array | None, used: bool) -> Array:
    """`tt.atomic_rmw`: every lane acts, also lanes whose values agree. Returns the old values.

    In float64 throughout, sums are rounded from all that was added so far, not addition by addition.
    """
    kind = op.text.split()[1].rstrip(",")
    if kind not in _KINDS:
        raise IrError(f"the atomic operation {kind} is not interpreted")
    pointer = op.operand_types[0]
    element, shape = pointer.pointee, (programs, *pointer.shape)
    addresses, values = np.broadcast_to(args[0], shape), np.broadcast_to(args[1], shape)
    lanes = _lanes(args[2] if len(args) > 2 else None, shape, active)
    dtype = stored_dtype(element)
    result = np.zeros(shape, values.dtype)
    flat, old = values[lanes], np.zeros(int(lanes.sum()), values.dtype)
    exactly = kind == "fadd" and element in ("bf16", "f16", "f32") and values.dtype == np.float64
    for numbers, data, index in memory.view(addresses[lanes], dtype, "atomic"):
        sums = memory.exact_sums(data) if exactly else None
        if not used and sums is not None:
            places, which = np.unique(index, return_inverse=True)
            after = sums.recall(places, data[places], from_memory(data[places], element))
            np.add.at(after, which, flat[numbers])
            data[places] = to_memory(after, element)
            sums.keep(places, data[places], after)
            continue
        if not used and kind in _UNORDERED and element != "bf16":
            _KINDS[kind].at(data, index, flat[numbers].astype(dtype))  # type: ignore[attr-defined]
            continue
        for turn in _turns(index):
            before = from_memory(data[index[turn]], element)
            if sums is not None:
                before = sums.recall(index[turn], data[index[turn]], before)
            old[numbers[turn]] = before
            after = _KINDS[kind](before, flat[numbers[turn]])
            data[index[turn]] = to_memory(after, element)
            if sums is not None:
                sums.keep(index[turn], data[index[turn]], after)
    result[lanes] = old
    return result


def atomic_cas(op: Op, args: list[Array], memory: Memory, programs: int, active: Array | None) -> Array:
    """`tt.atomic_cas`: stores the new value where the old one equals the expected. Returns the old values."""
    pointer = op.operand_types[0]
    shape = (programs, *pointer.shape)
    addresses, expected, fresh = (np.broadcast_to(a, shape) for a in args)
    lanes = _lanes(None, shape, active)
    result = np.zeros(shape, fresh.dtype)
    old = np.zeros(int(lanes.sum()), fresh.dtype)
    want, new = expected[lanes], fresh[lanes]
    for numbers, data, index in memory.view(addresses[lanes], stored_dtype(pointer.pointee), "atomic"):
        for turn in _turns(index):
            before = from_memory(data[index[turn]], pointer.pointee)
            old[numbers[turn]] = before
            after = np.where(before == want[numbers[turn]], new[numbers[turn]], before)
            data[index[turn]] = to_memory(after, pointer.pointee)
    result[lanes] = old
    return result


def _lanes(mask: Array | None, shape: tuple[int, ...], active: Array | None) -> Array:
    lanes = np.ones(shape, np.bool_) if mask is None else np.array(np.broadcast_to(mask, shape))
    if active is not None:
        lanes &= active.reshape((-1,) + (1,) * (len(shape) - 1))
    return lanes


def _turns(index: Array) -> Iterator[Array]:
    """Lane numbers in turns: each address at most once per turn, earlier lanes in earlier turns."""
    order = np.argsort(index, kind="stable")
    ordered = index[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    lengths = np.diff(np.r_[starts, ordered.size])
    rank = np.arange(ordered.size) - np.repeat(starts, lengths)
    by_turn = np.argsort(rank, kind="stable")
    bounds = np.searchsorted(rank[by_turn], np.arange(int(rank.max()) + 2))
    for first, last in pairwise(bounds):
        yield order[by_turn[first:last]]


def waits_for_others(name: str, text: str) -> bool:
    """Whether an operation may be how a program waits for another one."""
    if name == "tt.atomic_cas":
        return True
    return name == "tt.load" and re.search(r"isVolatile = true", text) is not None
