"""Steps of vector ALU instructions: sources, the operation of its family, modifiers, result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from sandbox.emulator.instruction import Instruction
from sandbox.emulator.machine import Mask, Wave, lanes_of, mask_of, unsupported
from sandbox.emulator.semantics import compare, convert, division, floating, integer, lanes, narrow, packed, sdwa
from sandbox.emulator.semantics.operands import (
    FLOATS,
    Array,
    Reader,
    Step,
    finish_float,
    raw_reader,
    reader,
    row_of,
    writer,
)
from sandbox.emulator.semantics.rounding import respect_mode

OPERATIONS: dict[str, Callable[..., Any]] = {
    **integer.OPERATIONS,
    **floating.OPERATIONS,
    **division.OPERATIONS,
    **convert.OPERATIONS,
    **compare.OPERATIONS,
    "v_pk_fmac_f16": packed.fma_halves,
}
"""Every operation that is a function of its sources alone."""

_OP_SEL_READ = frozenset({"f16", "bf16", "i16", "u16", "b16"})


def build(i: Instruction, arch: str) -> Step:
    """The step of a VOP1, VOP2, VOPC or VOP3 instruction; raises `Unsupported` for what is not implemented."""
    if i.mnemonic == "v_nop":
        return lambda w: None
    if narrow.matches(i.mnemonic):
        return narrow.build(i, arch)
    if i.mnemonic in lanes.BUILDERS:
        if i.dpp or i.sdwa or i.neg or i.abs or i.clamp or i.omod:
            raise unsupported(i, "a modifier")
        return lanes.BUILDERS[i.mnemonic](i)
    if i.mnemonic.startswith("v_bitop3"):
        return _bitop3(i)
    if i.mnemonic == "v_mqsad_u32_u8":
        return _four_masked_sums(i)
    if i.mnemonic.startswith("v_dot"):
        return _dot(i)
    _check_op_sel(i)
    if i.mnemonic.startswith(("v_cmp_", "v_cmpx_")):
        return _compare(i)
    return _arithmetic(i)


def _check_op_sel(i: Instruction) -> None:
    for n, source in enumerate(i.src):
        if i.op_sel >> n & 1 and source.type not in _OP_SEL_READ:
            raise unsupported(i, f"op_sel on a {source.type} source")


def _readers(i: Instruction) -> tuple[list[Reader], Callable[[Wave], Mask] | None]:
    """Readers of all sources, and for DPP the lanes that take part."""
    if i.dpp:
        moved, enabled = lanes.dpp_reader(i, i.dpp)
        return [reader(i, n, moved if n == 0 else None) for n in range(len(i.src))], enabled
    if i.sdwa:
        selected = [sdwa.source(i, n) if n < 2 and s.type != "mask" else None for n, s in enumerate(i.src)]
        return [reader(i, n, s) for n, s in enumerate(selected)], None
    return [reader(i, n) for n in range(len(i.src))], None


def _compare(i: Instruction) -> Step:
    function = compare.OPERATIONS.get(i.mnemonic)
    if function is None:
        raise unsupported(i)
    if i.clamp or i.omod:
        raise unsupported(i, "clamp or omod on a comparison")
    (first, second), enabled = _readers(i)
    assert enabled is None
    index, also_exec = i.dst[0].index, i.mnemonic.startswith("v_cmpx")

    def step(w: Wave) -> None:
        result = mask_of(function(first(w), second(w)) & w.active)
        w.write_sgpr(index, result, 2)
        if also_exec:
            w.write_sgpr(126, result, 2)

    return step


def _arithmetic(i: Instruction) -> Step:
    integer_clamp = i.clamp and i.dst[0].type not in FLOATS
    function = (integer.CLAMPED if integer_clamp else OPERATIONS).get(i.mnemonic)
    if function is None:
        raise unsupported(i, "clamp" if integer_clamp and i.mnemonic in OPERATIONS else "")
    sources, enabled = _readers(i)
    if i.sdwa:
        store = _sdwa_writer(i)
    else:
        store = writer(i, saturated=integer_clamp)
    if len(i.dst) == 2:
        return _with_mask(i, function, sources, store, enabled)
    if i.dst[0].type in FLOATS:
        compute = _float_result(i, function)
    else:
        compute = lambda w, values: function(*values)  # noqa: E731
    if enabled is None:
        return lambda w: store(w, compute(w, [s(w) for s in sources]))
    return _masked(i, lambda w: store(w, compute(w, [s(w) for s in sources])), enabled)


def _sdwa_writer(i: Instruction) -> Callable[[Wave, Array], None]:
    place, kind = sdwa.writer(i), i.dst[0].type
    if kind not in FLOATS:
        if i.clamp or i.omod:
            raise unsupported(i, "clamp or omod on an integer SDWA result")
        return place
    return lambda w, values: place(w, finish_float(i, kind, values, w))


def _float_result(i: Instruction, function: Callable[..., Array]) -> Callable[[Wave, list[Array]], Array]:
    rounded = respect_mode(i, function)
    if i.dst[0].type != "f16":
        return rounded

    def half(w: Wave, sources: list[Array]) -> Array:
        values = rounded(w, sources)
        if w.mode >> 23 & 1:  # FP16_OVFL: finite operands do not become infinite
            finite = np.ones(values.shape, np.bool_)
            for s in sources:
                finite &= np.isfinite(s) if s.dtype.kind == "f" else True
            values = np.where(np.isinf(values) & finite, np.copysign(np.float16(65504), values), values)
        return values

    return half


def _masked(i: Instruction, step: Step, enabled: Callable[[Wave], Mask]) -> Step:
    """A step that writes only the lanes DPP enables; the others get their old value back."""
    rows = [row_of(o) + k for o in i.dst if o.kind in ("vgpr", "agpr") for k in range(o.dwords)]

    def run(w: Wave) -> None:
        disabled = ~enabled(w)
        before = [w.vgpr[row].copy() for row in rows]
        step(w)
        for row, old in zip(rows, before, strict=True):
            np.copyto(w.vgpr[row], old, where=disabled)

    return run


def _with_mask(
    i: Instruction,
    function: Callable[..., tuple[Array, Array]],
    sources: list[Reader],
    store: Callable[[Wave, Array], None],
    enabled: Callable[[Wave], Mask] | None,
) -> Step:
    """Instructions with a second result, a lane mask: carries and v_div_scale."""
    index = i.dst[1].index

    def step(w: Wave) -> None:
        value, lanes_out = function(*(s(w) for s in sources))
        store(w, value)
        w.write_sgpr(index, mask_of(lanes_out & w.active), 2)

    if enabled is None:
        return step

    def masked(w: Wave) -> None:
        lanes_in, old = enabled(w), lanes_of(w.read_sgpr(index, 2))
        _masked(i, step, enabled)(w)
        w.write_sgpr(index, mask_of(np.where(lanes_in, lanes_of(w.read_sgpr(index, 2)), old & w.active)), 2)

    return masked


def _four_masked_sums(i: Instruction) -> Step:
    """v_mqsad_u32_u8: four sums of absolute differences of bytes, each onto a dword of the third source."""
    if i.clamp or i.op_sel or i.src[2].kind not in ("vgpr", "agpr"):
        raise unsupported(i, "a modifier or source")
    wide, pattern = reader(i, 0), raw_reader(i.src[1])
    onto, row = row_of(i.src[2]), row_of(i.dst[0])

    def step(w: Wave) -> None:
        windows = integer.quad_windows(wide(w))
        sums = [integer.masked_sad_u8(x, pattern(w), w.vgpr[onto + k]) for k, x in enumerate(windows)]
        for k, total in enumerate(sums):
            w.write_vgpr(row + k, total)

    return step


def _dot(i: Instruction) -> Step:
    if i.dpp is None:
        return packed.build_dot(i)
    moved, enabled = lanes.dpp_reader(i, i.dpp)
    return _masked(i, packed.build_dot(i, moved), enabled)


def _bitop3(i: Instruction) -> Step:
    """Any boolean function of three sources; bit k of the truth table is its value where the sources spell k."""
    if i.mnemonic == "v_bitop3_b16" and i.op_sel:
        raise unsupported(i, "op_sel")
    reads, row, table = [raw_reader(s) for s in i.src], row_of(i.dst[0]), i.imm
    half = i.mnemonic == "v_bitop3_b16"

    def step(w: Wave) -> None:
        values = [r(w) for r in reads]
        result = np.zeros(64, np.uint32)
        for k in range(8):
            if table >> k & 1:
                term = np.full(64, 0xFFFFFFFF, np.uint32)
                for n, v in enumerate(values):
                    term &= v if k >> (2 - n) & 1 else ~v
                result |= term
        w.write_vgpr(row, result & np.uint32(0xFFFF) if half else result)

    return step
