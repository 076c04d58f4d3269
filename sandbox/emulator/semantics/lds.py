"""LDS instructions: loads, stores, two-address forms, atomics, permutes, and the transposing loads of gfx950."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from sandbox.emulator.instruction import Instruction
from sandbox.emulator.machine import LANES, U32, Mask, Wave, unsupported
from sandbox.emulator.semantics.access import Addresses, Bytes, lds_offsets, load_lds, report_race, store_lds
from sandbox.emulator.semantics.atomic import AtomicKind, lds_kind
from sandbox.emulator.semantics.operands import Step, raw_reader, row_of

_LOAD = re.compile(r"ds_read_(b32|b64|b96|b128|u8|i8|u16|i16)(_d16)?(_hi)?$")
_STORE = re.compile(r"ds_write_(b8|b16|b32|b64|b96|b128)(_d16_hi)?$")
_PAIR = re.compile(r"ds_(read2|write2|wrxchg2)(st64)?(_rtn)?_b(32|64)$")
_TRANSPOSE = re.compile(r"ds_read_b(64|96)_tr_b(4|6|8|16)$")
_BLOCK = 16
"""Lanes that exchange data in a transposing load."""


def build(i: Instruction) -> Step:
    """The step of a DS instruction."""
    if i.gds:
        raise unsupported(i, "gds")
    special = {"ds_bpermute_b32": _bpermute, "ds_permute_b32": _permute, "ds_swizzle_b32": _swizzle}
    special |= {"ds_append": _counter, "ds_consume": _counter}
    if i.mnemonic in special:
        return special[i.mnemonic](i)
    if i.mnemonic == "ds_nop":
        return lambda w: None
    if m := _LOAD.match(i.mnemonic):
        return _load(i, m[1], bool(m[2]), bool(m[3]))
    if m := _STORE.match(i.mnemonic):
        return _store(i, int(m[1][1:]) // 8, bool(m[2]))
    if m := _PAIR.match(i.mnemonic):
        return _pair(i, m[1], int(m[4]) // 8, 64 if m[2] else 1)
    if m := _TRANSPOSE.match(i.mnemonic):
        return _transposing_load(i, int(m[1]) // 8, int(m[2]))
    kind = lds_kind(i.mnemonic)
    if kind is None:
        raise unsupported(i)
    return _atomic(i, kind)


def _address(i: Instruction, extra: int) -> Callable[[Wave], Addresses]:
    """VGPR address plus an offset, which wraps at 32 bits: compilers emit negative bases."""
    assert i.vaddr is not None
    row, offset = row_of(i.vaddr), np.uint32(extra)
    return lambda w: (w.vgpr[row] + offset).astype(np.uint64)


def registers_to_bytes(w: Wave, row: int, dwords: int) -> Bytes:
    """`dwords` registers as [lane, byte]."""
    return np.ascontiguousarray(w.vgpr[row : row + dwords].T).view(np.uint8)


def bytes_to_registers(w: Wave, row: int, data: Bytes) -> None:
    """[lane, byte] (a multiple of 4 bytes) to registers, under EXEC."""
    dwords = np.ascontiguousarray(data).view(np.uint32)
    for k in range(dwords.shape[1]):
        w.write_vgpr(row + k, np.ascontiguousarray(dwords[:, k]))


def widen(data: Bytes, signed: bool) -> U32:
    """One or two bytes per lane to a dword, zero- or sign-extended."""
    unsigned = data.view(np.uint8 if data.shape[1] == 1 else np.uint16).reshape(-1)
    if not signed:
        return unsigned.astype(np.uint32)
    return unsigned.view(np.int8 if data.shape[1] == 1 else np.int16).astype(np.int32).view(np.uint32)


def store_loaded(w: Wave, row: int, data: Bytes, signed: bool, d16: bool, high: bool) -> None:
    """What a load of any width puts in its destination registers."""
    if data.shape[1] >= 4:
        bytes_to_registers(w, row, data)
        return
    value = widen(data, signed)
    if d16:
        half = value & np.uint32(0xFFFF)
        old = w.vgpr[row]
        value = (old & np.uint32(0xFFFF)) | half << np.uint32(16) if high else (old & np.uint32(0xFFFF0000)) | half
    w.write_vgpr(row, value)


def _load(i: Instruction, kind: str, d16: bool, high: bool) -> Step:
    address, row = _address(i, i.offset), row_of(i.dst[0])
    size, signed = int(kind[1:]) // 8, kind[0] == "i"
    return lambda w: store_loaded(w, row, load_lds(w, address(w), size, w.active), signed, d16, high)


def _store(i: Instruction, size: int, high: bool) -> Step:
    address, row = _address(i, i.offset), row_of(i.src[0])
    dwords, skip = max(1, size // 4), 2 if high else 0

    def step(w: Wave) -> None:
        data = registers_to_bytes(w, row, dwords)[:, skip : skip + size]
        store_lds(w, address(w), data, w.active)

    return step


def _pair(i: Instruction, form: str, size: int, stride: int) -> Step:
    """Two accesses at offsets counted in elements (of 64 elements for st64). All addresses are read first."""
    addresses = [_address(i, o * size * stride) for o in (i.offset, i.offset1)]
    dwords = size // 4

    def read(w: Wave) -> None:
        both = [load_lds(w, a(w), size, w.active) for a in addresses]
        bytes_to_registers(w, row_of(i.dst[0]), np.concatenate(both, axis=1))

    def write(w: Wave) -> None:
        for a, source in zip(addresses, i.src, strict=True):
            store_lds(w, a(w), registers_to_bytes(w, row_of(source), dwords), w.active)

    if form == "read2":
        return read
    if form == "write2":
        return write
    raise unsupported(i)


def _transposing_load(i: Instruction, size: int, bits: int) -> Step:
    """Each block of 16 lanes loads a tile with 16 elements a row and gets its columns, one per lane."""
    address, row = _address(i, i.offset), row_of(i.dst[0])
    per_lane = size * 8 // bits
    lanes_per_row = _BLOCK // per_lane

    def step(w: Wave) -> None:
        raw = load_lds(w, address(w), size, w.active)
        bit = np.unpackbits(raw, axis=1, bitorder="little").reshape(LANES, per_lane, bits)
        tile = bit.reshape(LANES // _BLOCK, per_lane, lanes_per_row * per_lane, bits)
        columns = tile.transpose(0, 2, 1, 3).reshape(LANES, per_lane * bits)
        bytes_to_registers(w, row, np.packbits(columns, axis=1, bitorder="little"))

    return step


def _atomic(i: Instruction, kind: AtomicKind) -> Step:
    address = _address(i, i.offset)
    dwords = max(1, kind.size // 4)
    rows = [row_of(s) for s in i.src]
    if i.mnemonic.startswith("ds_cmpst"):
        rows.reverse()  # the first source is what to compare with, the second what to store

    def step(w: Wave) -> None:
        data = [registers_to_bytes(w, r, dwords) for r in rows]
        returned = apply_atomic(w, kind, address(w), data[0], data[-1], w.active)
        if i.dst:
            bytes_to_registers(w, row_of(i.dst[0]), returned)

    return step


def _counter(i: Instruction) -> Step:
    """ds_append, ds_consume: one dword at M0 plus the offset goes up or down by the number of active lanes.

    Every active lane gets the value before.
    """
    row, sign = row_of(i.dst[0]), 1 if i.mnemonic == "ds_append" else -1
    kind = lds_kind("ds_add_u32")
    assert kind is not None

    def step(w: Wave) -> None:
        if not w.exec:
            return
        first = np.arange(LANES) == (w.exec & -w.exec).bit_length() - 1
        amount = np.full((LANES, 1), sign * w.exec.bit_count() & 0xFFFFFFFF, np.uint32).view(np.uint8)
        at = np.full(LANES, (w.m0 + i.offset) & 0xFFFFFFFF, np.uint64)
        returned = apply_atomic(w, kind, at, amount, amount, first)
        w.write_vgpr(row, np.full(LANES, returned[first].view(np.uint32)[0, 0], np.uint32))

    return step


def apply_atomic(w: Wave, kind: AtomicKind, addresses: Addresses, first: Bytes, second: Bytes, active: Mask) -> Bytes:
    """Run an atomic on LDS lane by lane; returns the old bytes as [lane, byte]."""
    returned = np.zeros((LANES, kind.size), np.uint8)
    lds, shadow = w.group.lds, w.group.shadow
    lanes, offsets = lds_offsets(w, addresses, kind.size, active, "atomic")
    for lane, offset in zip(lanes.tolist(), offsets.tolist(), strict=True):
        if offset % max(4, kind.dtype.itemsize):
            w.report("misaligned", f"LDS atomic at byte {offset}", lane, offset)
        where = np.arange(offset, offset + kind.size)
        if not shadow.written[where].all():
            w.report("uninitialised_lds", f"atomic on LDS byte {offset}, never written", lane, offset)
        old = lds[where]
        new = kind.apply(old, first[lane, : kind.size], second[lane, -kind.size :])
        racing = shadow.write(where, new, lds, w.index, atomic=True)
        if racing is not None:
            report_race(w, "atomic", racing)
        returned[lane] = old
        lds[where] = new
    return returned


def _bpermute(i: Instruction) -> Step:
    """Each lane reads the value of the lane its address names; a disabled lane gives 0."""
    assert i.vaddr is not None
    lane_row, data, row, offset = row_of(i.vaddr), raw_reader(i.src[0]), row_of(i.dst[0]), np.uint32(i.offset)

    def step(w: Wave) -> None:
        source = ((w.vgpr[lane_row] + offset) >> np.uint32(2) & np.uint32(63)).astype(np.int64)
        values = np.where(w.active, data(w), np.uint32(0))
        w.write_vgpr(row, values[source])

    return step


def _permute(i: Instruction) -> Step:
    """Each lane sends its value to the lane its address names; the highest sender wins, silence gives 0."""
    assert i.vaddr is not None
    lane_row, data, row, offset = row_of(i.vaddr), raw_reader(i.src[0]), row_of(i.dst[0]), np.uint32(i.offset)

    def step(w: Wave) -> None:
        target = ((w.vgpr[lane_row] + offset) >> np.uint32(2) & np.uint32(63)).astype(np.int64)
        out = np.zeros(LANES, np.uint32)
        out[target[w.active]] = data(w)[w.active]
        w.write_vgpr(row, out)

    return step


def _swizzle(i: Instruction) -> Step:
    """A fixed exchange within groups of 4 or 32 lanes, spelled in the offset field."""
    assert i.vaddr is not None
    lane, o = np.arange(LANES), i.offset
    if o & 0x8000:
        if o >= 0xC000:
            raise unsupported(i, f"swizzle mode {o:#x}")
        select = np.array([o >> 2 * k & 3 for k in range(4)])
        source = (lane & ~3) + select[lane & 3]
    else:
        inside = lane & 31
        source = (lane & 32) + (((inside & (o & 31)) | (o >> 5 & 31)) ^ (o >> 10 & 31))
    data, row = raw_reader(i.vaddr), row_of(i.dst[0])

    def step(w: Wave) -> None:
        values = np.where(w.active, data(w), np.uint32(0))
        w.write_vgpr(row, values[source])

    return step
