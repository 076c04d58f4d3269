"""The floating-point types that results come in, and their numbers as float64.

Pure numpy: bfloat16 and float8 travel as their bits beside their dtype name (torch's names, `bfloat16`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Float64 = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class FloatFormat:
    """A floating-point type: `roundoff` is half the distance from 1 to its neighbour, `smallest` the step near zero
    that hardware keeps (the least normal number where denormals are commonly flushed, else a few denormal steps)."""

    roundoff: float
    largest: float
    smallest: float
    max_multiple: float
    """Roundoffs one element may be off, relative to |expected| + row scale, whatever the baseline does."""
    rms_multiple: float
    """The same for the root mean square over the whole tensor, relative to that of the expected values."""


FORMATS: Mapping[str, FloatFormat] = {
    "float64": FloatFormat(2.0**-53, 1.7976931348623157e308, 2.0**-1020, 64, 16),
    "float32": FloatFormat(2.0**-24, 3.4028234663852886e38, 2.0**-124, 64, 16),
    "float16": FloatFormat(2.0**-11, 65504.0, 2.0**-23, 2, 1),
    "bfloat16": FloatFormat(2.0**-8, 3.3895313892515355e38, 2.0**-124, 2, 1),
    "float8_e4m3fn": FloatFormat(2.0**-4, 448.0, 2.0**-9, 2, 1),
    "float8_e4m3fnuz": FloatFormat(2.0**-4, 240.0, 2.0**-10, 2, 1),
    "float8_e5m2": FloatFormat(2.0**-3, 57344.0, 2.0**-16, 2, 1),
    "float8_e5m2fnuz": FloatFormat(2.0**-3, 57344.0, 2.0**-17, 2, 1),
}


def is_float(dtype: str) -> bool:
    return dtype.startswith(("float", "bfloat"))


@cache
def _float8_table(dtype: str) -> Float64:
    """Value of each of the 256 codes (OCP 8-bit floating point specification; fnuz: bias one higher, NaN is 0x80)."""
    fnuz = dtype.endswith("fnuz")
    mantissa_bits = 3 if "e4m3" in dtype else 2
    bias = (7 if mantissa_bits == 3 else 15) + fnuz
    codes = np.arange(256)
    sign = np.where(codes & 0x80, -1.0, 1.0)
    exponent = (codes & 0x7F) >> mantissa_bits
    fraction = (codes & ((1 << mantissa_bits) - 1)) / (1 << mantissa_bits)
    table = sign * np.where(
        exponent == 0, fraction * 2.0 ** (1 - bias), (1 + fraction) * 2.0 ** (exponent.astype(np.float64) - bias)
    )
    if fnuz:
        table[0x80] = np.nan
    elif mantissa_bits == 3:
        table[[0x7F, 0xFF]] = np.nan
    else:
        table[[0x7D, 0x7E, 0x7F, 0xFD, 0xFE, 0xFF]] = np.nan
        table[[0x7C, 0xFC]] = [np.inf, -np.inf]
    return np.asarray(table, dtype=np.float64)


def decode(dtype: str, data: Array) -> Array:
    """The numbers as float64 (floating types), complex128 (complex types) or unchanged (integers and booleans)."""
    if dtype == "bfloat16":
        bits = data.view(np.uint16) if data.dtype.itemsize == 2 else data.astype(np.uint16)
        with np.errstate(invalid="ignore"):
            return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    if dtype.startswith("float8"):
        return np.asarray(_float8_table(dtype)[data.view(np.uint8)])
    if dtype.startswith("float"):
        return data.astype(np.float64)
    if dtype.startswith("complex"):
        return data.astype(np.complex128)
    return data
