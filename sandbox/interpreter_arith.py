"""Pointwise operations of Triton IR (`arith`, `math` and pointwise `tt`) on numpy arrays.

Every value has a leading axis of programs (length 1 where all agree) and may keep length 1 along an axis of its tensor
shape: numpy's broadcasting stands in for `tt.splat` and `tt.broadcast`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from sandbox.interpreter_ir import IrError, Op, Type
from sandbox.interpreter_numerics import (
    Array,
    as_float32,
    bitcast,
    convert_float,
    held_dtype,
    is_float,
    is_fp8,
    settle,
    stored_dtype,
    to_integer,
    unsigned,
)

Handler = Callable[[Op, list[Array]], Array]


def constant(op: Op) -> Array:
    """The value of `arith.constant`, with length 1 along every axis when it is a splat."""
    kind = op.result_types[0]
    text = op.text.removeprefix("arith.constant").split(" : ")[0]
    text = re.sub(r"\{.*?\}", "", text).strip()
    if not text.startswith("dense<"):
        return np.array([_number(text, kind)]).astype(held_dtype(kind.element)).reshape((1,) * (len(kind.shape) + 1))
    inner = text[len("dense<") : -1]
    if inner.startswith('"0x'):
        raw = np.frombuffer(bytes.fromhex(inner[3:-1]), dtype=stored_dtype(kind.element))
        return bitcast_raw(raw, kind).reshape((1, *kind.shape))
    numbers = [_number(t, kind) for t in re.findall(r"[^\s,\[\]]+", inner)]
    values = np.array(numbers).astype(held_dtype(kind.element))
    if len(numbers) == 1:
        return values.reshape((1,) * (len(kind.shape) + 1))
    return values.reshape((1, *kind.shape))


def bitcast_raw(raw: Array, kind: Type) -> Array:
    """Values from their stored bits."""
    from sandbox.interpreter_numerics import from_memory

    return from_memory(raw, kind.element)


def _number(text: str, kind: Type) -> Any:
    if text in ("true", "false"):
        return text == "true"
    if is_float(kind.element):
        if text.startswith("0x"):
            return _float_bits(int(text, 16), kind.element)
        if is_fp8(kind.element):
            return convert_float(np.array([float(text)], np.float32), "f32", kind.element)[0]
        return float(text)
    return int(text, 0) if text.startswith(("0x", "-0x")) else int(text)


def _float_bits(bits: int, element: str) -> Any:
    if is_fp8(element):
        return np.uint8(bits)
    raw = np.array([bits], dtype=np.uint64).astype(f"u{stored_dtype(element).itemsize}")
    return bitcast_raw(raw if element == "bf16" else raw.view(stored_dtype(element)), Type(element))[0]


def _float(function: Callable[..., Any]) -> Handler:
    def run(op: Op, args: list[Array]) -> Array:
        result: Array = function(*args)
        return settle(result, "bf16") if op.result_types[0].element == "bf16" else result

    return run


def _math(function: Callable[..., Any]) -> Handler:
    """A function computed in float32 (float64 for f64), rounded to the result's type."""

    def run(op: Op, args: list[Array]) -> Array:
        wide = [as_float32(a, t.element) for a, t in zip(args, op.operand_types, strict=True)]
        return settle(function(*wide), op.result_types[0].element)

    return run


def _plain(function: Callable[..., Any]) -> Handler:
    def run(op: Op, args: list[Array]) -> Array:
        result: Array = function(*args)
        return result

    return run


def _unsigned(function: Callable[..., Any]) -> Handler:
    def run(op: Op, args: list[Array]) -> Array:
        result: Array = function(*(unsigned(a) for a in args))
        return result.view(args[0].dtype) if args[0].dtype != np.bool_ else result.astype(np.bool_)

    return run


def _sum(a: Array, b: Array) -> Array:
    result: Array = a ^ b if a.dtype == np.bool_ else a + b  # one bit wraps around
    return result


def _difference(a: Array, b: Array) -> Array:
    result: Array = a ^ b if a.dtype == np.bool_ else a - b
    return result


def _quotient(a: Array, b: Array) -> Array:
    """Rounded toward zero, as C and LLVM divide; division by zero gives 0, which no valid program sees."""
    result: Array = np.where(b == 0, 0, (a - np.fmod(a, np.where(b == 0, 1, b))) // np.where(b == 0, 1, b))
    return result.astype(a.dtype)


def _remainder(a: Array, b: Array) -> Array:
    result: Array = np.fmod(a, np.where(b == 0, 1, b))
    return result.astype(a.dtype)


def _ceil_quotient(a: Array, b: Array) -> Array:
    result: Array = -((-a.astype(np.int64)) // b)
    return result.astype(a.dtype)


_COMPARE: Mapping[str, Callable[[Array, Array], Array]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


def _compare_integers(op: Op, args: list[Array]) -> Array:
    predicate = op.text.split()[1].rstrip(",")
    if predicate in ("eq", "ne"):
        return _COMPARE[predicate](args[0], args[1])
    a, b = args if predicate[0] == "s" else (unsigned(args[0]), unsigned(args[1]))
    if predicate[0] == "s" and a.dtype == np.bool_:  # a signed i1 holds 0 and -1
        a, b = -a.astype(np.int8), -b.astype(np.int8)
    return _COMPARE[predicate[1:]](a, b)


def _compare_floats(op: Op, args: list[Array]) -> Array:
    predicate = op.text.split()[1].rstrip(",")
    a, b = (as_float32(v, t.element) for v, t in zip(args, op.operand_types, strict=True))
    unordered: Array = np.isnan(a) | np.isnan(b)
    if predicate in ("ord", "uno"):
        return ~unordered if predicate == "ord" else unordered
    if predicate in ("true", "false"):
        return np.full(unordered.shape, predicate == "true")
    result = _COMPARE[predicate[1:]](a, b)
    if predicate[0] == "u":
        return result | unordered
    return result & ~unordered if predicate == "one" else result


def _select(op: Op, args: list[Array]) -> Array:
    condition, yes, no = args
    missing = max(yes.ndim, no.ndim) - condition.ndim  # a scalar condition may choose between tensors
    result: Array = np.where(condition.reshape(condition.shape + (1,) * missing), yes, no)
    return result


def _extend(op: Op, args: list[Array]) -> Array:
    value, target = args[0], held_dtype(op.result_types[0].element)
    if value.dtype == np.bool_:
        return -value.astype(target) if op.name == "arith.extsi" else value.astype(target)
    return (value if op.name == "arith.extsi" else unsigned(value)).astype(target)


def _truncate(op: Op, args: list[Array]) -> Array:
    element = op.result_types[0].element
    if element == "i1":
        return (args[0] & 1).astype(np.bool_)
    return args[0].astype(held_dtype(element))


def _to_float(op: Op, args: list[Array]) -> Array:
    value = args[0]
    if op.name == "arith.uitofp":
        value = unsigned(value)
    elif value.dtype == np.bool_:
        value = -value.astype(np.int8)
    wide = np.float64 if held_dtype(op.result_types[0].element) == np.float64 else np.float32
    return settle(value.astype(wide), op.result_types[0].element)


def _to_integer(op: Op, args: list[Array]) -> Array:
    wide = as_float32(args[0], op.operand_types[0].element)
    return to_integer(wide, op.result_types[0].element, unsigned=op.name == "arith.fptoui")


def _convert(op: Op, args: list[Array]) -> Array:
    zero = "rounding = rtz" in op.text
    return convert_float(args[0], op.operand_types[0].element, op.result_types[0].element, toward_zero=zero)


def _bitcast(op: Op, args: list[Array]) -> Array:
    source, target = op.operand_types[0].element, op.result_types[0].element
    return bitcast(args[0], source, target)


def _clamp(op: Op, args: list[Array]) -> Array:
    low, high = (np.maximum, np.minimum) if "propagateNan = all" in op.text else (np.fmax, np.fmin)
    result: Array = high(low(args[0], args[1]), args[2])
    return settle(result, op.result_types[0].element)


def high_product(a: Array, b: Array) -> Array:
    """Upper half of the unsigned product, for 32-bit and 64-bit integers."""
    ua, ub = unsigned(a).astype(np.uint64), unsigned(b).astype(np.uint64)
    if a.dtype.itemsize < 8:
        bits = 8 * a.dtype.itemsize
        return ((ua * ub) >> np.uint64(bits)).astype(f"u{a.dtype.itemsize}").view(a.dtype)
    low, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    a0, a1, b0, b1 = ua & low, ua >> half, ub & low, ub >> half
    middle = a1 * b0 + ((a0 * b0) >> half)
    other = a0 * b1 + (middle & low)
    return np.asarray(a1 * b1 + (middle >> half) + (other >> half)).view(a.dtype)


def _fma(a: Array, b: Array, c: Array) -> Array:
    """One rounding: float32 products are exact in float64."""
    if a.dtype == np.float64:
        return a * b + c
    return (a.astype(np.float64) * b + c).astype(a.dtype)


def _rsqrt(a: Array) -> Array:
    return (1.0 / np.sqrt(a.astype(np.float64))).astype(a.dtype)


def _via_torch(name: str) -> Callable[[Array], Array]:
    def run(a: Array) -> Array:
        import torch

        result = getattr(torch.special, name)(torch.from_numpy(np.ascontiguousarray(a, dtype=np.float64)))
        return np.asarray(result.numpy()).astype(a.dtype)

    return run


POINTWISE: dict[str, Handler] = {
    "arith.addi": _plain(_sum),
    "arith.subi": _plain(_difference),
    "arith.muli": _plain(np.multiply),
    "arith.divsi": _plain(_quotient),
    "arith.remsi": _plain(_remainder),
    "arith.divui": _unsigned(_quotient),
    "arith.remui": _unsigned(_remainder),
    "arith.ceildivsi": _plain(_ceil_quotient),
    "arith.ceildivui": _unsigned(_ceil_quotient),
    "arith.floordivsi": _plain(np.floor_divide),
    "arith.andi": _plain(np.bitwise_and),
    "arith.ori": _plain(np.bitwise_or),
    "arith.xori": _plain(np.bitwise_xor),
    "arith.shli": _plain(np.left_shift),
    "arith.shrsi": _plain(np.right_shift),
    "arith.shrui": _unsigned(np.right_shift),
    "arith.maxsi": _plain(np.maximum),
    "arith.minsi": _plain(np.minimum),
    "arith.maxui": _unsigned(np.maximum),
    "arith.minui": _unsigned(np.minimum),
    "arith.cmpi": _compare_integers,
    "arith.cmpf": _compare_floats,
    "arith.addf": _float(np.add),
    "arith.subf": _float(np.subtract),
    "arith.mulf": _float(np.multiply),
    "arith.divf": _float(np.divide),
    "arith.remf": _float(np.fmod),
    "arith.negf": _plain(np.negative),
    "arith.maximumf": _plain(np.maximum),
    "arith.minimumf": _plain(np.minimum),
    "arith.maxnumf": _plain(np.fmax),
    "arith.minnumf": _plain(np.fmin),
    "arith.select": _select,
    "arith.extsi": _extend,
    "arith.extui": _extend,
    "arith.trunci": _truncate,
    "arith.index_cast": _truncate,
    "arith.extf": _convert,
    "arith.truncf": _convert,
    "arith.sitofp": _to_float,
    "arith.uitofp": _to_float,
    "arith.fptosi": _to_integer,
    "arith.fptoui": _to_integer,
    "arith.bitcast": _bitcast,
    "tt.bitcast": _bitcast,
    "tt.fp_to_fp": _convert,
    "tt.clampf": _clamp,
    "tt.mulhiui": _plain(high_product),
    "tt.precise_sqrt": _math(np.sqrt),
    "tt.precise_divf": _float(np.divide),
    "math.exp": _math(np.exp),
    "math.exp2": _math(np.exp2),
    "math.expm1": _math(np.expm1),
    "math.log": _math(np.log),
    "math.log2": _math(np.log2),
    "math.log10": _math(np.log10),
    "math.log1p": _math(np.log1p),
    "math.sin": _math(np.sin),
    "math.cos": _math(np.cos),
    "math.tan": _math(np.tan),
    "math.tanh": _math(np.tanh),
    "math.sinh": _math(np.sinh),
    "math.cosh": _math(np.cosh),
    "math.atan": _math(np.arctan),
    "math.atan2": _math(np.arctan2),
    "math.sqrt": _math(np.sqrt),
    "math.rsqrt": _math(_rsqrt),
    "math.erf": _math(_via_torch("erf")),
    "math.floor": _math(np.floor),
    "math.ceil": _math(np.ceil),
    "math.trunc": _math(np.trunc),
    "math.roundeven": _math(np.rint),
    "math.absf": _plain(np.abs),
    "math.absi": _plain(np.abs),
    "math.fma": _float(_fma),
    "math.powf": _math(np.power),
    "math.copysign": _math(np.copysign),
}
"""Operation name to its function of the operands' arrays."""


def pointwise(op: Op, args: list[Array]) -> Array:
    """Run a pointwise operation; raises IrError for one this table does not have."""
    handler = POINTWISE.get(op.name)
    if handler is None:
        raise IrError(f"the operation {op.name} is not interpreted")
    return handler(op, args)
