"""Sub-dword addressing: which byte or word of a source is read, and where in the destination the result goes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sandbox.emulator.instruction import Instruction
from sandbox.emulator.machine import U32, Wave, unsupported
from sandbox.emulator.semantics.operands import FLOATS, HALVES, Array, Reader, merged, raw_reader, row_of

_DWORD = 6


def _place(sel: int) -> tuple[int, int]:
    """Lowest bit and width of a selection."""
    return (8 * sel, 8) if sel < 4 else (16 * (sel - 4), 16) if sel < _DWORD else (0, 32)


def source(i: Instruction, n: int) -> Reader:
    """Source `n` (0 or 1) with its selection, zero- or sign-extended to a dword."""
    assert i.sdwa is not None
    read = raw_reader(i.src[n])
    sel, extend = i.sdwa.src_sel[n], i.sdwa.src_sext[n]
    if sel > _DWORD:
        raise unsupported(i, f"SDWA selection {sel}")
    if sel == _DWORD:
        return read
    shift, width = _place(sel)
    up = 32 - width
    if extend:
        if i.src[n].type in FLOATS:
            raise unsupported(i, "sext on a float source")
        return lambda w: ((read(w) << np.uint32(up - shift)).view(np.int32) >> np.int32(up)).view(np.uint32)
    mask = np.uint32((1 << width) - 1)
    return lambda w: read(w) >> np.uint32(shift) & mask


def writer(i: Instruction) -> Callable[[Wave, Array], None]:
    """Stores results of up to 32 bits where `dst_sel` says; `dst_unused` decides about the rest of the register."""
    assert i.sdwa is not None
    row, kind = row_of(i.dst[0]), i.dst[0].type
    shift, width = _place(i.sdwa.dst_sel)
    unused = i.sdwa.dst_unused
    if i.sdwa.dst_sel > _DWORD or unused > 2:
        raise unsupported(i, "SDWA destination selection")
    mask = (1 << width) - 1

    def store(w: Wave, values: Array) -> None:
        bits: U32 = values.view(np.uint16).astype(np.uint32) if kind in HALVES else values.view(np.uint32)
        if width < 32:
            field = (bits & np.uint32(mask)) << np.uint32(shift)
            if unused == 2:
                bits = merged(w.vgpr[row], bits, shift, mask)
            elif unused == 1:
                up = np.int32(32 - width - shift)
                bits = (field << up.view(np.uint32)).view(np.int32).__rshift__(up).view(np.uint32)
            else:
                bits = field
        w.write_vgpr(row, bits)

    return store
