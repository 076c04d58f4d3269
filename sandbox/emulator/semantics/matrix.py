"""Matrix instructions (MFMA): D = A x B + C over one wave.

A of M x K and B of K x N are spread over the lanes, `blocks` independent products at a time. Lane l of a group of M
lanes holds row (column) l; the groups hold consecutive runs of K. Sums are formed in double precision (integers
exactly) and rounded once, where hardware rounds inside in an undocumented way: compare float results by tolerance.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from sandbox.emulator.instruction import Instruction, Operand
from sandbox.emulator.machine import LANES, Wave, unsupported
from sandbox.emulator.semantics.convert import bf16_to_f32
from sandbox.emulator.semantics.exact import Array
from sandbox.emulator.semantics.minifloat import MATRIX_FORMATS, decode, format_named
from sandbox.emulator.semantics.operands import Step, raw_reader, row_of

_SHAPE = re.compile(r"v_mfma_(?:scale_)?(f32|f64|i32)_(\d+)x(\d+)x(\d+)_?(?:(\d+)b_)?(\w+)$")
F64 = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Shape:
    """M = N, K and the number of blocks; `result` is the type of C and D, `inputs` the name of the input type."""

    result: str
    m: int
    k: int
    blocks: int
    inputs: str


def shape_of(mnemonic: str) -> Shape | None:
    """The shape a mnemonic names, or None."""
    match = _SHAPE.match(mnemonic)
    if match is None or match[2] != match[3]:
        return None
    return Shape(match[1], int(match[2]), int(match[4]), int(match[5] or 1), match[6])


def build(i: Instruction, arch: str) -> Step:
    """The step of an MFMA; raises `Unsupported` for sparse forms and broadcast controls outside what is implemented."""
    if i.mnemonic.startswith("v_smfmac"):
        return _sparse(i, arch)
    shape = shape_of(i.mnemonic)
    if shape is None:
        raise unsupported(i)
    if i.neg or i.neg_hi or i.clamp:
        raise unsupported(i, "neg or clamp")
    narrow = shape.inputs == "f8f6f4"
    if not narrow and (i.cbsz or i.abid or i.blgp):
        return _with_broadcast(i, shape, arch)
    load_a, load_b = _loaders(i, shape, arch)
    return _product(i, shape, load_a, load_b)


_SPARSE = re.compile(r"v_smfmac_(f32|i32)_(\d+)x(\d+)x(\d+)_(\w+)$")
_DEEP_B_DWORDS = 8
"""Registers of B in the forms of gfx950 that have twice the depth: each half of them holds one half of K."""


def _sparse(i: Instruction, arch: str) -> Step:
    """v_smfmac: two of every four values of A along K are kept; two bits of the third source say which each one is.

    The destination is the accumulator too. Where the indices of a lane fill only a part of the register, abid chooses
    the part (cbsz nonzero: the first). In the deep forms of gfx950 a lane of A still covers one run of K, one of B
    two: so say the register maps of ck_tile, and so it was found on an MI350 (comments of ROCm's FPSan).
    """
    match = _SPARSE.match(i.mnemonic)
    if match is None or i.neg or i.neg_hi or i.clamp or i.blgp:
        raise unsupported(i)
    m, k = int(match[2]), int(match[4])
    shape = Shape(match[1], m, k, 1, match[5])
    names = shape.inputs.split("_")
    groups, per_lane = LANES // m, k * m // LANES // 2
    row, dwords, index_row = row_of(i.src[0]), i.src[0].dwords, row_of(i.src[2])
    bits = 2 * per_lane
    part = 0 if i.cbsz else i.abid % (32 // bits)
    load_b = _plain_loader(i.src[1], shape, names[-1], arch, runs=2 if i.src[1].dwords == _DEEP_B_DWORDS else 1)
    lane, element = np.arange(LANES)[:, None], np.arange(per_lane)

    def load_a(w: Wave) -> Array:
        kept = unpack(w.vgpr[row : row + dwords], names[0], arch)[:, :per_lane]
        index = w.vgpr[index_row][:, None] >> (part * bits + 2 * element).astype(np.uint32) & np.uint32(3)
        dense = np.zeros((LANES, 2 * per_lane), kept.dtype)
        np.add.at(dense, (lane, 4 * (element // 2) + index), kept)
        return dense.reshape(groups, m, 2 * per_lane).transpose(1, 0, 2).reshape(1, m, k)

    accumulating = replace(i, src=(i.src[0], i.src[1], i.dst[0]))
    return _product(accumulating, shape, load_a, load_b)


def _loaders(i: Instruction, shape: Shape, arch: str) -> tuple[Callable[[Wave], Array], Callable[[Wave], Array]]:
    """Readers of A and B as arrays [block, row or column, k]."""
    if shape.inputs == "f8f6f4":
        return _narrow_loader(i, shape, 0, i.cbsz), _narrow_loader(i, shape, 1, i.blgp)
    names = shape.inputs.split("_")
    types = (names[0], names[-1])
    loaders = [_plain_loader(i.src[n], shape, types[n], arch) for n in range(2)]
    return loaders[0], loaders[1]


def _plain_loader(
    source: Operand, shape: Shape, kind: str, arch: str, runs: int = 1, lanes: Array | None = None
) -> Callable[[Wave], Array]:
    """Lane l holds `per_lane` values of row l % M; the rest of the lane number is the block, then the K group.

    With `runs`, K is cut into so many parts and each lane holds a run of every part. `lanes` says from which lane each
    one's registers are taken.
    """
    row, dwords = row_of(source), source.dwords
    groups = LANES // shape.m // shape.blocks
    per_lane = shape.k // groups

    def load(w: Wave) -> Array:
        registers = w.vgpr[row : row + dwords]
        values = unpack(registers if lanes is None else registers[:, lanes], kind, arch)[:, :per_lane]
        ordered = values.reshape(groups, shape.blocks, shape.m, runs, per_lane // runs)
        return ordered.transpose(1, 2, 3, 0, 4).reshape(shape.blocks, shape.m, shape.k)

    return load


def unpack(registers: npt.NDArray[np.uint32], kind: str, arch: str) -> Array:
    """Registers [dword, lane] to values [lane, element]: doubles, or 64-bit integers for i8."""
    by_lane = np.ascontiguousarray(registers.T)
    if kind == "f16":
        return by_lane.view(np.float16).astype(np.float64)
    if kind == "bf16":
        halves = by_lane.view(np.uint16)
        return bf16_to_f32(halves.reshape(-1)).reshape(halves.shape).astype(np.float64)
    if kind == "f32":
        return by_lane.view(np.float32).astype(np.float64)
    if kind == "xf32":  # 10 explicit mantissa bits
        bits = by_lane + np.uint32(0xFFF) + (by_lane >> np.uint32(13) & np.uint32(1))
        kept = np.where(np.isfinite(by_lane.view(np.float32)), bits & np.uint32(0xFFFFE000), by_lane)
        return kept.astype(np.uint32).view(np.float32).astype(np.float64)
    if kind == "f64":
        return by_lane.view(np.float64)
    if kind == "i8":
        return by_lane.view(np.int8).astype(np.int64)
    return decode(by_lane.view(np.uint8), format_named(kind, arch))


def _narrow_loader(i: Instruction, shape: Shape, n: int, code: int) -> Callable[[Wave], F64]:
    """A or B of an f8f6f4 instruction: 32 values a lane; 8-bit formats are split into two runs of 16 values of K."""
    fmt, row, dwords = MATRIX_FORMATS[code], row_of(i.src[n]), i.src[n].dwords
    groups = LANES // shape.m
    scale = _scale_reader(i, n)

    def load(w: Wave) -> F64:
        by_lane = np.ascontiguousarray(w.vgpr[row : row + dwords].T)
        bits = np.unpackbits(by_lane.view(np.uint8), axis=1, bitorder="little")
        weights = 1 << np.arange(fmt.bits)
        codes = bits[:, : 32 * fmt.bits].reshape(LANES, 32, fmt.bits) @ weights
        values = decode(codes, fmt)
        if fmt.bits == 8:  # element j of lane group g is k = 16 g + j % 16 + 16 * groups * (j // 16)
            values = values.reshape(groups, shape.m, 2, 16).transpose(1, 2, 0, 3).reshape(shape.m, shape.k)
        else:
            values = values.reshape(groups, shape.m, 32).transpose(1, 0, 2).reshape(shape.m, shape.k)
        if scale is not None:
            # Lane l scales the 32 values of row l % M from k = 32 (l // M) on, whichever lanes hold them.
            factors = scale(w).reshape(groups, shape.m).T
            values = values * np.repeat(factors, 32, axis=1)
        return values[None]

    return load


def _scale_reader(i: Instruction, n: int) -> Callable[[Wave], F64] | None:
    """Powers of two from one byte (e8m0) of the scale operand; op_sel and op_sel_hi pick the byte."""
    if not i.scale:
        return None
    read = raw_reader(i.scale[n])
    shift = np.uint32(8 * ((i.op_sel >> n & 1) | (i.op_sel_hi >> n & 1) << 1))

    def scale(w: Wave) -> F64:
        exponent = (read(w) >> shift & np.uint32(0xFF)).astype(np.int32)
        return np.where(exponent == 255, np.nan, np.ldexp(1.0, exponent - 127))

    return scale


def _result_index(shape: Shape) -> tuple[Array, Array, Array]:
    """Block, row and column that register r of lane l of C and D holds, as arrays [register, lane]."""
    lane = np.arange(LANES)
    if shape.result == "f64":
        registers = shape.m * shape.m * shape.blocks // LANES
        r = np.arange(registers)[:, None]
        if shape.m == 16:
            return np.zeros_like(r + lane), lane // 16 + 4 * r, lane % 16 + 0 * r
        return lane // 4 % 4 + 0 * r, lane // 16 + 0 * r, lane % 4 + 0 * r
    registers = shape.m * shape.m * shape.blocks // LANES
    r = np.arange(registers)[:, None]
    if shape.m == 4:
        return lane // 4 + 0 * r, r + 0 * lane, lane % 4 + 0 * r
    group = lane // shape.m
    per_block = registers // shape.blocks
    inside = r % per_block
    rows = inside % 4 + 4 * group + (4 * LANES // shape.m) * (inside // 4)
    return r // per_block + 0 * lane, rows, lane % shape.m + 0 * r


def _accumulator(i: Instruction, shape: Shape) -> Callable[[Wave], Array]:
    """Reader of C as [register, lane]: doubles, or 64-bit integers."""
    source = i.src[2]
    registers = shape.m * shape.m * shape.blocks // LANES
    if source.is_constant:
        raw = source.value.to_bytes(8, "little")
        dtype: Any = {"f64": np.float64, "f32": np.float32, "i32": np.int32}[shape.result]
        value = np.frombuffer(raw, dtype)[0]
        constant = np.full((registers, LANES), value).astype(np.int64 if shape.result == "i32" else np.float64)
        return lambda w: constant
    if source.kind not in ("vgpr", "agpr"):
        raise unsupported(i, "a scalar accumulator")
    row = row_of(source)

    def read(w: Wave) -> Array:
        if shape.result == "f64":
            low = w.vgpr[row : row + 2 * registers : 2].astype(np.uint64)
            return (low | w.vgpr[row + 1 : row + 2 * registers : 2].astype(np.uint64) << np.uint64(32)).view(np.float64)
        block = w.vgpr[row : row + registers]
        return (
            block.view(np.float32).astype(np.float64)
            if shape.result == "f32"
            else block.view(np.int32).astype(np.int64)
        )

    return read


def _product(
    i: Instruction,
    shape: Shape,
    load_a: Callable[[Wave], Array],
    load_b: Callable[[Wave], Array],
    negate_c: bool = False,
) -> Step:
    """The step, EXEC ignored as hardware does: all lanes take part and are written."""
    accumulator, row = _accumulator(i, shape), row_of(i.dst[0])
    block, rows, columns = _result_index(shape)

    def step(w: Wave) -> None:
        c = accumulator(w)
        product = load_a(w) @ load_b(w).transpose(0, 2, 1)
        d = product[block, rows, columns] + (-c if negate_c else c)
        registers = d.shape[0]
        if shape.result == "f64":
            bits = np.ascontiguousarray(d).view(np.uint64)
            w.vgpr[row : row + 2 * registers : 2] = bits.astype(np.uint32)
            w.vgpr[row + 1 : row + 2 * registers : 2] = (bits >> np.uint64(32)).astype(np.uint32)
        elif shape.result == "f32":
            w.vgpr[row : row + registers] = d.astype(np.float32).view(np.uint32)
        else:
            w.vgpr[row : row + registers] = (d & 0xFFFFFFFF).astype(np.uint32)

    return step


def _lane_pattern(blgp: int) -> Array:
    """Whose values of B each lane takes, as AMD's matrix instruction calculator describes the patterns."""
    lane = np.arange(LANES)
    if blgp < 3:
        return lane % 32 + 32 * (blgp - 1) if blgp else lane
    return (lane + 16) % LANES if blgp == 3 else lane % 16 + 16 * (blgp - 4)


def _with_broadcast(i: Instruction, shape: Shape, arch: str) -> Step:
    """cbsz and abid: one block of A is used by a group of 2**cbsz blocks; blgp permutes the lanes of B.

    For f64 the three bits of blgp negate A, B and C instead.
    """
    load_a, load_b = _loaders(i, shape, arch)
    if shape.result == "f64":
        if i.cbsz or i.abid:
            raise unsupported(i, "cbsz or abid")
        sign = -1.0 if (i.blgp & 1) != (i.blgp >> 1 & 1) else 1.0
        return _product(i, shape, lambda w: load_a(w) * sign, load_b, bool(i.blgp & 4))
    if (1 << i.cbsz) > shape.blocks or i.abid >= 1 << i.cbsz:
        raise unsupported(i, f"cbsz:{i.cbsz} abid:{i.abid}")
    group = np.arange(shape.blocks) >> i.cbsz << i.cbsz
    chosen = group + i.abid if i.cbsz else group
    if i.blgp:
        if shape.blocks == 1 and shape.inputs != "f32":
            raise unsupported(i, f"blgp:{i.blgp}")
        load_b = _plain_loader(i.src[1], shape, shape.inputs, arch, lanes=_lane_pattern(i.blgp))
    return _product(i, shape, lambda w: load_a(w)[chosen], load_b)
