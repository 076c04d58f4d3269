"""Reading sources and writing results of vector instructions: types, halves, neg, abs, clamp, omod, denormals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from sandbox.emulator.instruction import (
    EXECZ,
    PRIVATE_BASE,
    PRIVATE_LIMIT,
    SCC,
    SHARED_BASE,
    SHARED_LIMIT,
    VCCZ,
    Instruction,
    Operand,
    Unsupported,
)
from sandbox.emulator.machine import LANES, PRIVATE_APERTURE, SHARED_APERTURE, U32, VGPRS, Wave, lanes_of, unsupported

Array = npt.NDArray[Any]
Reader = Callable[[Wave], Array]
Step = Callable[[Wave], None]

DTYPES: dict[str, Any] = {
    **{f"{k}32": np.uint32 for k in "bu"},
    **{f"{k}64": np.uint64 for k in "bu"},
    **{f"{k}16": np.uint16 for k in "bu"},
    "i32": np.int32,
    "i64": np.int64,
    "i16": np.int16,
    "f32": np.float32,
    "f64": np.float64,
    "f16": np.float16,
    "bf16": np.uint16,
    "f16x2": np.uint32,
    "bf16x2": np.uint32,
    "u16x2": np.uint32,
    "i16x2": np.uint32,
    "f32x2": np.uint64,
    "b32x2": np.uint64,
    "b8": np.uint32,
}
"""Array element type of each operand type; packed and bf16 operands are handed over as raw bits."""

FLOATS = frozenset({"f16", "f32", "f64"})
HALVES = frozenset({"f16", "bf16", "i16", "u16", "b16"})


def row_of(operand: Operand) -> int:
    """Row of `Wave.vgpr` that a vector register is."""
    return operand.index + (VGPRS if operand.kind == "agpr" else 0)


def special_value(wave: Wave, code: int) -> int:
    """A read-only scalar source, as a 64-bit integer (apertures) or 0/1."""
    apertures = {
        SHARED_BASE: SHARED_APERTURE,
        SHARED_LIMIT: SHARED_APERTURE + 0xFFFFFFFF,
        PRIVATE_BASE: PRIVATE_APERTURE,
        PRIVATE_LIMIT: PRIVATE_APERTURE + 0xFFFFFFFF,
    }
    if code in apertures:
        return apertures[code]
    return {VCCZ: int(wave.vcc == 0), EXECZ: int(wave.exec == 0), SCC: wave.scc}[code]


def scalar_reader(operand: Operand) -> Callable[[Wave], int]:
    """A scalar source as an unsigned integer of `32 * dwords` bits; raises `Unsupported` for a vector register."""
    if operand.is_constant:
        value = operand.value
        return lambda w: value
    index, dwords = operand.index, operand.dwords
    if operand.kind in ("vgpr", "agpr"):
        raise Unsupported("operand", "a vector register where a scalar is needed")
    if operand.kind == "special":
        width = (1 << 32 * dwords) - 1
        return lambda w: special_value(w, index) & width
    if dwords == 1:
        return lambda w: w.sgpr[index]
    return lambda w: w.read_sgpr(index, dwords)


def _uniform(operand: Operand, dtype: Any) -> Reader:
    wide = np.dtype(dtype).itemsize == 8
    raw, width = (np.uint64, (1 << 64) - 1) if wide else (np.uint32, (1 << 32) - 1)
    if operand.is_constant:
        constant = np.full(LANES, operand.value & width, raw)
        constant.flags.writeable = False
        return lambda w: constant
    read = scalar_reader(operand)
    return lambda w: np.full(LANES, read(w) & width, raw)


def raw_reader(operand: Operand) -> Reader:
    """A vector source as 64 unsigned integers, 32 or 64 bits wide. The array may be a view: do not write to it."""
    if operand.kind not in ("vgpr", "agpr"):
        return _uniform(operand, np.uint64 if operand.dwords == 2 else np.uint32)
    row = row_of(operand)
    if operand.dwords == 1:
        return lambda w: w.vgpr[row]
    return lambda w: w.vgpr[row].astype(np.uint64) | w.vgpr[row + 1].astype(np.uint64) << np.uint64(32)


def flush(values: Array) -> Array:
    """Subnormal numbers replaced by zero of the same sign."""
    tiny = np.finfo(values.dtype).tiny
    return np.where(np.abs(values) < tiny, np.copysign(values.dtype.type(0), values), values)


def denormal_mode(wave: Wave, type_name: str) -> int:
    """Bit 0: subnormal sources are kept; bit 1: subnormal results are kept."""
    return wave.mode >> (4 if type_name == "f32" else 6) & 3


def mask_reader(operand: Operand) -> Reader:
    """A 64-bit lane mask in scalar registers as 64 booleans."""
    read = scalar_reader(operand)
    return lambda w: lanes_of(read(w))


def reader(instruction: Instruction, n: int, selected: Reader | None = None) -> Reader:
    """Source `n` as 64 elements of its type, with op_sel, abs, neg and the denormal mode applied.

    `selected` replaces the register read, where DPP or SDWA move the bits first.
    """
    operand = instruction.src[n]
    kind = operand.type
    if kind == "mask":
        return mask_reader(operand)
    dtype = DTYPES[kind]
    raw = selected or raw_reader(operand)
    if kind in HALVES and selected:
        read = lambda w: raw(w).astype(np.uint16).view(dtype)  # noqa: E731
    elif kind in HALVES:
        read = _half_reader(instruction, n, raw, dtype)
    elif np.dtype(dtype) in (np.dtype(np.uint32), np.dtype(np.uint64)):
        read = raw
    else:
        read = lambda w: raw(w).view(dtype)  # noqa: E731
    negate, absolute = instruction.neg >> n & 1, instruction.abs >> n & 1
    if (negate or absolute) and kind not in FLOATS:
        if instruction.mnemonic != "v_cndmask_b32":
            raise unsupported(instruction, f"neg or abs on a {kind} source")
        return _sign_changed(read, bool(negate), bool(absolute))
    return _modified(read, kind, bool(negate), bool(absolute)) if kind in FLOATS else read


def _sign_changed(read: Reader, negate: bool, absolute: bool) -> Reader:
    """neg and abs on raw dwords, as v_cndmask_b32 applies them."""
    keep = np.uint32(0x7FFFFFFF if absolute else 0xFFFFFFFF)
    flip = np.uint32(0x80000000 if negate else 0)
    return lambda w: read(w) & keep ^ flip


def _half_reader(instruction: Instruction, n: int, raw: Reader, dtype: Any) -> Reader:
    operand = instruction.src[n]
    high = instruction.encoding == "VOP3" and instruction.op_sel >> n & 1
    if operand.kind in ("vgpr", "agpr"):
        row, part = row_of(operand), 1 if high else 0
        return lambda w: w.vgpr[row].view(dtype)[part::2]
    if high and operand.is_constant:
        raise unsupported(instruction, "op_sel on a constant")
    shift = np.uint32(16 if high else 0)
    return lambda w: (raw(w) >> shift).astype(np.uint16).view(dtype)


def _modified(read: Reader, kind: str, negate: bool, absolute: bool) -> Reader:
    def source(w: Wave) -> Array:
        values = read(w)
        if not denormal_mode(w, kind) & 1:
            values = flush(values)
        if absolute:
            values = np.abs(values)
        return -values if negate else values

    return source


def finish_float(instruction: Instruction, kind: str, values: Array, wave: Wave) -> Array:
    """omod, the denormal mode and clamp, in this order."""
    if instruction.omod:
        values = values * values.dtype.type((1, 2, 4, 0.5)[instruction.omod])
    if not denormal_mode(wave, kind) & 2:
        values = flush(values)
    if instruction.clamp:
        values = np.where(np.isnan(values), values.dtype.type(0), np.clip(values, 0, 1))
    return values


def writer(instruction: Instruction, saturated: bool = False) -> Callable[[Wave, Array], None]:
    """Stores 64 results of the type of the first destination under EXEC, with omod, clamp and op_sel.

    Results of 16 bits clear the other half of the register, or keep it where the table says `merge`. `saturated` says
    that an integer operation has done what clamp asks for.
    """
    operand = instruction.dst[0]
    kind, row = operand.type, row_of(operand)
    if (instruction.omod or (instruction.clamp and not saturated)) and kind not in FLOATS:
        raise unsupported(instruction, f"clamp or omod on a {kind} result")
    high = instruction.encoding == "VOP3" and instruction.op_sel >> 3 & 1
    if high and not (kind in HALVES and instruction.merge):
        raise unsupported(instruction, "op_sel on the destination")

    def store(w: Wave, values: Array) -> None:
        if kind in FLOATS:
            values = finish_float(instruction, kind, values, w)
        if operand.dwords == 2:
            wide = values.view(np.uint64)
            w.write_vgpr(row, wide.astype(np.uint32))
            w.write_vgpr(row + 1, (wide >> np.uint64(32)).astype(np.uint32))
        elif kind in HALVES:
            bits = values.view(np.uint16).astype(np.uint32)
            if instruction.merge:
                bits = merged(w.vgpr[row], bits, 16 if high else 0, 0xFFFF)
            w.write_vgpr(row, bits)
        else:
            w.write_vgpr(row, values.view(np.uint32))

    return store


def merged(old: U32, bits: U32, shift: int, mask: int) -> U32:
    """`old` with the bits under `mask << shift` replaced by `bits`."""
    keep = np.uint32(~(mask << shift) & 0xFFFFFFFF)
    result: U32 = (old & keep) | (bits & np.uint32(mask)) << np.uint32(shift)
    return result
