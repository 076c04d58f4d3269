"""The compiler's division sequence gives IEEE quotients over the whole range of exponents."""

from __future__ import annotations

import numpy as np
import pytest

from sandbox.emulator.semantics.division import div_fixup, div_fmas, div_scale
from sandbox.emulator.semantics.floating import fma

COUNT = 200_000


def quotient(n: np.ndarray, d: np.ndarray) -> np.ndarray:
    """What LLVM emits for `n / d` with denormals on."""
    one = np.ones_like(n)
    scaled_d, _ = div_scale(d, d, n)
    scaled_n, back = div_scale(n, d, n)
    with np.errstate(all="ignore"):
        reciprocal = one / scaled_d
    error = fma(-scaled_d, reciprocal, one)
    reciprocal = fma(error, reciprocal, reciprocal)
    if n.dtype == np.float64:
        error = fma(-scaled_d, reciprocal, one)
        reciprocal = fma(error, reciprocal, reciprocal)
    first = scaled_n * reciprocal
    if n.dtype == np.float32:
        first = fma(fma(-scaled_d, first, scaled_n), reciprocal, first)
    rest = fma(-scaled_d, first, scaled_n)
    return div_fixup(div_fmas(rest, reciprocal, first, back), d, n)


def operands(dtype: type, where: str) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    top = 127 if dtype is np.float32 else 1023
    low = -149 if dtype is np.float32 else -1074
    exponents = {
        "anywhere": (rng.integers(low, top, COUNT), rng.integers(low, top, COUNT)),
        "a huge denominator": (rng.integers(low, 0, COUNT), rng.integers(top - 2, top + 1, COUNT)),
        "a subnormal quotient": ((d := rng.integers(low // 2, top, COUNT)) + low + rng.integers(-2, 26, COUNT), d),
    }[where]
    count = 2_000 if dtype is np.float64 else COUNT  # the exact fma of doubles is slow
    values = [np.ldexp(rng.uniform(1, 2, COUNT), e).astype(dtype)[:count] for e in exponents]
    return values[0] * rng.choice([-1, 1], count).astype(dtype), values[1]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("where", ["anywhere", "a huge denominator", "a subnormal quotient"])
def test_quotients_are_those_of_ieee(dtype: type, where: str) -> None:
    n, d = operands(dtype, where)
    with np.errstate(all="ignore"):
        expected = n / d
        got = quotient(n, d)
    off = np.abs(got.astype(np.longdouble) - expected.astype(np.longdouble)) / np.spacing(np.abs(expected))
    both_infinite = np.isinf(got) & (got == expected)
    off = np.where(both_infinite, 0, off)
    # a subnormal double quotient is rounded twice, once before it is scaled back: one unit in rare cases
    assert np.nanmax(off) <= 1 and not np.isnan(got[~np.isnan(expected)]).any()
    assert np.count_nonzero(off) <= (0.001 * off.size if dtype is np.float64 else 0)
