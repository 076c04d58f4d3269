"""Whether two sets of results agree, judged by an oracle of higher precision and by the baseline's own error.

Everything that does not need a tolerance is compared first: how many results, shapes, dtypes, strides, where the NaNs
and infinities are. Then each element of the candidate must be close to the oracle or to the baseline. "Close" is
`roundoff multiple x (|expected| + scale of the row)`, widened to a small multiple of the error the baseline itself
makes against the oracle: a kernel that sums in another order passes, one that computes in fewer bits does not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sandbox.blocks import FEW, Block, Numbers, Rows, each, same_bytes
from sandbox.float_errors import Comparison, distance_between
from sandbox.number_formats import FORMATS, Array, decode, is_float


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
    if not (is_float(got.dtype) or got.dtype.startswith("complex")):
        return _compare_exact(place, got.data, expected.data), None
    comparison = _comparison(got, expected, reference, yardsticks.scales.get(place, 0.0), yardsticks.noise.get(place))
    wrong, errors = comparison.judge()
    return (Mismatch(wrong.check, place, wrong.message, wrong.details) if wrong is not None else None), errors


def _comparison(
    got: TensorValue, expected: TensorValue, reference: Value, least_scale: float, noise: float | None
) -> Comparison:
    """Floating-point tensors of one shape and dtype; a complex element is two numbers beside each other."""
    c, b = Numbers.of(got.dtype, got.data), Numbers.of(expected.dtype, expected.data)
    o = None
    if isinstance(reference, TensorValue) and reference.shape == expected.shape:
        o = Numbers.of(reference.dtype, reference.data)
        if expected.dtype.startswith("complex") and not reference.dtype.startswith("complex"):
            o = Numbers.of("complex128", decode(reference.dtype, reference.data).astype(np.complex128))
    shape = (*expected.shape, 2) if expected.dtype.startswith("complex") else expected.shape
    return Comparison(shape, c, b, o, FORMATS[c.dtype], least_scale, noise)


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
            one, other = Numbers.of(a.dtype, a.data), Numbers.of(b.dtype, b.data)
            found[place] = distance_between(one, other, a.shape)
    return found


def largest_noise(pairs: Iterable[tuple[Results, Results]]) -> dict[str, float]:
    """The largest `noise_between` of each place over several pairs of runs."""
    found: dict[str, float] = {}
    for first, again in pairs:
        for place, apart in noise_between(first, again).items():
            found[place] = max(found.get(place, 0.0), apart)
    return found


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


def bitwise_equal(a: Results, b: Results) -> bool:
    """Whether two runs returned the very same bits; NaNs of equal bits count as equal."""
    if list(a) != list(b):
        return False
    return all(_same_bits(a[p], b[p]) for p in a)


def _same_bits(a: Value, b: Value) -> bool:
    if isinstance(a, TensorValue) and isinstance(b, TensorValue):
        return a.dtype == b.dtype and a.shape == b.shape and same_bytes(a.data, b.data)
    return type(a) is type(b) and (a == b or (a != a and b != b))


def informative(results: Results) -> bool:
    """Whether agreement on these results says anything: some tensor is mostly finite and not one number throughout."""
    return any(_says_something(v) for v in results.values() if isinstance(v, TensorValue) and v.data.size)


def _says_something(value: TensorValue) -> bool:
    if not is_float(value.dtype):
        numbers = decode(value.dtype, value.data)
        finite = np.isfinite(numbers)
        known = numbers[finite].real
        enough = 2 * known.size >= numbers.size
        return enough and (numbers.size == 1 or bool(known.size and (known != known[0]).any()))
    elements = Numbers.of(value.dtype, value.data)
    blocks = Rows(1, value.data.size).blocks()

    def span_of(block: Block) -> tuple[int, float, float]:
        x = elements[block.span]
        x = x[np.isfinite(x)]
        return x.size, float(np.min(x, initial=np.inf)), float(np.max(x, initial=-np.inf))

    counts, least, largest = zip(*each(blocks, span_of), strict=True)
    return 2 * sum(counts) >= value.data.size and (value.data.size == 1 or min(least) < max(largest))
