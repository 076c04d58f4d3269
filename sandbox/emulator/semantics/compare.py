"""Vector comparisons: v_cmp_* and v_cmpx_*, as functions from two sources to 64 booleans."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sandbox.emulator.semantics.exact import Array
from sandbox.emulator.semantics.floating import is_signalling


def _class(a: Array, wanted: Array) -> Array:
    """Whether `a` is in one of the classes whose bits are set: signalling NaN, quiet NaN, then from -inf to +inf."""
    tiny = np.finfo(a.dtype).tiny
    negative, size = np.signbit(a), np.abs(a)
    nan, signalling = np.isnan(a), is_signalling(a)
    infinite, zero = np.isinf(a), a == 0
    subnormal = (size < tiny) & ~zero
    normal = ~(nan | infinite | zero | subnormal)
    classes = [signalling, nan & ~signalling]
    classes += [negative & c for c in (infinite, normal, subnormal, zero)]
    classes += [~negative & c for c in (zero, subnormal, normal, infinite)]
    out = np.zeros(a.shape, np.bool_)
    for bit, member in enumerate(classes):
        out |= member & (wanted >> wanted.dtype.type(bit) & wanted.dtype.type(1) != 0)
    return out


def _never(a: Array, b: Array) -> Array:
    return np.zeros(a.shape, np.bool_)


def _always(a: Array, b: Array) -> Array:
    return np.ones(a.shape, np.bool_)


def _ordered(a: Array, b: Array) -> Array:
    result: Array = ~(np.isnan(a) | np.isnan(b))
    return result


def _not(compare: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    return lambda a, b: ~compare(a, b)


def _less_or_greater(a: Array, b: Array) -> Array:
    return (a < b) | (a > b)


_FLOAT: dict[str, Callable[[Array, Array], Array]] = {
    "f": _never, "lt": np.less, "eq": np.equal, "le": np.less_equal, "gt": np.greater, "lg": _less_or_greater,
    "ge": np.greater_equal, "o": _ordered, "u": _not(_ordered), "nge": _not(np.greater_equal),
    "nlg": _not(_less_or_greater), "ngt": _not(np.greater), "nle": _not(np.less_equal), "neq": _not(np.equal),
    "nlt": _not(np.less), "tru": _always,
}  # fmt: skip
_INTEGER: dict[str, Callable[[Array, Array], Array]] = {
    "f": _never, "lt": np.less, "eq": np.equal, "le": np.less_equal, "gt": np.greater, "ne": np.not_equal,
    "ge": np.greater_equal, "t": _always,
}  # fmt: skip


def _all() -> dict[str, Callable[[Array, Array], Array]]:
    out: dict[str, Callable[[Array, Array], Array]] = {}
    for prefix in ("v_cmp", "v_cmpx"):
        for kind in ("f16", "f32", "f64"):
            out |= {f"{prefix}_{name}_{kind}": compare for name, compare in _FLOAT.items()}
            out[f"{prefix}_class_{kind}"] = _class
        for kind in ("u16", "i16", "u32", "i32", "u64", "i64"):
            out |= {f"{prefix}_{name}_{kind}": compare for name, compare in _INTEGER.items()}
    return out


OPERATIONS = _all()
