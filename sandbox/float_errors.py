"""How far floating-point results are from the baseline's and from an oracle's, and whether that is too far.

Three walks over the elements (`sandbox.blocks`): where the numbers are no numbers and how large each row is; what the
baseline's own error is; what the candidate's is. What counts as close is said in `sandbox.correctness`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sandbox.blocks import FEW, Block, Numbers, Rows, each
from sandbox.number_formats import FORMATS, Array, Float64, FloatFormat

ERROR_FACTOR = 4.0
"""The candidate's error may be this many times the baseline's own, against the same oracle."""

Errors = tuple[float, float]
"""Of the candidate and of the baseline, against the oracle, in roundoffs over the row scale."""


@dataclass(frozen=True, slots=True)
class Wrong:
    """`check` names what failed."""

    check: str
    message: str
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Comparison:
    """What is compared, of one `shape`. `noise`: how far the baseline is from itself, None where nobody looked."""

    shape: tuple[int, ...]
    candidate: Numbers
    baseline: Numbers
    oracle: Numbers | None
    fmt: FloatFormat
    least_scale: float = 0.0
    noise: float | None = None

    def _values(self, block: Block) -> tuple[Float64, Float64, Float64]:
        """Of the candidate, the baseline, and what both are measured against."""
        baseline = self.baseline[block.span]
        return self.candidate[block.span], baseline, baseline if self.oracle is None else self.oracle[block.span]

    def at(self, element: int) -> list[int]:
        return [int(i) for i in np.unravel_index(element, self.shape)] if self.shape else []

    def judge(self) -> tuple[Wrong | None, Errors | None]:
        """What is wrong, first where NaNs and infinities are; and the errors, None where there is no oracle."""
        rows = Rows.of(self.shape)
        blocks = rows.blocks()
        looks = each(blocks, self._look)
        for check in ("nan-pattern", "inf-pattern"):
            strays = [x for look in looks for x in look.strays if x.check == check]
            if strays:
                return self._stray(strays), None
        # What is left is finite in the candidate and in one of the two references, or at the edge of overflow in both.
        if not any(look.any_finite for look in looks):
            return None, None
        scale = row_scales(rows, blocks, [look.largest for look in looks], self.least_scale)
        own, accurate = self._own_error(blocks, scale)
        parts = each(blocks, lambda block: self._part(block, scale, own, accurate))
        error = max(part.error for part in parts)
        errors = None if self.oracle is None else (error / self.fmt.roundoff, own / self.fmt.roundoff)
        wrong = [part for part in parts if part.wrong]
        if wrong:
            return self._too_far(wrong, errors), errors
        return self._imprecise(parts), errors

    def _look(self, block: Block) -> _Look:
        """NaN is never a wildcard: it may only stand where the baseline's or oracle's does, and must stand there."""
        c, b, reference = self._values(block)
        rounded = b if self.oracle is None else _rounded(reference, self.fmt)
        finite = np.isfinite(c)
        strays: tuple[_Stray, ...] = ()
        if finite.all() and np.isfinite(b).all() and np.isfinite(rounded).all():
            sizes = np.abs(reference)
        else:
            strays = self._strays(block, c, b, rounded)
            sizes = np.abs(np.where(finite & np.isfinite(reference), reference, 0.0))
        return _Look(bool(finite.any()), strays, block.by_row(sizes).max(axis=1))

    def _strays(self, block: Block, c: Float64, b: Float64, rounded: Float64) -> tuple[_Stray, ...]:
        found = []
        for check, kind in (("nan-pattern", np.isnan), ("inf-pattern", _infinities)):
            got = kind(c)
            wrong = (got != kind(b)) & (got != kind(rounded))
            if check == "inf-pattern":
                wrong &= ~_at_the_edge(c, b, rounded, self.fmt)
            if wrong.any():
                first = int(np.argmax(wrong))
                count = int(wrong.sum())
                found.append(_Stray(check, count, block.span.start + first, float(c[first]), float(b[first])))
        return tuple(found)

    def _stray(self, strays: Sequence[_Stray]) -> Wrong:
        count, size, first = sum(x.count for x in strays), math.prod(self.shape), strays[0]
        text = f"at {self.at(first.element)}: {first.got} where the baseline has {first.expected}"
        return Wrong(first.check, f"{text}; {count} of {size} elements", {"differing": count, "elements": size})

    def _own_error(self, blocks: Sequence[Block], scale: Float64) -> tuple[float, bool]:
        """The baseline's largest error relative to |value| + scale of the row; whether it is accurate in every element,
        small ones beside large ones included."""
        if self.oracle is None:
            return self.noise or 0.0, True

        def errors_of(block: Block) -> tuple[float, float]:
            c, b, reference = self._values(block)
            usable = np.isfinite(b) & np.isfinite(reference) & np.isfinite(c)
            if not usable.all():
                b, reference = np.where(usable, b, 0.0), np.where(usable, reference, 0.0)
            own, size = np.abs(b - reference), np.abs(reference)
            yard = size + _spread(block, scale)
            return largest_ratio(own, yard, self.fmt), largest_ratio(own, size, self.fmt)

        errors = each(blocks, errors_of)
        own = max(error for error, _ in errors)
        return max(own, self.noise or 0.0), max(relative for _, relative in errors) <= 8 * self.fmt.roundoff

    def _part(self, block: Block, scale: Float64, own_error: float, accurate: bool) -> _Part:
        """The candidate's errors in one block, and which of them are too large."""
        fmt = self.fmt
        c, b, reference = self._values(block)
        finite, known, expected = np.isfinite(c), np.isfinite(b), np.isfinite(reference)
        clean = bool(finite.all() and known.all() and expected.all())
        size, spread = np.abs(reference), _spread(block, scale)
        yard = size + spread
        with np.errstate(invalid="ignore", over="ignore"):
            to_oracle, to_baseline = np.abs(c - reference), np.abs(c - b)
            if not clean:
                to_oracle = np.where(finite & expected, to_oracle, np.inf)
                to_baseline = np.where(finite & known, to_baseline, np.inf)
            allowed = np.maximum(fmt.max_multiple * fmt.roundoff, min(ERROR_FACTOR * own_error, _slack_cap(fmt))) * yard
            if self.noise is None and accurate:
                # Without cancellation each element is good to a few roundoffs; the candidate keeps half its digits.
                allowed = np.minimum(allowed, fmt.roundoff**0.5 * (size if clean else np.where(expected, size, np.inf)))
            allowed += fmt.smallest
            near = np.abs(b) if clean else np.where(known, np.abs(b), 0.0)
            plain = fmt.max_multiple * fmt.roundoff * (near + spread) + fmt.smallest
            wrong = finite & (to_oracle > allowed) & (to_baseline > np.minimum(plain, allowed))
            error = largest_ratio(to_oracle if clean else np.where(finite & expected, to_oracle, 0.0), yard, fmt)
        if wrong.any():
            return _Part(error, _Misses.of(block, wrong, c, b, reference))
        if not clean:
            both = finite & known & expected
            c, b, reference = c[both], b[both], reference[both]
        squares = tuple(Squares.of(x) for x in (c - reference, reference, b - reference, c - b))
        return _Part(error, None, c.size, squares)

    def _too_far(self, parts: Sequence[_Part], errors: Errors | None) -> Wrong:
        misses = [part.wrong for part in parts if part.wrong is not None]
        worst = max(misses, key=lambda m: m.distance)
        count, size = sum(m.count for m in misses), math.prod(self.shape)
        text = f"{count} of {size} elements are wrong, worst at {self.at(worst.element)}: "
        text += f"{worst.got:.9g} instead of {worst.reference:.9g}"
        text += f" (baseline {worst.baseline:.9g})" if errors is not None else ""
        details: dict[str, Any] = {"differing": count, "elements": size}
        if errors is not None:
            text += f"; error {errors[0]:.3g} roundoffs, the baseline's own is {errors[1]:.3g}"
            details |= {"candidate_error_roundoffs": errors[0], "baseline_error_roundoffs": errors[1]}
        return Wrong("tolerance", text, details)

    def _imprecise(self, parts: Sequence[_Part]) -> Wrong | None:
        """Fewer bits show in the mean long before they show in the worst element."""
        count = sum(part.count for part in parts)
        if count < FEW:
            return None
        whole = [Squares.together(part.squares[i] for part in parts) for i in range(4)]
        got, size, own, apart = (squares.root_of_mean(count) for squares in whole)
        fmt = self.fmt
        own = max(own, (self.noise or 0.0) * size)
        allowed = max(ERROR_FACTOR * min(own, _slack_cap(fmt) * size), fmt.rms_multiple * fmt.roundoff * size)
        if min(got, apart) <= allowed + fmt.smallest:
            return None
        text = (
            f"error {got:.3g} (root mean square) against results of size {size:.3g}; the baseline's own is {own:.3g}, "
            f"{allowed:.3g} is allowed"
        )
        return Wrong("precision", text, {"candidate_rms": got, "baseline_rms": own, "allowed_rms": allowed})


@dataclass(frozen=True, slots=True)
class _Stray:
    """NaNs or infinities of one block that belong to nobody, and the first of them."""

    check: str
    count: int
    element: int
    got: float
    expected: float


@dataclass(frozen=True, slots=True)
class _Look:
    any_finite: bool
    strays: tuple[_Stray, ...]
    largest: Float64
    """Of each row of the block, or of the part of it."""


@dataclass(frozen=True, slots=True)
class _Misses:
    """Elements of one block that are too far off, and the worst of them."""

    count: int
    distance: float
    element: int
    got: float
    baseline: float
    reference: float

    @classmethod
    def of(cls, block: Block, wrong: Array, c: Float64, b: Float64, reference: Float64) -> _Misses:
        with np.errstate(invalid="ignore"):
            distance = np.where(wrong, np.nan_to_num(np.abs(c - reference), nan=0.0), -1.0)
        i = int(np.argmax(distance))
        values = (float(x[i]) for x in (distance, c, b, reference))
        far, got, baseline, expected = values
        return cls(int(wrong.sum()), far, block.span.start + i, got, baseline, expected)


@dataclass(frozen=True, slots=True)
class _Part:
    """What was found in one block. `squares`: of candidate - reference, reference, baseline - reference and candidate -
    baseline, over `count` elements that are finite in all; left out where something is wrong."""

    error: float
    wrong: _Misses | None
    count: int = 0
    squares: tuple[Squares, ...] = ()


@dataclass(frozen=True, slots=True)
class Squares:
    """The sum of squares `total * unit ** 2`, for numbers whose squares overflow or vanish, too."""

    unit: float
    total: float

    @classmethod
    def of(cls, x: Float64) -> Squares:
        peak = float(np.max(np.abs(x), initial=0.0))
        if peak == 0.0 or not math.isfinite(peak):
            return cls(peak, float(peak != 0.0))
        unit = 1.0 if 1e-100 < peak < 1e100 else peak
        scaled = x if unit == 1.0 else x / unit
        return cls(unit, float(np.sum(np.square(scaled))))

    @classmethod
    def together(cls, parts: Iterable[Squares]) -> Squares:
        listed = [part for part in parts if part.total]
        unit = max((part.unit for part in listed), default=0.0)
        if not math.isfinite(unit):
            return cls(unit, 1.0)
        return cls(unit, math.fsum(part.total * (part.unit / unit) ** 2 for part in listed))

    def root_of_mean(self, count: int) -> float:
        return self.unit if not math.isfinite(self.unit) else self.unit * math.sqrt(self.total / count)


def distance_between(first: Numbers, again: Numbers, shape: tuple[int, ...]) -> float:
    """The largest distance of two runs' results, relative to |value of the first| + scale of the row."""
    rows = Rows.of(shape)
    blocks = rows.blocks()

    def finite(block: Block) -> tuple[Float64, Float64]:
        one, other = first[block.span], again[block.span]
        both = np.isfinite(one) & np.isfinite(other)
        return (one, other) if both.all() else (np.where(both, one, 0.0), np.where(both, other, 0.0))

    largest = each(blocks, lambda block: block.by_row(np.abs(finite(block)[0])).max(axis=1))
    scale = row_scales(rows, blocks, largest, 0.0)

    def apart(block: Block) -> float:
        one, other = finite(block)
        return largest_ratio(np.abs(one - other), np.abs(one) + _spread(block, scale), FORMATS[first.dtype])

    return max(each(blocks, apart), default=0.0)


def row_scales(rows: Rows, blocks: Sequence[Block], largest: Sequence[Float64], least: float) -> Float64:
    """The largest magnitude of each row; at least `least` where it has few elements."""
    scale = np.zeros(rows.count)
    for block, found in zip(blocks, largest, strict=True):
        scale[block.rows] = np.maximum(scale[block.rows], found)
    return np.maximum(scale, least) if rows.width < FEW else scale


def largest_ratio(error: Float64, yard: Float64, fmt: FloatFormat) -> float:
    """Of errors that are more than the least step of the format."""
    counts = error > fmt.smallest
    if not counts.any():
        return 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = error / yard
    return float(np.max(ratio, initial=0.0, where=counts))


def _spread(block: Block, scale: Float64) -> Float64:
    """The scale of each element's row."""
    rows = scale[block.rows]
    elements = block.span.stop - block.span.start
    return rows if rows.size == 1 else np.repeat(rows, elements // rows.size)


def _slack_cap(fmt: FloatFormat) -> float:
    """No baseline is so bad that it excuses more than this, relative to the row scale."""
    return min(0.1, 32 * math.sqrt(fmt.roundoff))


def _rounded(oracle: Float64, fmt: FloatFormat) -> Float64:
    """Infinite where the format has no such number."""
    over = np.abs(oracle) > fmt.largest * (1 + fmt.roundoff)
    return np.where(over, np.copysign(np.inf, oracle), oracle) if over.any() else oracle


def _at_the_edge(c: Float64, b: Float64, o: Float64, fmt: FloatFormat) -> Array:
    """One side overflowed and the other is within rounding of doing so."""
    edge = fmt.largest * (1 - 2 * fmt.max_multiple * fmt.roundoff)
    with np.errstate(invalid="ignore"):
        return np.asarray(
            (np.abs(c) >= edge) & ((np.abs(b) >= edge) | (np.abs(o) >= edge)) & (np.sign(c) == np.sign(b))
        )


def _infinities(x: Float64) -> Float64:
    return np.where(np.isinf(x), np.sign(x), 0.0)
