"""Instructions that move data between lanes, or between a lane and a scalar register, and the DPP source of others."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from sandbox.emulator.instruction import Dpp, Instruction
from sandbox.emulator.machine import LANES, Mask, Wave, unsupported
from sandbox.emulator.semantics.integer import population_count
from sandbox.emulator.semantics.operands import Array, Reader, Step, raw_reader, row_of, scalar_reader

_LANE = np.arange(LANES)
_NO_LANE = -1


@lru_cache(maxsize=512)
def dpp_sources(control: int) -> npt.NDArray[np.int64] | None:
    """For each lane the lane that DPP_CTRL takes data from, -1 where there is none; None for a reserved control."""
    row, place = _LANE & ~15, _LANE & 15
    if control < 0x100:
        select = np.array([control >> 2 * k & 3 for k in range(4)])
        result: Array = (_LANE & ~3) + select[_LANE & 3]
        return result
    count = control & 15
    if 0x101 <= control <= 0x10F:
        return np.where(place + count < 16, _LANE + count, _NO_LANE)
    if 0x111 <= control <= 0x11F:
        return np.where(place >= count, _LANE - count, _NO_LANE)
    if 0x121 <= control <= 0x12F:
        return row + (place - count & 15)
    if 0x150 <= control <= 0x15F:
        return row + count
    whole = {
        0x130: np.where(_LANE < 63, _LANE + 1, _NO_LANE),
        0x134: _LANE + 1 & 63,
        0x138: _LANE - 1,
        0x13C: _LANE - 1 & 63,
        0x140: row + 15 - place,
        0x141: (_LANE & ~7) + 7 - (_LANE & 7),
        0x142: np.where(row > 0, row - 1, _NO_LANE),
        0x143: np.where(_LANE >= 32, 31, _NO_LANE),
    }
    return whole.get(control)


def dpp_reader(i: Instruction, dpp: Dpp) -> tuple[Reader, Callable[[Wave], Mask]]:
    """Source 0 moved between lanes, and the lanes that are written at all.

    A lane without a source, or whose source lane EXEC disables, reads 0 under bound_ctrl and is not written otherwise.
    """
    sources = dpp_sources(dpp.control)
    if sources is None:
        raise unsupported(i, f"DPP control {dpp.control:#x}")
    if any(o.dwords == 2 and o.type != "mask" for o in (*i.dst, *i.src)) and not 0x150 <= dpp.control <= 0x15F:
        raise unsupported(i, "a 64-bit operand with DPP other than row_newbcast")
    where = np.maximum(sources, 0)
    rows, banks = _LANE >> 4, _LANE >> 2 & 3
    chosen = (dpp.row_mask >> rows & 1 != 0) & (dpp.bank_mask >> banks & 1 != 0)
    read = raw_reader(i.src[0])

    def valid(w: Wave) -> Mask:
        result: Mask = (sources >= 0) & w.active[where]
        return result

    def moved(w: Wave) -> Array:
        values = read(w)[where]
        return np.where(valid(w), values, values.dtype.type(0))

    if dpp.bound_ctrl:
        return moved, lambda w: chosen
    return moved, lambda w: chosen & valid(w)


def _first_lane(w: Wave) -> int:
    mask = w.exec
    return (mask & -mask).bit_length() - 1 if mask else 0


def _readfirstlane(i: Instruction) -> Step:
    read, index = raw_reader(i.src[0]), i.dst[0].index
    return lambda w: w.write_sgpr(index, int(read(w)[_first_lane(w)]))


def _readlane(i: Instruction) -> Step:
    read, lane, index = raw_reader(i.src[0]), scalar_reader(i.src[1]), i.dst[0].index
    return lambda w: w.write_sgpr(index, int(read(w)[lane(w) & 63]))


def _writelane(i: Instruction) -> Step:
    value, lane, row = scalar_reader(i.src[0]), scalar_reader(i.src[1]), row_of(i.dst[0])

    def step(w: Wave) -> None:
        w.vgpr[row, lane(w) & 63] = value(w)  # EXEC does not matter

    return step


def _count_below(low: bool) -> Callable[[Instruction], Step]:
    """v_mbcnt: bits of a mask below the lane, counted in its low or high 32 bits, added to source 1."""
    ones = np.array([(1 << lane) - 1 for lane in range(LANES)], dtype=object)
    shift = 0 if low else 32
    below = np.array([int(x) >> shift & 0xFFFFFFFF for x in ones], np.uint32)

    def builder(i: Instruction) -> Step:
        mask, addend, row = raw_reader(i.src[0]), raw_reader(i.src[1]), row_of(i.dst[0])
        return lambda w: w.write_vgpr(row, population_count(mask(w) & below) + addend(w))

    return builder


def _swap(i: Instruction) -> Step:
    first, second = row_of(i.dst[0]), row_of(i.src[0])

    def step(w: Wave) -> None:
        a, b = w.vgpr[first].copy(), w.vgpr[second].copy()
        w.write_vgpr(first, b)
        w.write_vgpr(second, a)

    return step


def _permlane_swap(rows: int) -> Callable[[Instruction], Step]:
    """Exchange the odd blocks of `rows` lanes of the first register with the even ones of the second."""
    odd = (_LANE // rows) % 2 == 1

    def builder(i: Instruction) -> Step:
        first, second = row_of(i.dst[0]), row_of(i.src[0])

        def step(w: Wave) -> None:
            if i.op_sel and not w.active.all():
                raise unsupported(i, "fi or bound_ctrl with inactive lanes")
            a, b = w.vgpr[first].copy(), w.vgpr[second].copy()
            enabled = w.active
            shift_a, shift_b = np.roll(a, -rows), np.roll(b, rows)
            np.copyto(w.vgpr[first], shift_b, where=odd & enabled)
            np.copyto(w.vgpr[second], shift_a, where=~odd & enabled)

        return step

    return builder


def _accvgpr_move(i: Instruction) -> Step:
    read, row = raw_reader(i.src[0]), row_of(i.dst[0])
    return lambda w: w.write_vgpr(row, read(w))


BUILDERS: dict[str, Callable[[Instruction], Step]] = {
    "v_readfirstlane_b32": _readfirstlane,
    "v_readlane_b32": _readlane,
    "v_writelane_b32": _writelane,
    "v_mbcnt_lo_u32_b32": _count_below(True),
    "v_mbcnt_hi_u32_b32": _count_below(False),
    "v_swap_b32": _swap,
    "v_permlane16_swap_b32": _permlane_swap(16),
    "v_permlane32_swap_b32": _permlane_swap(32),
    "v_accvgpr_mov_b32": _accvgpr_move,
    "v_accvgpr_read_b32": _accvgpr_move,
    "v_accvgpr_write_b32": _accvgpr_move,
}
"""Mnemonic to a builder of its step."""
