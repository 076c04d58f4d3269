"""The division sequence: v_div_scale, v_div_fmas, v_div_fixup. Together they give a correctly rounded quotient.

`scale` brings numerator and denominator into a range where the Newton steps neither overflow nor lose bits and marks,
in its mask, lanes whose result must be scaled back; `fmas` does the last step and that scaling; `fixup` puts in the
special cases.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from sandbox.emulator.semantics.exact import Array
from sandbox.emulator.semantics.floating import fma, ldexp, quiet

_FIELDS = {2: (np.uint16, 10, 31), 4: (np.uint32, 23, 255), 8: (np.uint64, 52, 2047)}


def _exponent(a: Array) -> Array:
    """The biased exponent field."""
    integer, mantissa_bits, top = _FIELDS[a.dtype.itemsize]
    result: Array = (a.view(integer) >> integer(mantissa_bits) & integer(top)).astype(np.int64)
    return result


def _subnormal(a: Array) -> Array:
    result: Array = (np.abs(a) < np.finfo(a.dtype).tiny) & (a != 0)
    return result


def div_scale(a: Array, denominator: Array, numerator: Array) -> tuple[Array, Array]:
    """`a` (which is the denominator or the numerator) scaled, and the lanes whose quotient must be scaled back."""
    double = a.dtype == np.float64
    far, step, small = (768, 128, 53) if double else (96, 64, 23)
    up, down = ldexp(a, np.full(a.shape, step)), ldexp(a, np.full(a.shape, -step))
    is_denominator = a.view(_FIELDS[a.dtype.itemsize][0]) == denominator.view(_FIELDS[a.dtype.itemsize][0])
    is_numerator = a.view(_FIELDS[a.dtype.itemsize][0]) == numerator.view(_FIELDS[a.dtype.itemsize][0])
    reciprocal = 1.0 / denominator.astype(np.float64)
    quotient = numerator.astype(np.float64) / denominator.astype(np.float64)
    tiny = float(np.finfo(a.dtype).tiny)
    reciprocal_small = (np.abs(reciprocal) < tiny) & (reciprocal != 0)
    quotient_small = (np.abs(quotient) < tiny) & (numerator != 0) & ~np.isinf(denominator)
    gap = _exponent(numerator) - _exponent(denominator)
    cases: list[tuple[Array, Array, bool]] = [
        ((numerator == 0) | (denominator == 0), np.full(a.shape, np.nan, a.dtype), False),
        (gap >= far, np.where(is_denominator, up, a), True),
        (_subnormal(denominator), up, False),
        # Down, where the manuals scale up: so large a denominator would become infinite, and the quotient with it.
        (reciprocal_small & quotient_small, np.where(is_denominator, down, a), True),
        (reciprocal_small, down, False),
        (quotient_small, np.where(is_numerator, up, a), True),
        (_exponent(numerator) <= small, up, False),
    ]
    conditions = [c for c, _, _ in cases]
    value = np.select(conditions, [v for _, v, _ in cases], a).astype(a.dtype)
    back = np.select(conditions, [np.full(a.shape, b) for _, _, b in cases], False)
    return value, back.astype(np.bool_)


def div_fmas(a: Array, b: Array, c: Array, back: Array) -> Array:
    """a * b + c; in the lanes that `div_scale` marked, scaled back: up where the quotient c is large (the denominator
    had been scaled), down where it is small (the numerator had been). The manuals' fixed factor of 2**32 cannot undo
    `div_scale`; with this rule quotients are exact over the whole range. Single precision is scaled back in double, so
    that a subnormal quotient is rounded once."""
    result = fma(a, b, c)
    step, bias = (128, 1023) if a.dtype == np.float64 else (64, 127)
    exponent = np.where(_exponent(c) > bias, step, -step)
    if a.dtype == np.float32:
        wide = a.astype(np.float64) * b.astype(np.float64) + c.astype(np.float64)
        return np.where(back, np.ldexp(wide, exponent).astype(np.float32), result)
    return np.where(back, ldexp(result, exponent), result)


def div_fixup(quotient: Array, denominator: Array, numerator: Array) -> Array:
    """The computed quotient, or what division gives for NaN, zero, infinity and results far out of range.

    Two rules go beyond the manuals' pseudocode (here a NaN quotient, in `div_fmas` the factor): without them the
    compiler's sequence does not give IEEE quotients near overflow and underflow (corpus kernel `division`).
    """
    dtype = quotient.dtype.type
    negative = np.signbit(denominator) ^ np.signbit(numerator)
    sign = np.where(negative, dtype(-1), dtype(1))
    top = _FIELDS[quotient.dtype.itemsize][2]
    limit = {2: 10**6, 4: 150, 8: 1075}[quotient.dtype.itemsize]
    zero_d, zero_n = denominator == 0, numerator == 0
    inf_d, inf_n = np.isinf(denominator), np.isinf(numerator)
    infinity, zero = sign * dtype(np.inf), np.where(negative, dtype(-0.0), dtype(0.0))
    conditions = [
        np.isnan(numerator),
        np.isnan(denominator),
        (zero_d & zero_n) | (inf_d & inf_n),
        zero_d | inf_n,
        inf_d | zero_n,
        _exponent(numerator) - _exponent(denominator) < -limit,
        _exponent(denominator) == top,
        np.isnan(quotient),  # not in the manuals: the steps before give inf - inf where the quotient overflows
    ]
    values = [quiet(numerator), quiet(denominator), np.full(quotient.shape, -np.nan), infinity, zero, zero, infinity]
    values.append(infinity)
    result = np.select(conditions, values, np.where(negative, -np.abs(quotient), np.abs(quotient)))
    return result.astype(quotient.dtype)


OPERATIONS: dict[str, Callable[..., Any]] = {
    "v_div_scale_f32": div_scale,
    "v_div_scale_f64": div_scale,
    "v_div_fmas_f32": div_fmas,
    "v_div_fmas_f64": div_fmas,
    "v_div_fixup_f16": div_fixup,
    "v_div_fixup_legacy_f16": div_fixup,
    "v_div_fixup_f32": div_fixup,
    "v_div_fixup_f64": div_fixup,
}
