"""Correctly rounded building blocks: fused multiply-add, narrowing in every rounding mode, without hardware support."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
F64 = npt.NDArray[np.float64]

NEAREST, UPWARD, DOWNWARD, TOWARD_ZERO = 0, 1, 2, 3
"""Rounding modes as the MODE register counts them."""


def _two_sum(a: F64, b: F64) -> tuple[F64, F64]:
    """Rounded sum and its exact error (Knuth)."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def _two_product(a: F64, b: F64) -> tuple[F64, F64]:
    """Rounded product and its exact error (Dekker, splitting at 27 bits); exact while nothing over- or underflows."""
    p = a * b
    factor = 134217729.0
    ah = a * factor - (a * factor - a)
    bh = b * factor - (b * factor - b)
    al, bl = a - ah, b - bh
    return p, ((ah * bh - p) + ah * bl + al * bh) + al * bl


def add_to_odd(a: F64, b: F64) -> F64:
    """Sum rounded to odd: where inexact, the neighbour with an odd last bit. Narrowing it later rounds only once."""
    s, error = _two_sum(a, b)
    bits = s.view(np.int64)
    inexact = (error != 0) & np.isfinite(s) & (bits & 1 == 0)
    toward = np.where((error > 0) == (s > 0), 1, -1)
    toward = np.where(s == 0, 0, toward)
    return np.where(inexact, bits + toward, bits).view(np.float64)


def fma64(a: F64, b: F64, c: F64) -> F64:
    """a * b + c in double precision with one rounding (Boldo and Melquiond, through round to odd)."""
    ph, pl = _two_product(a, b)
    th, tl = _two_sum(c, pl)
    vh, vl = _two_sum(ph, th)
    result = vh + add_to_odd(tl, vl)
    with np.errstate(all="ignore"):
        plain = a * b + c
    magnitude = [np.abs(x) for x in (a, b, c, ph)]
    safe = np.ones(a.shape, np.bool_)
    for x in magnitude:
        safe &= (x < 2.0**960) & ((x > 2.0**-900) | (x == 0))
    out = np.where(safe & (ph != 0), result, plain)
    special = ~np.isfinite(plain) & ~(np.isfinite(a) & np.isfinite(b) & np.isfinite(c))
    for k in np.flatnonzero(~safe & ~special):
        out[k] = _fma_scalar(float(a[k]), float(b[k]), float(c[k]), float(plain[k]))
    return out


def _fma_scalar(a: float, b: float, c: float, plain: float) -> float:
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:
        return plain if plain == 0 else 0.0
    try:
        return float(exact)
    except OverflowError:
        return float("inf") if exact > 0 else float("-inf")


def fma32(a: Array, b: Array, c: Array) -> Array:
    """a * b + c of float32 with one rounding: the product is exact in double, the sum is rounded to odd."""
    return fma_wide(a, b, c).astype(np.float32)


def fma_wide(a: Array, b: Array, c: Array) -> F64:
    """a * b + c of float16 or float32 as a double from which narrowing gives the correctly rounded result."""
    product = a.astype(np.float64) * b.astype(np.float64)
    addend = c.astype(np.float64)
    plain = product + addend
    odd = add_to_odd(product, addend)
    result: F64 = np.where(np.isfinite(plain) & (plain != 0), odd, plain)
    return result


def fma16(a: Array, b: Array, c: Array) -> Array:
    """a * b + c of float16 with one rounding."""
    return fma_wide(a, b, c).astype(np.float16)


def narrow(values: F64, dtype: Any, mode: int) -> Array:
    """Doubles (exact, or rounded to odd) to float16 or float32 in a rounding mode of the MODE register."""
    with np.errstate(all="ignore"):
        near = values.astype(dtype)
        if mode == NEAREST:
            return near
        back = near.astype(np.float64)
        infinity = dtype(np.inf)
        if mode == UPWARD:
            wrong, target = back < values, infinity
        elif mode == DOWNWARD:
            wrong, target = back > values, -infinity
        else:
            wrong, target = np.abs(back) > np.abs(values), dtype(0)
        moved = np.nextafter(near, np.where(np.isnan(near), near, target)).astype(dtype)
        return np.where(wrong, moved, near)
