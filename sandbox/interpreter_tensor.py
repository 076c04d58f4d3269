"""Operations of Triton IR that look along a tensor: shapes, reductions, scans, matrix products."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from sandbox.interpreter_ir import IrError, Op, Type
from sandbox.interpreter_numerics import Array, as_float32, convert_float, held_dtype, is_float, round_bf16, round_tf32
from sandbox.interpreter_numerics import settle as settle_value

Combine = Callable[[list[Array]], list[Array]]
"""Applies the combine region to 2n values (accumulators, then elements), pointwise."""

_SCALE_GROUP = 32


def full(value: Array, kind: Type) -> Array:
    """The value spread to its tensor's shape; the axis of programs keeps its length."""
    return np.broadcast_to(value, (value.shape[0], *kind.shape))


def shape_op(op: Op, args: list[Array]) -> Array | tuple[Array, ...]:
    """`tt.splat`, `reshape`, `trans` and the like; raises IrError for another operation."""
    kind = op.result_types[0]
    match op.name:
        case "tt.splat":
            return args[0].reshape((args[0].shape[0],) + (1,) * len(kind.shape))
        case "tt.unsplat":
            single: Array = full(args[0], op.operand_types[0]).reshape(args[0].shape[0], -1)[:, 0]
            return single
        case "tt.broadcast":
            return args[0]
        case "tt.expand_dims":
            return np.expand_dims(args[0], int(op.attributes["axis"]) + 1)
        case "tt.reshape":
            return full(args[0], op.operand_types[0]).reshape((args[0].shape[0], *kind.shape))
        case "tt.trans":
            order = [int(n) for n in re.findall(r"\d+", op.attributes["order"].split(":", 1)[1])]
            return np.transpose(args[0], [0, *(n + 1 for n in order)])
        case "tt.join":
            return np.stack(np.broadcast_arrays(*args), axis=-1)
        case "tt.split":
            whole = np.broadcast_to(args[0], (*args[0].shape[:-1], 2))
            return whole[..., 0], whole[..., 1]
        case "tt.cat":
            parts = [full(a, t) for a, t in zip(args, op.operand_types, strict=True)]
            programs = max(p.shape[0] for p in parts)
            return np.asarray(np.concatenate([np.broadcast_to(p, (programs, *p.shape[1:])) for p in parts], axis=1))
        case "tt.make_range":
            numbers: Array = np.arange(int(op.attributes["start"]), int(op.attributes["end"]), dtype=np.int32)
            return numbers[None]
        case "tt.gather":
            return _gather(op, args)
        case "tt.histogram":
            return _histogram(op, args)
    raise IrError(f"the operation {op.name} is not interpreted")


SHAPE_OPS = frozenset(
    {
        "tt.splat",
        "tt.unsplat",
        "tt.broadcast",
        "tt.expand_dims",
        "tt.reshape",
        "tt.trans",
        "tt.join",
        "tt.split",
        "tt.cat",
        "tt.make_range",
        "tt.gather",
        "tt.histogram",
    }
)


def _gather(op: Op, args: list[Array]) -> Array:
    axis = int(op.attributes["axis"]) + 1
    source, indices = (full(a, t) for a, t in zip(args, op.operand_types, strict=True))
    programs = max(source.shape[0], indices.shape[0])
    source = np.broadcast_to(source, (programs, *source.shape[1:]))
    indices = np.broadcast_to(indices, (programs, *indices.shape[1:]))
    gathered: Array = np.take_along_axis(source, indices, axis=axis)
    return gathered


def _histogram(op: Op, args: list[Array]) -> Array:
    bins = op.result_types[0].shape[0]
    values = full(args[0], op.operand_types[0]).astype(np.int64)
    mask = full(args[1], op.operand_types[1]) if len(args) > 1 else np.ones((1, 1), np.bool_)
    values, mask = np.broadcast_arrays(values, mask & (values >= 0) & (values < bins))
    programs = values.shape[0]
    keys = values + np.arange(programs)[:, None] * bins
    counts = np.bincount(keys[mask], minlength=programs * bins)
    return counts.reshape(programs, bins).astype(np.int32)


def reduce(op: Op, args: list[Array], combine: Combine) -> tuple[Array, ...]:
    """`tt.reduce`: neighbours are combined pairwise, as a tree, which keeps their order and rounds as hardware does."""
    axis = int(op.attributes["axis"]) + 1
    values = [full(a, t) for a, t in zip(args, op.operand_types, strict=True)]
    while (length := values[0].shape[axis]) > 1:
        even = length // 2 * 2
        first = [_take(v, axis, slice(0, even, 2)) for v in values]
        second = [_take(v, axis, slice(1, even, 2)) for v in values]
        combined = combine(first + second)
        if even < length:
            last = [_take(v, axis, slice(even, length)) for v in values]
            combined = [np.concatenate([c, x], axis=axis) for c, x in zip(combined, last, strict=True)]
        values = combined
    return tuple(_take(v, axis, 0) for v in values)


def scan(op: Op, args: list[Array], combine: Combine) -> tuple[Array, ...]:
    """`tt.scan`, inclusive, in log2(n) steps of doubling distance."""
    axis = int(op.attributes["axis"]) + 1
    values = [full(a, t) for a, t in zip(args, op.operand_types, strict=True)]
    backwards = op.attributes.get("reverse") == "true"
    if backwards:
        values = [np.flip(v, axis) for v in values]
    length, distance = values[0].shape[axis], 1
    while distance < length:
        before = [_take(v, axis, slice(0, length - distance)) for v in values]
        after = [_take(v, axis, slice(distance, length)) for v in values]
        combined = combine(before + after)
        head = [_take(v, axis, slice(0, distance)) for v in values]
        values = [_join(h, c, axis) for h, c in zip(head, combined, strict=True)]
        distance *= 2
    return tuple(np.flip(v, axis) if backwards else v for v in values)


def _join(head: Array, tail: Array, axis: int) -> Array:
    programs = max(head.shape[0], tail.shape[0])
    parts = [np.broadcast_to(p, (programs, *p.shape[1:])) for p in (head, tail)]
    return np.concatenate(parts, axis=axis)


def _take(value: Array, axis: int, part: slice | int) -> Array:
    index: list[slice | int] = [slice(None)] * value.ndim
    index[axis] = part
    taken: Array = value[tuple(index)]
    return taken


def dot(op: Op, args: list[Array]) -> Array:
    """`tt.dot`: operands widened to float32 (exact for fp16, bf16 and fp8), accumulated in float32 as MFMA does.

    tf32 operands are rounded to tf32 and bf16x3 / bf16x6 to three or six products of bf16 parts, so that a change of
    `input_precision` shows. float64 stays, integers are exact.
    """
    a, b, c = (full(v, t) for v, t in zip(args, op.operand_types, strict=True))
    left, right, result = (t.element for t in op.operand_types)
    if not is_float(left):
        exact: Array = np.matmul(a.astype(np.float64), b.astype(np.float64)).astype(np.int64) + c
        return exact.astype(held_dtype(result))
    wide_a, wide_b = as_float32(a, left), as_float32(b, right)
    if match := re.search(r"inputPrecision = (\w+)", op.text):
        product = _product(wide_a, wide_b, match[1])
    else:
        product = np.matmul(wide_a, wide_b)
    return settle_value(product + as_float32(c, result), result)


def _product(a: Array, b: Array, precision: str) -> Array:
    if a.dtype == np.float64 or precision in ("ieee", "tf32x3"):
        product: Array = np.matmul(a, b)
        return product
    if precision == "tf32":
        rounded: Array = np.matmul(round_tf32(a), round_tf32(b))
        return rounded
    terms = {"bf16x3": ((0, 1), (1, 0), (0, 0)), "bf16x6": ((1, 1), (0, 2), (2, 0), (0, 1), (1, 0), (0, 0))}
    if precision not in terms:
        raise IrError(f"tt.dot with input precision {precision} is not interpreted")
    parts_a, parts_b = _bf16_parts(a), _bf16_parts(b)
    total: Array = sum(np.matmul(parts_a[i], parts_b[j]) for i, j in terms[precision])
    return total


def _bf16_parts(value: Array) -> list[Array]:
    parts = []
    for _ in range(3):
        part = round_bf16(value)
        parts.append(part)
        value = value - part
    return parts


_E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], dtype=np.float32)
_SCALED_TYPES = {"e4m3": "f8E4M3FN", "e5m2": "f8E5M2"}


def dot_scaled(op: Op, args: list[Array]) -> Array:
    """`tt.dot_scaled`: operands decoded to float32, each group of 32 along K times 2^(scale - 127)."""
    roles = re.match(r"tt\.dot_scaled %\S+?( scale %\S+)?, %\S+( scale %\S+)?, %", op.text)
    formats = re.search(r"lhs = (\w+) rhs = (\w+)", op.text)
    if roles is None or formats is None:
        raise IrError(f"cannot read {op.text[:120]}")
    values = [full(v, t) for v, t in zip(args, op.operand_types, strict=True)]
    kinds = list(op.operand_types)
    a, kind_a = values.pop(0), kinds.pop(0)
    scale_a = values.pop(0) if roles[1] else None
    b, kind_b = values.pop(0), kinds.pop(0)
    scale_b = values.pop(0) if roles[2] else None
    packed_a = op.attributes.get("lhs_k_pack", "true") != "false"
    packed_b = op.attributes.get("rhs_k_pack", "true") != "false"
    left = _decoded(a, kind_a, formats[1], axis=-1 if packed_a else -2)
    right = _decoded(b, kind_b, formats[2], axis=-2 if packed_b else -1)
    if scale_a is not None:
        left = left * _scales(scale_a, left.shape[-1])
    if scale_b is not None:
        right = right * np.swapaxes(_scales(scale_b, right.shape[-2]), -1, -2)
    total: Array = np.matmul(left, right) + values[0]
    return settle_value(total, op.result_types[0].element)


def _decoded(value: Array, kind: Type, name: str, axis: int) -> Array:
    if name == "e2m1":
        raw = value.astype(np.uint8) if value.dtype != np.int8 else value.view(np.uint8)
        low, high = _E2M1[raw & 15], _E2M1[raw >> 4]
        pairs = np.stack([low, high], axis=axis if axis == -1 else value.ndim - 1)
        shape = list(value.shape)
        shape[axis] *= 2
        decoded: Array = pairs.reshape(shape)
        return decoded
    if name in _SCALED_TYPES:
        codes = value.view(np.uint8) if value.dtype == np.int8 else value
        return as_float32(codes, _SCALED_TYPES[name])
    element = {"bf16": "bf16", "fp16": "f16"}.get(name)
    if element is None:
        raise IrError(f"tt.dot_scaled with {name} operands is not interpreted")
    if kind.element == element:
        return as_float32(value, element)
    return convert_float(value, kind.element, element)


def _scales(codes: Array, length: int) -> Array:
    raw = codes.view(np.uint8) if codes.dtype == np.int8 else codes
    factors = np.where(raw == 255, np.nan, np.exp2(raw.astype(np.float64) - 127)).astype(np.float32)
    group = length // codes.shape[-1] or _SCALE_GROUP
    spread: Array = np.repeat(factors, group, axis=-1)
    return spread
