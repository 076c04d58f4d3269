"""Floating-point operations of f16, f32 and f64 that need nothing but their operands.

Transcendental instructions are computed in double precision and rounded once; hardware is within one ulp of that, so
results of these (and what follows from them) are compared by tolerance, never bit by bit.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from sandbox.emulator.semantics.exact import Array, fma16, fma32, fma64

_INTEGERS = {2: np.uint16, 4: np.uint32, 8: np.uint64}
_QUIET = {2: 0x0200, 4: 0x00400000, 8: 0x0008000000000000}


def fma(a: Array, b: Array, c: Array) -> Array:
    """Fused multiply-add in the precision of `a`."""
    return {2: fma16, 4: fma32, 8: fma64}[a.dtype.itemsize](a, b, c)


def quiet(values: Array) -> Array:
    """Signalling NaNs made quiet, everything else as it was."""
    size = values.dtype.itemsize
    bits = values.view(_INTEGERS[size])
    return np.where(np.isnan(values), bits | _INTEGERS[size](_QUIET[size]), bits).view(values.dtype)


def is_signalling(values: Array) -> Array:
    """Where a NaN has its quiet bit clear."""
    size = values.dtype.itemsize
    result: Array = np.isnan(values) & (values.view(_INTEGERS[size]) & _INTEGERS[size](_QUIET[size]) == 0)
    return result


def _smaller(a: Array, b: Array) -> Array:
    """Where `a` is below `b`, minus zero counting as below plus zero."""
    result: Array = (a < b) | ((a == b) & np.signbit(a))
    return result


def minimum(a: Array, b: Array) -> Array:
    """The smaller operand; a NaN loses to a number, a signalling NaN wins (IEEE mode)."""
    return _pick(a, b, np.where(_smaller(a, b), a, b))


def maximum(a: Array, b: Array) -> Array:
    """The larger operand; NaN as for `minimum`."""
    return _pick(a, b, np.where(_smaller(a, b), b, a))


def _pick(a: Array, b: Array, ordered: Array) -> Array:
    nan_a, nan_b = np.isnan(a), np.isnan(b)
    if not (nan_a.any() or nan_b.any()):
        return ordered
    out = np.where(nan_a, np.where(nan_b, quiet(a), b), np.where(nan_b, a, ordered))
    out = np.where(is_signalling(b), quiet(b), out)
    return np.where(is_signalling(a), quiet(a), out)


def _min3(a: Array, b: Array, c: Array) -> Array:
    return minimum(minimum(a, b), c)


def _max3(a: Array, b: Array, c: Array) -> Array:
    return maximum(maximum(a, b), c)


def _med3(a: Array, b: Array, c: Array) -> Array:
    median = maximum(minimum(a, b), minimum(maximum(a, b), c))
    return np.where(np.isnan(a) | np.isnan(b) | np.isnan(c), _min3(a, b, c), median)


def _propagating(choose: Callable[[Array, Array], Array]) -> Callable[[Array, Array, Array], Array]:
    def run(a: Array, b: Array, c: Array) -> Array:
        out = choose(choose(a, b), c)
        for x in (c, b, a):
            out = np.where(np.isnan(x), quiet(x), out)
        return out

    return run


def _fract(a: Array) -> Array:
    below_one = np.nextafter(a.dtype.type(1), a.dtype.type(0))
    return np.where(np.isfinite(a), np.minimum(a - np.floor(a), below_one), a.dtype.type(np.nan))


def _in_double(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    def run(a: Array) -> Array:
        return function(a.astype(np.float64)).astype(a.dtype)

    return run


def _flushing(function: Callable[[Array], Array], dtype: Any, source: bool = True) -> Callable[[Array], Array]:
    """An f32 instruction without subnormal support, whatever MODE says: sources (for some) and results are flushed."""
    tiny = np.finfo(dtype).tiny

    def zero(values: Array) -> Array:
        return np.where(np.abs(values) < tiny, np.copysign(0.0, values), values).astype(values.dtype)

    def run(a: Array) -> Array:
        return zero(function((zero(a) if source else a).astype(np.float64)).astype(dtype))

    return run


def _reciprocal(a: Array) -> Array:
    return 1.0 / a


def _reciprocal_root(a: Array) -> Array:
    return 1.0 / np.sqrt(a)


def _sine(turns: Array) -> Array:
    """Sine of an angle in revolutions; 0 outside the valid range of 256 turns."""
    inside = np.abs(turns) <= 256
    return np.where(inside | ~np.isfinite(turns), np.sin(2 * np.pi * np.fmod(turns, 1.0)), 0.0)


def _cosine(turns: Array) -> Array:
    """Cosine of an angle in revolutions; 1 outside the valid range of 256 turns."""
    inside = np.abs(turns) <= 256
    return np.where(inside | ~np.isfinite(turns), np.cos(2 * np.pi * np.fmod(turns, 1.0)), 1.0)


def ldexp(a: Array, exponent: Array) -> Array:
    """a * 2**exponent with one rounding. The exponent is limited to what still matters, so that it cannot overflow."""
    return np.ldexp(a, np.clip(exponent, -5000, 5000).astype(np.int32)).astype(a.dtype)


def _frexp_exponent(a: Array) -> Array:
    exponent = np.frexp(a)[1]
    return np.where(np.isfinite(a), exponent, 0).astype(np.int16 if a.dtype == np.float16 else np.int32)


def _frexp_mantissa(a: Array) -> Array:
    return np.where(np.isfinite(a), np.frexp(a)[0], quiet(a))


def _multiply_legacy(a: Array, b: Array) -> Array:
    return np.where((a == 0) | (b == 0), a.dtype.type(0), a * b)


def _cube_axis(x: Array, y: Array, z: Array) -> Array:
    """The axis (0 to 2) of a cube map's face: the coordinate of the largest magnitude, z before y before x."""
    ax, ay, az = np.abs(x), np.abs(y), np.abs(z)
    return np.where((az >= ax) & (az >= ay), 2, np.where(ay >= ax, 1, 0))


def _cube_major(x: Array, y: Array, z: Array) -> Array:
    result: Array = np.choose(_cube_axis(x, y, z), [x, y, z])
    return result


def _cube_face(x: Array, y: Array, z: Array) -> Array:
    return (2 * _cube_axis(x, y, z) + (_cube_major(x, y, z) < 0)).astype(np.float32)


def _cube_s(x: Array, y: Array, z: Array) -> Array:
    result: Array = np.choose(_cube_axis(x, y, z), [np.where(x < 0, z, -z), x, np.where(z < 0, -x, x)])
    return result


def _cube_t(x: Array, y: Array, z: Array) -> Array:
    result: Array = np.choose(_cube_axis(x, y, z), [-y, np.where(y < 0, -z, z), -y])
    return result


@cache
def _two_over_pi_bits() -> int:
    """The first 1201 fraction bits of 2/pi, from Machin's formula in integers."""
    guard = 1300
    one = 1 << guard

    def arctan_inverse(x: int) -> int:
        total, term, n, sign = 0, one // x, 1, 1
        while term:
            total += sign * (term // n)
            term //= x * x
            n, sign = n + 2, -sign
        return total

    pi = 4 * (4 * arctan_inverse(5) - arctan_inverse(239))
    return ((2 * one * one) // pi) >> (guard - 1201)


def _trig_preop(a: Array, segment: Array) -> Array:
    """A 53-bit piece of 2/pi, chosen by the magnitude of `a` and a segment number, scaled to its place."""
    table = _two_over_pi_bits()
    out = np.zeros(a.shape, np.float64)
    for k in range(a.size):
        exponent = int(a.view(np.uint64)[k] >> np.uint64(52)) & 0x7FF
        shift = int(segment[k] & 31) * 53 + max(0, exponent - 1077)
        piece = (table << shift >> (1201 - 53)) & ((1 << 53) - 1)
        out[k] = np.ldexp(float(piece), -53 - shift + (128 if exponent >= 1968 else 0))
    return out


def _arithmetic(kind: str, dtype: Any) -> dict[str, Callable[..., Array]]:
    return {
        f"v_add_{kind}": np.add,
        f"v_sub_{kind}": np.subtract,
        f"v_subrev_{kind}": lambda a, b: b - a,
        f"v_mul_{kind}": np.multiply,
        f"v_fma_{kind}": fma,
        f"v_fmac_{kind}": fma,
        f"v_min_{kind}": minimum,
        f"v_max_{kind}": maximum,
        f"v_min3_{kind}": _min3,
        f"v_max3_{kind}": _max3,
        f"v_med3_{kind}": _med3,
        f"v_minimum3_{kind}": _propagating(minimum),
        f"v_maximum3_{kind}": _propagating(maximum),
        f"v_trunc_{kind}": np.trunc,
        f"v_ceil_{kind}": np.ceil,
        f"v_rndne_{kind}": np.rint,
        f"v_floor_{kind}": np.floor,
        f"v_fract_{kind}": _fract,
        f"v_sqrt_{kind}": np.sqrt if dtype == np.float64 else _in_double(np.sqrt),
        f"v_ldexp_{kind}": ldexp,
        f"v_frexp_mant_{kind}": _frexp_mantissa,
    }


OPERATIONS: dict[str, Callable[..., Any]] = {
    **_arithmetic("f16", np.float16),
    **_arithmetic("f32", np.float32),
    **_arithmetic("f64", np.float64),
    "v_fmamk_f32": fma,
    "v_fmaak_f32": fma,
    # The unfused forms: a separate rounding of the product.
    "v_mac_f16": lambda a, b, c: a * b + c,
    "v_madmk_f16": lambda a, k, b: a * k + b,
    "v_madak_f16": lambda a, b, k: a * b + k,
    "v_mad_f16": lambda a, b, c: a * b + c,
    "v_mad_legacy_f16": lambda a, b, c: a * b + c,
    "v_fma_legacy_f16": fma,
    "v_mul_legacy_f32": _multiply_legacy,
    "v_cubeid_f32": _cube_face,
    "v_cubesc_f32": _cube_s,
    "v_cubetc_f32": _cube_t,
    "v_cubema_f32": lambda x, y, z: _cube_major(x, y, z) * np.float32(2),
    "v_frexp_exp_i16_f16": _frexp_exponent,
    "v_frexp_exp_i32_f32": _frexp_exponent,
    "v_frexp_exp_i32_f64": _frexp_exponent,
    "v_exp_f32": _flushing(np.exp2, np.float32, source=False),
    "v_exp_legacy_f32": _flushing(np.exp2, np.float32, source=False),
    "v_log_f32": _flushing(np.log2, np.float32),
    "v_log_legacy_f32": _flushing(np.log2, np.float32),
    "v_rcp_f32": _flushing(_reciprocal, np.float32),
    "v_rcp_iflag_f32": _flushing(_reciprocal, np.float32),
    "v_rsq_f32": _flushing(_reciprocal_root, np.float32),
    "v_sin_f32": _in_double(_sine),
    "v_cos_f32": _in_double(_cosine),
    "v_exp_f16": _in_double(np.exp2),
    "v_log_f16": _in_double(np.log2),
    "v_rcp_f16": _in_double(_reciprocal),
    "v_rsq_f16": _in_double(_reciprocal_root),
    "v_sin_f16": _in_double(_sine),
    "v_cos_f16": _in_double(_cosine),
    "v_rcp_f64": _reciprocal,
    "v_rsq_f64": _reciprocal_root,
    "v_trig_preop_f64": _trig_preop,
}
"""Mnemonic to a function of its sources, each 64 elements, returning 64 results."""
