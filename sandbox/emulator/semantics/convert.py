"""Conversions between types: v_cvt_* without scale factors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from sandbox.emulator.semantics.exact import TOWARD_ZERO, Array, narrow

_U32 = np.uint32


def _to_integer(dtype: Any, rounding: Callable[[Array], Array] = np.trunc) -> Callable[[Array], Array]:
    """Float to integer: rounded, limited to the range, NaN becomes 0."""
    limits = np.iinfo(dtype)

    def run(a: Array) -> Array:
        wide = rounding(a.astype(np.float64))
        bounded = np.clip(np.where(np.isnan(wide), 0.0, wide), float(limits.min), float(limits.max))
        return bounded.astype(np.int64).astype(dtype)

    return run


def _to_float(dtype: Any) -> Callable[[Array], Array]:
    return lambda a: a.astype(dtype)


def bf16_to_f32(bits: Array) -> Array:
    """bf16 bits to float32."""
    return (bits.astype(_U32) << _U32(16)).view(np.float32)


def f32_to_bf16(a: Array) -> Array:
    """float32 to bf16 bits, to nearest even; NaN stays a quiet NaN."""
    bits = a.view(_U32)
    rounded = (bits + _U32(0x7FFF) + (bits >> _U32(16) & _U32(1))) >> _U32(16)
    return np.where(np.isnan(a), bits >> _U32(16) | _U32(0x40), rounded).astype(np.uint16)


def _ubyte(k: int) -> Callable[[Array], Array]:
    return lambda a: (a >> _U32(8 * k) & _U32(0xFF)).astype(np.float32)


def _int4_offset(a: Array) -> Array:
    nibble = (a & _U32(15)).astype(np.int32)
    return (np.where(nibble >= 8, nibble - 16, nibble) / np.float32(16)).astype(np.float32)


def pack16(low: Array, high: Array) -> Array:
    """Two 16-bit arrays of any type as the halves of dwords."""
    return low.view(np.uint16).astype(_U32) | high.view(np.uint16).astype(_U32) << _U32(16)


def _pack_toward_zero(a: Array, b: Array) -> Array:
    low, high = (narrow(x.astype(np.float64), np.float16, TOWARD_ZERO) for x in (a, b))
    return pack16(low, high)


def _normalised(dtype: Any) -> Callable[[Array], Array]:
    """A float in [-1, 1] or [0, 1] to the full range of a 16-bit integer, to nearest even."""
    scale, low = (32767.0, -1.0) if dtype == np.int16 else (65535.0, 0.0)

    def run(a: Array) -> Array:
        wide = a.astype(np.float64)
        bounded = np.clip(np.where(np.isnan(wide), 0.0, wide), low, 1.0)
        return np.rint(bounded * scale).astype(np.int64).astype(dtype)

    return run


def _pack_normalised(dtype: Any) -> Callable[[Array, Array], Array]:
    one = _normalised(dtype)
    return lambda a, b: pack16(one(a), one(b))


def _insert_byte(a: Array, position: Array, old: Array) -> Array:
    value = np.clip(np.where(np.isnan(a), 0, np.rint(a)), 0, 255).astype(_U32)
    shift = (position & _U32(3)) * _U32(8)
    result: Array = (old & ~(_U32(0xFF) << shift)) | value << shift
    return result


def _stochastic(bits_kept: int, finish: Callable[[Array], Array]) -> Callable[[Array, Array], Array]:
    """Add noise below the bits that remain, then cut: the noise's top bits line up with the bits that are dropped."""
    dropped = 23 - bits_kept

    def run(a: Array, noise: Array) -> Array:
        bits = a.view(_U32)
        moved = (bits + (noise >> _U32(32 - dropped))) & _U32(0xFFFFFFFF << dropped & 0xFFFFFFFF)
        return finish(np.where(np.isfinite(a), moved, bits).view(np.float32))

    return run


OPERATIONS: dict[str, Callable[..., Any]] = {
    "v_cvt_i32_f64": _to_integer(np.int32),
    "v_cvt_u32_f64": _to_integer(np.uint32),
    "v_cvt_i32_f32": _to_integer(np.int32),
    "v_cvt_u32_f32": _to_integer(np.uint32),
    "v_cvt_i16_f16": _to_integer(np.int16),
    "v_cvt_u16_f16": _to_integer(np.uint16),
    "v_cvt_rpi_i32_f32": _to_integer(np.int32, lambda a: np.floor(a + 0.5)),
    "v_cvt_flr_i32_f32": _to_integer(np.int32, np.floor),
    "v_cvt_f64_i32": _to_float(np.float64),
    "v_cvt_f64_u32": _to_float(np.float64),
    "v_cvt_f64_f32": _to_float(np.float64),
    "v_cvt_f32_i32": _to_float(np.float32),
    "v_cvt_f32_u32": _to_float(np.float32),
    "v_cvt_f32_f16": _to_float(np.float32),
    "v_cvt_f32_f64": _to_float(np.float32),
    "v_cvt_f16_f32": _to_float(np.float16),
    "v_cvt_f16_u16": _to_float(np.float16),
    "v_cvt_f16_i16": _to_float(np.float16),
    "v_cvt_f32_bf16": bf16_to_f32,
    "v_cvt_f32_ubyte0": _ubyte(0),
    "v_cvt_f32_ubyte1": _ubyte(1),
    "v_cvt_f32_ubyte2": _ubyte(2),
    "v_cvt_f32_ubyte3": _ubyte(3),
    "v_cvt_off_f32_i4": _int4_offset,
    "v_cvt_norm_i16_f16": _normalised(np.int16),
    "v_cvt_norm_u16_f16": _normalised(np.uint16),
    "v_cvt_pknorm_i16_f32": _pack_normalised(np.int16),
    "v_cvt_pknorm_u16_f32": _pack_normalised(np.uint16),
    "v_cvt_pknorm_i16_f16": _pack_normalised(np.int16),
    "v_cvt_pknorm_u16_f16": _pack_normalised(np.uint16),
    "v_cvt_pkrtz_f16_f32": _pack_toward_zero,
    "v_cvt_pk_f16_f32": lambda a, b: pack16(a.astype(np.float16), b.astype(np.float16)),
    "v_cvt_pk_bf16_f32": lambda a, b: pack16(f32_to_bf16(a), f32_to_bf16(b)),
    "v_cvt_pk_u8_f32": _insert_byte,
    "v_pack_b32_f16": pack16,
    "v_cvt_sr_f16_f32": _stochastic(10, lambda a: narrow(a.astype(np.float64), np.float16, TOWARD_ZERO)),
    "v_cvt_sr_bf16_f32": _stochastic(7, lambda a: (a.view(_U32) >> _U32(16)).astype(np.uint16)),
}
"""Mnemonic to a function of its sources. Packed results are dwords."""
