"""Number formats of the interpreter: how each Triton element type is held in numpy, and conversions between them.

bf16 values are held as float32 that bf16 can represent, rounded after every operation as hardware does; fp8 values are
held as their codes. All conversions round to nearest even; conversions to fp8 saturate to the largest finite value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

_HELD: Mapping[str, type[np.generic]] = {
    "i1": np.bool_,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "index": np.int64,
    "f16": np.float16,
    "bf16": np.float32,
    "f32": np.float32,
    "f64": np.float64,
    "ptr": np.int64,
}
_STORED: Mapping[str, type[np.generic]] = {**_HELD, "bf16": np.uint16, "i1": np.uint8}
_UNSIGNED = {np.dtype(f"i{n}"): np.dtype(f"u{n}") for n in (1, 2, 4, 8)}


@dataclass(frozen=True, slots=True)
class _Fp8:
    exponent_bits: int
    mantissa_bits: int
    bias: int
    nan: int
    """Code of the positive (or only) NaN."""
    infinity: int | None
    largest: int
    """Code of the largest finite positive value."""


_FP8: Mapping[str, _Fp8] = {
    "f8E4M3FN": _Fp8(4, 3, 7, 0x7F, None, 0x7E),
    "f8E5M2": _Fp8(5, 2, 15, 0x7E, 0x7C, 0x7B),
    "f8E4M3FNUZ": _Fp8(4, 3, 8, 0x80, None, 0x7F),
    "f8E5M2FNUZ": _Fp8(5, 2, 16, 0x80, None, 0x7F),
    "f8E4M3B11FNUZ": _Fp8(4, 3, 15, 0x80, None, 0x7F),
}


_WIDENED = frozenset({"f16", "bf16", "f32"})
_wide = False


@contextmanager
def widened(on: bool = True) -> Iterator[None]:
    """Inside, every float16, bfloat16 and float32 value is held and computed in float64, and rounded only when stored.

    What a kernel computes then is its own definition without its own rounding: an oracle for it and its rewrites.
    """
    global _wide
    before, _wide = _wide, on
    try:
        yield
    finally:
        _wide = before


def held_dtype(element: str) -> np.dtype[np.generic]:
    """The numpy dtype values of an element type are computed in; raises KeyError for a type that has none."""
    if _wide and element in _WIDENED:
        return np.dtype(np.float64)
    return np.dtype(np.uint8) if element in _FP8 else np.dtype(_HELD[element])


def stored_dtype(element: str) -> np.dtype[np.generic]:
    """The numpy dtype of the element type in memory."""
    return np.dtype(np.uint8) if element in _FP8 else np.dtype(_STORED[element])


def is_float(element: str) -> bool:
    return element.startswith(("f", "bf"))


def is_fp8(element: str) -> bool:
    return element in _FP8


def bit_width(element: str) -> int:
    if element == "ptr":
        return 64
    if is_fp8(element):
        return 8
    return int(element.removeprefix("bf").removeprefix("i").removeprefix("f")) if element != "index" else 64


def from_memory(raw: Array, element: str) -> Array:
    """Values as computed with, from values as stored."""
    if _wide and element in _WIDENED:
        with widened(False):
            return from_memory(raw, element).astype(np.float64)
    if element == "bf16":
        return (raw.astype(np.uint32) << 16).view(np.float32)
    if element == "i1":
        return raw.astype(np.bool_)
    return raw


def to_memory(values: Array, element: str) -> Array:
    """Values as stored, from values as computed with."""
    if element == "bf16":
        return (np.ascontiguousarray(round_bf16(values)).view(np.uint32) >> 16).astype(np.uint16)
    if element == "i1":
        return values.astype(np.uint8)
    return values.astype(stored_dtype(element), copy=False)


def round_bf16(values: Array) -> Array:
    """Nearest bf16 (ties to even) of float32 values, as float32."""
    return _round_bits(values, 16)


def round_tf32(values: Array) -> Array:
    """Nearest tf32 (10 mantissa bits, ties to even) of float32 values, as float32."""
    return _round_bits(values, 13)


def _round_bits(values: Array, dropped: int) -> Array:
    """float32 values without their `dropped` lowest bits, rounded to nearest even; NaN stays NaN."""
    wide = np.ascontiguousarray(values, dtype=np.float32)
    bits = wide.view(np.uint32)
    rounded = bits >> dropped
    rounded &= 1
    rounded += np.uint32((1 << (dropped - 1)) - 1)
    rounded += bits
    rounded &= np.uint32(0xFFFFFFFF << dropped & 0xFFFFFFFF)
    result: Array = rounded.view(np.float32)
    nan = np.isnan(wide)
    if nan.any():
        result = np.where(nan, np.float32(np.nan), result)
    return result


def settle(values: Array, element: str) -> Array:
    """A result brought to its element type: rounded for bf16, cast for the others."""
    if element == "bf16" and not _wide:
        return round_bf16(values.astype(np.float32, copy=False))
    return values.astype(held_dtype(element), copy=False)


def as_float32(values: Array, element: str) -> Array:
    """Values of any floating type widened to float32 (float64 stays, inside `widened` all become float64)."""
    if is_fp8(element):
        table: Array = _decode_table(element)
        return table[values].astype(np.float64) if _wide else table[values]
    if _wide:
        return values.astype(np.float64, copy=False)
    if element == "f64":
        return values
    return values.astype(np.float32, copy=False)


def convert_float(values: Array, source: str, target: str, *, toward_zero: bool = False) -> Array:
    """Between floating types, rounding to nearest even unless `toward_zero`."""
    wide = as_float32(values, source)
    if is_fp8(target):
        return _encode_fp8(wide, target)
    if _wide:
        return wide
    if toward_zero and target == "bf16":
        bits = np.ascontiguousarray(wide, dtype=np.float32).view(np.uint32) & np.uint32(0xFFFF0000)
        return bits.view(np.float32)
    if toward_zero and target == "f16":
        near = wide.astype(np.float16)
        past = np.abs(near.astype(np.float32)) > np.abs(wide)
        return np.where(past, np.nextafter(near, np.float16(0)), near)
    return settle(wide, target)


def to_integer(values: Array, element: str, *, unsigned: bool = False) -> Array:
    """Truncated toward zero, saturated at the ends of the type and 0 for NaN, as AMD's conversions do."""
    dtype = held_dtype(element)
    if dtype == np.bool_:
        return np.asarray(values != 0)
    limits = np.iinfo(_UNSIGNED[dtype] if unsigned else dtype)
    whole = np.trunc(np.nan_to_num(values.astype(np.float64), nan=0.0))
    inside = np.clip(whole, float(limits.min), float(limits.max))
    if dtype.itemsize == 8:  # the largest 64-bit integer is no double
        inside = np.where(inside >= float(limits.max), 0.0, inside)
        result = inside.astype(_UNSIGNED[dtype] if unsigned else dtype)
        full: Array = np.where(whole >= float(limits.max), limits.max, result)
        return full.view(dtype)
    narrow: Array = inside.astype(np.int64).astype(dtype)
    return narrow


def unsigned(values: Array) -> Array:
    """The same bits as unsigned integers; booleans stay."""
    if values.dtype == np.bool_:
        return values.astype(np.uint8)
    return values.view(_UNSIGNED[values.dtype])


def bitcast(values: Array, source: str, target: str) -> Array:
    """The same bits read as another type of the same width."""
    if source == target:
        return values
    raw = np.ascontiguousarray(to_memory(values, source))
    return from_memory(raw.view(stored_dtype(target)), target)


@cache
def _decode_table(element: str) -> NDArray[np.float32]:
    """The value of each of the 256 codes."""
    kind = _FP8[element]
    codes = np.arange(256)
    exponent = (codes >> kind.mantissa_bits) & ((1 << kind.exponent_bits) - 1)
    fraction = (codes & ((1 << kind.mantissa_bits) - 1)) / (1 << kind.mantissa_bits)
    values = np.where(exponent == 0, fraction * 2.0 ** (1 - kind.bias), (1 + fraction) * 2.0 ** (exponent - kind.bias))
    values = np.where(codes >= 128, -values, values)
    magnitude = codes & 0x7F
    if kind.nan == 0x80:
        values[0x80] = np.nan
    else:
        values[magnitude > kind.largest] = np.nan
    if kind.infinity is not None:
        values[magnitude == kind.infinity] = np.where(codes[magnitude == kind.infinity] >= 128, -np.inf, np.inf)
    return values.astype(np.float32)


def _encode_fp8(values: Array, element: str) -> Array:
    kind = _FP8[element]
    table = _decode_table(element)[: kind.largest + 1].astype(np.float64)
    middles = (table[:-1] + table[1:]) / 2
    magnitude = np.abs(values.astype(np.float64))
    code = np.searchsorted(middles, magnitude, side="left")
    tie = (code < len(middles)) & (magnitude == middles[np.minimum(code, len(middles) - 1)])
    code = np.where(tie & (code % 2 == 1), code + 1, code)
    negative = np.signbit(values) & ~((code == 0) & (kind.nan == 0x80))
    code = np.where(negative, code | 0x80, code)
    coded: Array = np.where(np.isnan(values), kind.nan, code).astype(np.uint8)
    return coded
