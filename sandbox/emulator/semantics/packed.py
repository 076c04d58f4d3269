"""Packed math (VOP3P): two 16-bit or 32-bit operations at once, mixed-precision fma, and dot products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from sandbox.emulator.instruction import Instruction
from sandbox.emulator.machine import Wave, unsupported
from sandbox.emulator.semantics import floating, integer
from sandbox.emulator.semantics.convert import bf16_to_f32, pack16
from sandbox.emulator.semantics.exact import Array, fma16, fma32
from sandbox.emulator.semantics.operands import Reader, Step, denormal_mode, flush, merged, raw_reader, row_of
from sandbox.emulator.semantics.operands import reader as typed_reader

_ELEMENTS: dict[str, Any] = {"f16": np.float16, "u16": np.uint16, "i16": np.int16, "f32": np.float32, "b32": np.uint32}


def build(i: Instruction) -> Step:
    """The step of a VOP3P instruction that is not a matrix operation."""
    if "_mix" in i.mnemonic:
        return _mix(i)
    if i.mnemonic.startswith("v_dot"):
        return build_dot(i)
    if i.mnemonic == "v_pk_mov_b32":
        return _packed_move(i)
    return _packed(i)


def _half(i: Instruction, n: int, element: str, high_result: bool) -> Reader:
    """Source `n` of the low or high operation, with its selection and sign."""
    selection = i.op_sel_hi if high_result else i.op_sel
    high = bool(selection >> n & 1)
    negate = bool((i.neg_hi if high_result else i.neg) >> n & 1)
    dtype, source = _ELEMENTS[element], i.src[n]
    if negate and element not in ("f16", "f32"):
        raise unsupported(i, "neg on an integer source")
    raw = raw_reader(source)
    if element in ("f32", "b32"):
        if source.is_constant and high and source.value:
            raise unsupported(i, "the high half of a constant")
        shift = np.uint64(32 if high else 0)
        read: Reader = lambda w: (raw(w) >> shift).astype(np.uint32).view(dtype)  # noqa: E731
    else:
        narrow = np.uint32(16 if high else 0)
        read = lambda w: (raw(w) >> narrow).astype(np.uint16).view(dtype)  # noqa: E731
    if element not in ("f16", "f32"):
        return read

    def signed(w: Wave) -> Array:
        values = read(w) if denormal_mode(w, element) & 1 else flush(read(w))
        return -values if negate else values

    return signed


def _operation(i: Instruction) -> tuple[Callable[..., Array], str]:
    """The scalar operation a packed one repeats, and its element type."""
    name = i.mnemonic.replace("v_pk_", "v_")
    element = i.dst[0].type.partition("x")[0]
    clamped = i.clamp and element in ("u16", "i16")
    table = integer.CLAMPED if clamped else {**integer.OPERATIONS, **floating.OPERATIONS}
    function = table.get(name)
    if function is None:
        raise unsupported(i, "clamp" if clamped else "")
    return function, element


def _finish(i: Instruction, element: str, values: Array, w: Wave) -> Array:
    if element not in ("f16", "f32"):
        return values
    if not denormal_mode(w, element) & 2:
        values = flush(values)
    if i.clamp:
        values = np.where(np.isnan(values), values.dtype.type(0), np.clip(values, 0, 1))
    return values


def _packed(i: Instruction) -> Step:
    function, element = _operation(i)
    count, row = len(i.src), row_of(i.dst[0])
    low = [_half(i, n, element, False) for n in range(count)]
    high = [_half(i, n, element, True) for n in range(count)]
    mode_shift = 0 if element == "f32" else 2

    def step(w: Wave) -> None:
        if element in ("f16", "f32") and w.mode >> mode_shift & 3:
            raise unsupported(i, "a rounding mode")
        first = _finish(i, element, function(*(r(w) for r in low)), w)
        second = _finish(i, element, function(*(r(w) for r in high)), w)
        if element == "f32":
            w.write_vgpr(row, first.view(np.uint32))
            w.write_vgpr(row + 1, second.view(np.uint32))
        else:
            w.write_vgpr(row, pack16(first, second))

    return step


def _packed_move(i: Instruction) -> Step:
    """The low result comes from source 0, the high one from source 1; op_sel picks the dword of each."""
    if i.neg or i.neg_hi or i.clamp:
        raise unsupported(i, "neg or clamp")
    first, second, row = _half(i, 0, "b32", False), _half(i, 1, "b32", False), row_of(i.dst[0])

    def step(w: Wave) -> None:
        a, b = first(w).copy(), second(w).copy()
        w.write_vgpr(row, a)
        w.write_vgpr(row + 1, b)

    return step


def fma_halves(a: Array, b: Array, c: Array) -> Array:
    """v_pk_fmac_f16: two half-precision fused multiply-adds on the halves of dwords."""

    def half(bits: Array, shift: int) -> Array:
        return (bits >> np.uint32(shift)).astype(np.uint16).view(np.float16)

    return pack16(fma16(half(a, 0), half(b, 0), half(c, 0)), fma16(half(a, 16), half(b, 16), half(c, 16)))


def _mix_source(i: Instruction, n: int) -> Reader:
    """An f32 source, or a half of a register widened to f32; here neg_hi means abs."""
    source, raw = i.src[n], raw_reader(i.src[n])
    negate, absolute = i.neg >> n & 1, i.neg_hi >> n & 1
    shift = np.uint32(16 if i.op_sel >> n & 1 else 0)

    def read(w: Wave) -> Array:
        if source.type == "f16":
            values = (raw(w) >> shift).astype(np.uint16).view(np.float16).astype(np.float32)
        else:
            values = raw(w).view(np.float32)
            values = values if denormal_mode(w, "f32") & 1 else flush(values)
        values = np.abs(values) if absolute else values
        return -values if negate else values

    if source.type == "f32" and i.op_sel >> n & 1:
        raise unsupported(i, "op_sel on an f32 source")
    return read


def _mix(i: Instruction) -> Step:
    reads, row = [_mix_source(i, n) for n in range(3)], row_of(i.dst[0])
    high = i.mnemonic.endswith("mixhi_f16")
    kind = i.dst[0].type

    def step(w: Wave) -> None:
        if w.mode & 15:
            raise unsupported(i, "a rounding mode")
        values = fma32(*(r(w) for r in reads))
        if kind == "f16":
            half = _finish(i, "f16", values.astype(np.float16), w).view(np.uint16).astype(np.uint32)
            w.write_vgpr(row, merged(w.vgpr[row], half, 16 if high else 0, 0xFFFF))
        else:
            w.write_vgpr(row, _finish(i, "f32", values, w).view(np.uint32))

    return step


def _fields(bits: Array, width: int, signed: bool) -> list[Array]:
    out = []
    for k in range(32 // width):
        field = (bits >> np.uint32(k * width) & np.uint32((1 << width) - 1)).astype(np.int64)
        out.append(np.where(field >> (width - 1) & 1, field - (1 << width), field) if signed else field)
    return out


def build_dot(i: Instruction, moved: Reader | None = None) -> Step:
    """v_dot2, v_dot4, v_dot8 and their accumulating short forms. Float sums are formed in double and rounded once.

    `moved` reads source 0 where DPP moves it between lanes.
    """
    count = 2 if "_dot2" in i.mnemonic else 4 if "_dot4" in i.mnemonic else 8
    kind = i.dst[0].type
    if i.abs or i.omod or i.sdwa or (i.encoding == "VOP3" and i.op_sel):
        raise unsupported(i, "a modifier")
    if (i.neg or i.neg_hi) and (kind != "f32" or i.encoding != "VOP3P" or i.neg_hi & 4 > i.neg & 4):
        raise unsupported(i, "neg")
    if kind == "f32":
        return _float_dot(i, moved)
    if i.encoding == "VOP3P" and count == 2 and (i.op_sel or i.op_sel_hi & 0b011 != 0b011):
        raise unsupported(i, "op_sel")
    a, b, c, row = moved or raw_reader(i.src[0]), raw_reader(i.src[1]), typed_reader(i, 2), row_of(i.dst[0])
    signed = kind == "i32"
    limits = np.iinfo(np.int32 if signed else np.uint32)

    def step(w: Wave) -> None:
        pairs = zip(_fields(a(w), 32 // count, signed), _fields(b(w), 32 // count, signed), strict=True)
        total = c(w).astype(np.int64) + sum(x * y for x, y in pairs)
        if i.clamp:
            total = np.clip(total, limits.min, limits.max)
        w.write_vgpr(row, (total & 0xFFFFFFFF).astype(np.uint32))

    return step


def _dot_sources(i: Instruction, n: int, moved: Reader | None) -> Callable[[Wave], list[Array]]:
    """The two halves of source `n` of a float dot product as doubles, with their selection and signs."""
    raw, brain = moved or raw_reader(i.src[n]), i.src[n].type == "bf16x2"
    if i.encoding == "VOP3P":
        shifts = [np.uint32(16 * (i.op_sel >> n & 1)), np.uint32(16 * (i.op_sel_hi >> n & 1))]
    else:
        shifts = [np.uint32(0), np.uint32(16)]
    signs = [-1.0 if bits >> n & 1 else 1.0 for bits in (i.neg, i.neg_hi)]

    def read(w: Wave) -> list[Array]:
        halves = [(raw(w) >> s).astype(np.uint16) for s in shifts]
        values = [(bf16_to_f32(h) if brain else h.view(np.float16)).astype(np.float64) for h in halves]
        return [sign * v for sign, v in zip(signs, values, strict=True)]

    return read


def _float_dot(i: Instruction, moved: Reader | None) -> Step:
    a, b = _dot_sources(i, 0, moved), _dot_sources(i, 1, None)
    c, row = typed_reader(i, 2), row_of(i.dst[0])

    def step(w: Wave) -> None:
        (a0, a1), (b0, b1) = a(w), b(w)
        total = (a0 * b0 + a1 * b1 + c(w).astype(np.float64)).astype(np.float32)
        w.write_vgpr(row, _finish(i, "f32", total, w).view(np.uint32))

    return step
