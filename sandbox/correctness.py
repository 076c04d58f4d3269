"""Whether two sets of results agree, judged by an oracle of higher precision and by the baseline's own error.

Everything that does not need a tolerance is compared first: how many results, shapes, dtypes, strides, where the NaNs
and infinities are. Then each element of the candidate must be close to the oracle or to the baseline. "Close" is
`roundoff multiple x (|expected| + scale of the row)`, widened to a small multiple of the error the baseline itself
makes against the oracle: a kernel that sums in another order passes, one that computes in fewer bits does not.

Pure numpy: bfloat16 and float8 travel as their bits beside their dtype name (torch's names, `bfloat16`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Float64 = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class TensorValue:
    """One tensor as a child process sent it back; `data` has `shape`, and holds bits for bfloat16 and float8."""

    dtype: str
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    data: Array


Scalar = bool | int | float | str | None
Value = TensorValue | Scalar
Results = Mapping[str, Value]
"""Place in the result tree (`output[0]`, `argument x`) to value."""


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

ERROR_FACTOR = 4.0
"""The candidate's error may be this many times the baseline's own, against the same oracle."""


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


@dataclass(frozen=True, slots=True)
class Mismatch:
    """`check` names what failed first at `place`."""

    check: str
    place: str
    message: str
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Agreement:
    """What a comparison found. Errors are the largest of any result, in roundoffs of its dtype over the row scale."""

    mismatches: tuple[Mismatch, ...]
    candidate_error: float | None
    baseline_error: float | None
    """None where there was no oracle, no floating-point result, or no bit that differed."""


@dataclass(frozen=True, slots=True)
class Yardsticks:
    """What is known of a baseline beyond one run of it, by place in its results.

    `scales` (see `typical_scales`) keeps a sum that happens to cancel on these inputs from being judged by its own
    small size. `noise` (see `noise_between`) is how far the baseline is from itself where it is run again: the order of
    its atomics is not fixed, so nobody can be asked to keep it. A place that is named there, with 0 too, is not asked
    for the digits of small elements beside large ones.
    """

    scales: Mapping[str, float] = field(default_factory=dict)
    noise: Mapping[str, float] = field(default_factory=dict)


def compare(
    candidate: Results, baseline: Results, oracle: Results | None = None, yardsticks: Yardsticks | None = None
) -> Agreement:
    """Compare what a candidate returned with what the baseline returned on the same inputs.

    `oracle` holds results of higher precision for the same places, as float64 or the results' own dtype; places it
    lacks are judged by the baseline alone. One mismatch, the first, is reported per place.
    """
    yardsticks = yardsticks or Yardsticks()
    found: list[Mismatch] = []
    candidate_errors: list[float] = []
    baseline_errors: list[float] = []
    if list(candidate) != list(baseline):
        missing = [p for p in baseline if p not in candidate]
        extra = [p for p in candidate if p not in baseline]
        text = f"{len(candidate)} results instead of {len(baseline)}"
        text += f"; missing: {', '.join(missing[:3])}" if missing else ""
        text += f"; not expected: {', '.join(extra[:3])}" if extra else ""
        return Agreement((Mismatch("output-count", "outputs", text),), None, None)
    for place, expected in baseline.items():
        reference = oracle.get(place) if oracle is not None else None
        mismatch, errors = _compare_value(place, candidate[place], expected, reference, yardsticks)
        if mismatch is not None:
            found.append(mismatch)
        if errors is not None:
            candidate_errors.append(errors[0])
            baseline_errors.append(errors[1])
    return Agreement(tuple(found), max(candidate_errors, default=None), max(baseline_errors, default=None))


def _compare_value(
    place: str, got: Value, expected: Value, reference: Value, yardsticks: Yardsticks
) -> tuple[Mismatch | None, tuple[float, float] | None]:
    if not isinstance(expected, TensorValue) or not isinstance(got, TensorValue):
        return _compare_scalar(place, got, expected), None
    for check, ours, theirs in (
        ("output-shape", got.shape, expected.shape),
        ("output-dtype", got.dtype, expected.dtype),
        ("output-stride", _used_strides(got), _used_strides(expected)),
    ):
        if ours != theirs:
            return Mismatch(check, place, f"{ours} instead of {theirs}"), None
    if _same_bits(got, expected):
        return None, None  # as everything below would say, only later: what is the baseline is as right as it is
    c, b = decode(got.dtype, got.data), decode(expected.dtype, expected.data)
    o: Array | None = None
    if isinstance(reference, TensorValue) and reference.shape == expected.shape:
        o = decode(reference.dtype, reference.data)
    if got.dtype.startswith("complex"):
        c, b, o = (None if v is None else np.stack([v.real, v.imag], -1) for v in (c, b, o))  # type: ignore[assignment]
        fmt = FORMATS["float64" if got.dtype == "complex128" else "float32"]
    elif is_float(got.dtype):
        fmt = FORMATS[got.dtype]
    else:
        return _compare_exact(place, c, b), None
    return _compare_floats(place, c, b, o, fmt, yardsticks)


def _used_strides(t: TensorValue) -> tuple[int, ...]:
    """Strides of the dimensions where they matter: those of size 1 are arbitrary, so are all of an empty tensor."""
    return () if 0 in t.shape else tuple(s for s, n in zip(t.stride, t.shape, strict=True) if n > 1)


def _compare_scalar(place: str, got: Value, expected: Value) -> Mismatch | None:
    if isinstance(got, TensorValue) != isinstance(expected, TensorValue) or type(got) is not type(expected):
        return Mismatch("output-dtype", place, f"{_kind(got)} instead of {_kind(expected)}")
    if isinstance(got, float) and isinstance(expected, float):
        close = np.isclose(got, expected, rtol=1e-9, atol=0.0, equal_nan=True)
        return None if close else Mismatch("tolerance", place, f"{got!r} instead of {expected!r}")
    return None if got == expected else Mismatch("tolerance", place, f"{got!r} instead of {expected!r}")


def _kind(value: Value) -> str:
    return f"tensor of {value.dtype}" if isinstance(value, TensorValue) else type(value).__name__


def _compare_exact(place: str, c: Array, b: Array) -> Mismatch | None:
    wrong = c != b
    if not wrong.any():
        return None
    at = tuple(int(i) for i in np.argwhere(wrong)[0])
    count = int(wrong.sum())
    text = f"{count} of {wrong.size} elements differ, first at {list(at)}: {c[at]} instead of {b[at]}"
    return Mismatch("exact", place, text, {"differing": count, "elements": wrong.size})


def _compare_floats(
    place: str, c: Float64, b: Float64, o: Float64 | None, fmt: FloatFormat, yardsticks: Yardsticks
) -> tuple[Mismatch | None, tuple[float, float] | None]:
    pattern = _compare_patterns(place, c, b, o, fmt)
    if pattern is not None:
        return pattern, None
    # What is left is finite in the candidate and in one of the two references, or at the edge of overflow in both.
    if not np.isfinite(c).any():
        return None, None
    return _compare_errors(place, c, b, o, fmt, yardsticks)


def _compare_patterns(place: str, c: Float64, b: Float64, o: Float64 | None, fmt: FloatFormat) -> Mismatch | None:
    """NaN is never a wildcard: the candidate's may only stand where the baseline's or oracle's do, and the reverse."""
    rounded = b if o is None else np.where(np.abs(o) > fmt.largest * (1 + fmt.roundoff), np.copysign(np.inf, o), o)
    if all(np.isfinite(x).all() for x in (c, b, rounded)):
        return None
    for check, kind in (("nan-pattern", np.isnan), ("inf-pattern", _infinities)):
        got, want, want_too = kind(c), kind(b), kind(rounded)
        wrong = (got != want) & (got != want_too)
        if check == "inf-pattern":
            wrong &= ~_at_the_edge(c, b, rounded, fmt)
        if wrong.any():
            at = tuple(int(i) for i in np.argwhere(wrong)[0])
            text = f"at {list(at)}: {c[at]} where the baseline has {b[at]}; {int(wrong.sum())} of {c.size} elements"
            return Mismatch(check, place, text, {"differing": int(wrong.sum()), "elements": c.size})
    return None


def _at_the_edge(c: Float64, b: Float64, o: Float64, fmt: FloatFormat) -> Array:
    """One side overflowed and the other is within rounding of doing so."""
    edge = fmt.largest * (1 - 2 * fmt.max_multiple * fmt.roundoff)
    with np.errstate(invalid="ignore"):
        return np.asarray(
            (np.abs(c) >= edge) & ((np.abs(b) >= edge) | (np.abs(o) >= edge)) & (np.sign(c) == np.sign(b))
        )


def _infinities(x: Float64) -> Float64:
    return np.where(np.isinf(x), np.sign(x), 0.0)


FEW = 16
"""Below so many numbers their largest is no measure of the numbers they were summed from."""


def noise_between(first: Results, again: Results) -> dict[str, float]:
    """How far two runs of one program on the same inputs are apart, relative to |value| + scale of the row, for each
    floating-point result; 0 where they are the same."""
    found: dict[str, float] = {}
    for place, a in first.items():
        b = again.get(place)
        if isinstance(a, TensorValue) and isinstance(b, TensorValue) and a.shape == b.shape and a.dtype in FORMATS:
            found[place] = 0.0
            if _same_bits(a, b):
                continue
            one, other = decode(a.dtype, a.data), decode(b.dtype, b.data)
            both = np.isfinite(one) & np.isfinite(other)
            one, other = np.where(both, one, 0.0), np.where(both, other, 0.0)
            yard = np.abs(one) + _row_scale(one, 0.0) if one.size else one
            found[place] = _largest_ratio(np.abs(one - other), yard, FORMATS[a.dtype])
    return found


def largest_noise(pairs: Iterable[tuple[Results, Results]]) -> dict[str, float]:
    """The largest `noise_between` of each place over several pairs of runs."""
    found: dict[str, float] = {}
    for first, again in pairs:
        for place, apart in noise_between(first, again).items():
            found[place] = max(found.get(place, 0.0), apart)
    return found


def _row_scale(x: Float64, typical: float) -> Float64:
    """Largest magnitude along the trailing dimensions (as many as make up `FEW` elements), kept for broadcasting."""
    axes, elements = 0, 1
    while axes < x.ndim and elements < FEW:
        axes += 1
        elements *= x.shape[-axes]
    largest = np.abs(x).max(axis=tuple(range(-axes, 0)), keepdims=True) if axes else np.abs(x)
    return np.maximum(largest, typical) if elements < FEW else np.asarray(largest, dtype=np.float64)


def typical_scales(runs: Sequence[Results]) -> dict[str, float]:
    """Largest finite magnitude of each small floating-point result over runs on inputs of the same distribution."""
    scales: dict[str, float] = {}
    for results in runs:
        for place, value in results.items():
            if isinstance(value, TensorValue) and is_float(value.dtype) and 0 < value.data.size < FEW:
                numbers = np.abs(decode(value.dtype, value.data))
                largest = float(np.max(numbers[np.isfinite(numbers)], initial=0.0))
                scales[place] = max(scales.get(place, 0.0), largest)
    return scales


def _compare_errors(
    place: str, c: Float64, b: Float64, o: Float64 | None, fmt: FloatFormat, yardsticks: Yardsticks
) -> tuple[Mismatch | None, tuple[float, float] | None]:
    reference = b if o is None else o
    finite = np.isfinite(c) & (np.isfinite(b) | np.isfinite(reference))
    usable = finite & np.isfinite(reference)
    scale = _row_scale(np.where(usable, reference, 0.0), yardsticks.scales.get(place, 0.0))
    yard = np.abs(reference) + scale
    with np.errstate(invalid="ignore", over="ignore"):
        to_oracle = np.where(usable, np.abs(c - reference), np.inf)
        to_baseline = np.where(finite & np.isfinite(b), np.abs(c - b), np.inf)
        own = np.where(usable & np.isfinite(b), np.abs(b - reference), 0.0)
    noise = yardsticks.noise.get(place)
    own_error = max(_largest_ratio(own, yard, fmt), noise or 0.0)
    allowed = np.maximum(fmt.max_multiple * fmt.roundoff, min(ERROR_FACTOR * own_error, _slack_cap(fmt))) * yard
    if noise is None:
        allowed = np.minimum(allowed, _element_limit(reference, b, own, fmt))
    allowed = allowed + fmt.smallest
    plain = fmt.max_multiple * fmt.roundoff * (np.where(np.isfinite(b), np.abs(b), 0.0) + scale) + fmt.smallest
    wrong = finite & (to_oracle > allowed) & (to_baseline > np.minimum(plain, allowed))
    candidate_error = _largest_ratio(np.where(usable, to_oracle, 0.0), yard, fmt)
    errors = None if o is None else (candidate_error / fmt.roundoff, own_error / fmt.roundoff)
    if wrong.any():
        return _tolerance_mismatch(place, wrong, c, b, reference, errors), errors
    both = usable & np.isfinite(b)
    rms = _rms_mismatch(place, c[both], b[both], reference[both], fmt, noise or 0.0)
    return rms, errors


def _slack_cap(fmt: FloatFormat) -> float:
    """No baseline is so bad that it excuses more than this, relative to the row scale."""
    return min(0.1, 32 * math.sqrt(fmt.roundoff))


def _largest_ratio(error: Float64, yard: Float64, fmt: FloatFormat) -> float:
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(error > fmt.smallest, error / yard, 0.0)
    return float(np.max(ratio, initial=0.0))


def _element_limit(reference: Float64, b: Float64, own: Float64, fmt: FloatFormat) -> Float64:
    """Where the baseline is accurate in every element, small elements beside large ones must not be dropped either.

    Without cancellation each element is good to a few roundoffs; the candidate then has to keep half its digits.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = np.where((own > fmt.smallest) & np.isfinite(b), own / np.abs(reference), 0.0)
    accurate = float(np.max(relative, initial=0.0)) <= 8 * fmt.roundoff
    if not accurate:
        return np.full_like(reference, np.inf)
    return np.asarray(fmt.roundoff**0.5 * np.abs(np.where(np.isfinite(reference), reference, np.inf)))


def _tolerance_mismatch(
    place: str, wrong: Array, c: Float64, b: Float64, reference: Float64, errors: tuple[float, float] | None
) -> Mismatch:
    with np.errstate(invalid="ignore"):
        distance = np.where(wrong, np.abs(c - reference), -1.0)
    at = tuple(int(i) for i in np.unravel_index(int(np.nanargmax(distance)), distance.shape))
    count = int(wrong.sum())
    text = f"{count} of {wrong.size} elements are wrong, worst at {list(at)}: "
    text += f"{c[at]:.9g} instead of {reference[at]:.9g}"
    text += f" (baseline {b[at]:.9g})" if errors is not None else ""
    details: dict[str, Any] = {"differing": count, "elements": wrong.size}
    if errors is not None:
        text += f"; error {errors[0]:.3g} roundoffs, the baseline's own is {errors[1]:.3g}"
        details |= {"candidate_error_roundoffs": errors[0], "baseline_error_roundoffs": errors[1]}
    return Mismatch("tolerance", place, text, details)


def _rms_mismatch(
    place: str, c: Float64, b: Float64, reference: Float64, fmt: FloatFormat, noise: float
) -> Mismatch | None:
    """Fewer bits show in the mean long before they show in the worst element."""
    if c.size < FEW:
        return None
    got, size = _rms(c - reference), _rms(reference)
    own = max(_rms(b - reference), noise * size)
    allowed = max(ERROR_FACTOR * min(own, _slack_cap(fmt) * size), fmt.rms_multiple * fmt.roundoff * size)
    if min(got, _rms(c - b)) <= allowed + fmt.smallest:
        return None
    text = (
        f"error {got:.3g} (root mean square) against results of size {size:.3g}; the baseline's own is {own:.3g}, "
        f"{allowed:.3g} is allowed"
    )
    return Mismatch("precision", place, text, {"candidate_rms": got, "baseline_rms": own, "allowed_rms": allowed})


def _rms(x: Float64) -> float:
    peak = float(np.max(np.abs(x), initial=0.0))
    if peak == 0.0 or not np.isfinite(peak):
        return peak
    return peak * float(np.sqrt(np.mean(np.square(x / peak))))


def bitwise_equal(a: Results, b: Results) -> bool:
    """Whether two runs returned the very same bits; NaNs of equal bits count as equal."""
    if list(a) != list(b):
        return False
    return all(_same_bits(a[p], b[p]) for p in a)


def _same_bits(a: Value, b: Value) -> bool:
    if isinstance(a, TensorValue) and isinstance(b, TensorValue):
        return a.dtype == b.dtype and a.shape == b.shape and a.data.tobytes() == b.data.tobytes()
    return type(a) is type(b) and (a == b or (a != a and b != b))


def informative(results: Results) -> bool:
    """Whether agreement on these results says anything: some tensor is mostly finite and not one number throughout."""
    for value in results.values():
        if isinstance(value, TensorValue) and value.data.size:
            numbers = decode(value.dtype, value.data)
            finite = np.isfinite(numbers)
            if 2 * int(finite.sum()) >= numbers.size and (numbers.size == 1 or _varies(numbers[finite].real)):
                return True
    return False


def _varies(numbers: npt.NDArray[Any]) -> bool:
    """Whether not all are the same; booleans too."""
    return bool(numbers.size and (numbers != numbers[0]).any())
