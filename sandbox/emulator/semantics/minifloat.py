"""The 8-, 6- and 4-bit float formats: decoding by table, encoding to nearest even, stochastic encoding.

gfx942 uses the FNUZ variants of fp8 (e4m3) and bf8 (e5m2): no infinities, no minus zero, NaN is 0x80, exponent bias one
higher. gfx950 uses the OCP variants.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
F64 = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Format:
    """A sign, `exponent_bits` and `mantissa_bits`. `special` says which codes are not finite numbers."""

    name: str
    exponent_bits: int
    mantissa_bits: int
    bias: int
    special: str
    """`fnuz`: minus zero is the NaN; `ieee`: the top exponent is infinity and NaN; `one_nan`: only the all-ones code of
    each sign is NaN; `none`: all codes are numbers."""

    @property
    def bits(self) -> int:
        return 1 + self.exponent_bits + self.mantissa_bits


FP8_FNUZ = Format("fp8", 4, 3, 8, "fnuz")
BF8_FNUZ = Format("bf8", 5, 2, 16, "fnuz")
FP8 = Format("fp8", 4, 3, 7, "one_nan")
BF8 = Format("bf8", 5, 2, 15, "ieee")
FP6 = Format("fp6", 2, 3, 1, "none")
BF6 = Format("bf6", 3, 2, 3, "none")
FP4 = Format("fp4", 2, 1, 1, "none")


def format_named(name: str, arch: str) -> Format:
    """The format an instruction of `arch` means by `fp8`, `bf8`, `fp6`, `bf6` or `fp4`."""
    if arch == "gfx942":
        return {"fp8": FP8_FNUZ, "bf8": BF8_FNUZ}[name]
    return {"fp8": FP8, "bf8": BF8, "fp6": FP6, "bf6": BF6, "fp4": FP4}[name]


MATRIX_FORMATS = (FP8, BF8, FP6, BF6, FP4)
"""By the cbsz or blgp field of f8f6f4 matrix instructions."""


@cache
def table(fmt: Format) -> F64:
    """Value of every code."""
    codes = np.arange(1 << fmt.bits)
    magnitude = codes & (1 << (fmt.bits - 1)) - 1
    exponent, mantissa = magnitude >> fmt.mantissa_bits, magnitude & (1 << fmt.mantissa_bits) - 1
    fraction = mantissa / 2.0**fmt.mantissa_bits
    value = np.where(
        exponent == 0, np.ldexp(fraction, 1 - fmt.bias), np.ldexp(1 + fraction, (exponent - fmt.bias).astype(np.int32))
    )
    negative = codes >> (fmt.bits - 1) != 0
    value = np.where(negative, -value, value)
    top = exponent == (1 << fmt.exponent_bits) - 1
    if fmt.special == "fnuz":
        value[1 << (fmt.bits - 1)] = np.nan
    elif fmt.special == "ieee":
        value = np.where(top, np.where(mantissa == 0, np.where(negative, -np.inf, np.inf), np.nan), value)
    elif fmt.special == "one_nan":
        value = np.where(top & (mantissa == (1 << fmt.mantissa_bits) - 1), np.nan, value)
    value.flags.writeable = False
    return value


@cache
def _magnitudes(fmt: Format) -> F64:
    """The finite non-negative values in increasing order; their index is their code."""
    half = table(fmt)[: 1 << (fmt.bits - 1)]
    result: F64 = half[np.isfinite(half)]
    return result


def decode(codes: Array, fmt: Format) -> F64:
    """Codes to values."""
    return table(fmt)[codes.astype(np.int64)]


def encode(values: F64, fmt: Format, saturate: bool = True) -> npt.NDArray[np.uint32]:
    """Values to codes, to nearest even. Finite values too large become the largest number (`saturate`, and always in
    formats without infinity or NaN), else infinity or NaN."""
    grid, size = _extended(fmt), np.abs(values)
    above = np.clip(np.searchsorted(grid, size), 1, grid.size - 1)
    low, high = grid[above - 1], grid[above]
    to_high = (size - low > high - size) | ((size - low == high - size) & (above % 2 == 0))
    return _finish(np.where(to_high, above, above - 1), values, fmt, saturate)


def encode_stochastic(values: F64, noise: Array, fmt: Format, saturate: bool = True) -> npt.NDArray[np.uint32]:
    """Values to codes: a random fraction (32 bits) is added below the last bit, then the rest is cut off."""
    grid, size = _extended(fmt), np.abs(values)
    above = np.clip(np.searchsorted(grid, size, side="right"), 1, grid.size - 1)
    low, high = grid[above - 1], grid[above]
    fraction = np.clip((size - low) / (high - low), 0, 1)
    up = fraction + noise.astype(np.float64) / 2.0**32 >= 1
    return _finish(np.where(up, above, above - 1), values, fmt, saturate)


@cache
def _extended(fmt: Format) -> F64:
    """The magnitudes and the one that would follow: what rounds to it has overflowed."""
    grid = _magnitudes(fmt)
    return np.append(grid, 2 * grid[-1] - grid[-2])


def _finish(code: Array, values: F64, fmt: Format, saturate: bool) -> npt.NDArray[np.uint32]:
    """Sign, overflow and NaN put in; `code` is the rounded magnitude."""
    sign = np.uint32(1 << (fmt.bits - 1))
    largest = np.uint32(_magnitudes(fmt).size - 1)
    negative = np.where(np.signbit(values), sign, np.uint32(0))
    infinity, nan = {
        "fnuz": (sign, sign),
        "ieee": (np.uint32(0x7C), np.uint32(0x7E)),
        "one_nan": (np.uint32(0x7F), np.uint32(0x7F)),
        "none": (largest, largest),
    }[fmt.special]
    code = code.astype(np.uint32)
    if fmt.special == "fnuz":
        negative = np.where(code == 0, np.uint32(0), negative)
    overflow = code > largest
    code = np.where(overflow, largest if saturate else infinity, code)
    code = np.where(np.isinf(values), infinity, np.where(np.isnan(values), nan, code))
    result: npt.NDArray[np.uint32] = (code | negative).astype(np.uint32)
    return result
