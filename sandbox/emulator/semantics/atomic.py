"""Atomic operations on memory: what each does to one value. Lanes take effect one after another, lowest first."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from sandbox.emulator.semantics.convert import bf16_to_f32, f32_to_bf16
from sandbox.emulator.semantics.floating import maximum, minimum

Bytes = npt.NDArray[np.uint8]
Operation = Callable[[Any, Any, Any], Any]
"""Old value, data, second data (what compare-and-swap compares with, the bound of wrap); returns the new value."""


def _increment(old: Any, bound: Any, _: Any) -> Any:
    return 0 if old >= bound else old + 1


def _decrement(old: Any, bound: Any, _: Any) -> Any:
    return bound if old == 0 or old > bound else old - 1


_INTEGER: dict[str, Operation] = {
    "swap": lambda old, new, _: new,
    "cmpswap": lambda old, new, expected: new if old == expected else old,
    "add": lambda old, x, _: old + x,
    "sub": lambda old, x, _: old - x,
    "rsub": lambda old, x, _: x - old,
    "min": lambda old, x, _: min(old, x),
    "max": lambda old, x, _: max(old, x),
    "and": lambda old, x, _: old & x,
    "or": lambda old, x, _: old | x,
    "xor": lambda old, x, _: old ^ x,
    "inc": _increment,
    "dec": _decrement,
    "mskor": lambda old, mask, x: (old & ~mask) | x,
    "wrap": lambda old, x, bound: old - x if old >= x else old + bound,
}


def _on_arrays(function: Callable[[Any, Any], Any], dtype: Any) -> Operation:
    """A float operation on single values, through one-element arrays so that rounding is that of `dtype`."""

    def run(old: Any, x: Any, _: Any) -> Any:
        return function(np.array([old], dtype), np.array([x], dtype))[0]

    return run


def _add_bf16(old: Any, x: Any, _: Any) -> Any:
    bits = np.array([old, x], np.uint16)
    wide = bf16_to_f32(bits)
    return f32_to_bf16((wide[:1] + wide[1:]).astype(np.float32))[0]


def _compare_float(old: Any, new: Any, expected: Any) -> Any:
    return new if old == expected else old


class AtomicKind:
    """How a mnemonic reads and changes memory: element type, how many side by side, and the operation."""

    __slots__ = ("count", "dtype", "operation", "wraps")

    def __init__(self, operation: Operation, dtype: Any, count: int = 1, wraps: bool = False) -> None:
        self.operation = operation
        self.dtype = np.dtype(dtype)
        self.count = count
        self.wraps = wraps

    @property
    def size(self) -> int:
        result: int = self.dtype.itemsize * self.count
        return result

    def apply(self, old: Bytes, data: Bytes, second: Bytes) -> Bytes:
        """New bytes of one location from its old bytes and the operands (each `size` bytes)."""
        new = np.zeros(self.count, self.dtype)
        operands = [np.frombuffer(b.tobytes(), self.dtype) for b in (old, data, second)]
        for k in range(self.count):
            if self.wraps:
                bits = 8 * self.dtype.itemsize
                value = int(self.operation(*(int(o[k]) for o in operands))) & ((1 << bits) - 1)
                new[k] = value - (1 << bits) if self.dtype.kind == "i" and value >> (bits - 1) else value
            else:
                new[k] = self.operation(*(o[k] for o in operands))
        return new.view(np.uint8)


_FLOAT = {"f32": np.float32, "f64": np.float64}
_NAME = re.compile(r"(?:global|flat|buffer)_atomic_(\w+?)(_x2)?$")
_LDS = re.compile(
    r"ds_(?:(wrxchg|cmpst|mskor|wrap|add|sub|rsub|inc|dec|min|max|and|or|xor)_(?:rtn_)?|pk_add_(?:rtn_)?)(\w+)$"
)


def _float_kind(name: str, kind: str) -> AtomicKind | None:
    dtype = _FLOAT[kind]
    table: dict[str, Callable[[Any, Any], Any]] = {"add": np.add, "min": minimum, "max": maximum}
    if name in ("cmpst", "cmpswap"):
        return AtomicKind(_compare_float, dtype)
    return AtomicKind(_on_arrays(table[name], dtype), dtype) if name in table else None


def vector_memory_kind(mnemonic: str) -> AtomicKind | None:
    """The kind of a global, flat or buffer atomic; None if it is not one."""
    match = _NAME.match(mnemonic)
    if match is None:
        return None
    name, wide = match[1], bool(match[2])
    if name == "pk_add_f16":
        return AtomicKind(_on_arrays(np.add, np.float16), np.float16, 2)
    if name == "pk_add_bf16":
        return AtomicKind(_add_bf16, np.uint16, 2)
    stem, _, kind = name.rpartition("_")
    if kind in _FLOAT:
        return _float_kind(stem, kind)
    signed = name in ("smin", "smax")
    stem = name[1:] if name in ("smin", "smax", "umin", "umax") else name
    if stem not in _INTEGER:
        return None
    dtype = (np.int64 if signed else np.uint64) if wide else (np.int32 if signed else np.uint32)
    return AtomicKind(_INTEGER[stem], dtype, wraps=True)


def lds_kind(mnemonic: str) -> AtomicKind | None:
    """The kind of an LDS atomic; None if it is not one."""
    match = _LDS.match(mnemonic)
    if match is None:
        return None
    if match[1] is None:
        brain = match[2] == "bf16"
        return AtomicKind(_add_bf16 if brain else _on_arrays(np.add, np.float16), np.uint16 if brain else np.float16, 2)
    name, kind = match[1], match[2]
    if kind in _FLOAT:
        return _float_kind(name, kind)
    dtypes: dict[str, Any] = {
        "u32": np.uint32, "i32": np.int32, "b32": np.uint32, "u64": np.uint64, "i64": np.int64, "b64": np.uint64,
    }  # fmt: skip
    stem = {"wrxchg": "swap", "cmpst": "cmpswap"}.get(name, name)
    if kind not in dtypes or stem not in _INTEGER:
        return None
    return AtomicKind(_INTEGER[stem], dtypes[kind], wraps=True)
