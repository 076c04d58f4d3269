"""Vector memory: global, flat, scratch and buffer instructions, with LDS as a destination and atomics."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from sandbox.emulator.instruction import Instruction, Operand
from sandbox.emulator.machine import LANES, Mask, Wave, unsupported
from sandbox.emulator.semantics import access
from sandbox.emulator.semantics.access import Addresses, Bytes, Offsets
from sandbox.emulator.semantics.atomic import AtomicKind, vector_memory_kind
from sandbox.emulator.semantics.lds import apply_atomic, bytes_to_registers, registers_to_bytes, store_loaded, widen
from sandbox.emulator.semantics.operands import Step, raw_reader, row_of, scalar_reader

_FORM = re.compile(
    r"(global|flat|scratch|buffer)_(load|store)_(lds_)?"
    r"(u|s)?(byte|short|dwordx2|dwordx3|dwordx4|dword)(_d16)?(_hi)?$"
)
_SIZES = {"byte": 1, "short": 2, "dword": 4, "dwordx2": 8, "dwordx3": 12, "dwordx4": 16}
_FENCES = frozenset({"buffer_wbl2", "buffer_inv"})

Load = Callable[[Wave, Mask], Bytes]
Store = Callable[[Wave, Bytes, Mask], None]


def build(i: Instruction) -> Step:
    """The step of a FLAT, GLOBAL, SCRATCH or MUBUF instruction. Cache bits do not matter: memory is coherent here."""
    if i.mnemonic in _FENCES:
        return lambda w: None
    form = _FORM.match(i.mnemonic)
    if form is None:
        kind = vector_memory_kind(i.mnemonic)
        if kind is None:
            raise unsupported(i)
        return _buffer_atomic(i, kind) if i.encoding == "MUBUF" else _atomic(i, kind)
    size, signed = _SIZES[form[5]], form[4] == "s"
    load, store = _accessors(i, size)
    d16, high = bool(form[6]), bool(form[7])
    if form[2] == "store":
        return _store(i, store, size, skip=2 if high else 0)
    if i.lds:
        return _load_to_lds(i, load, size, signed)
    row = row_of(i.dst[0])

    def step(w: Wave) -> None:
        store_loaded(w, row, load(w, w.active), signed, d16, high)

    return step


def _accessors(i: Instruction, size: int) -> tuple[Load, Store]:
    """How this instruction reads and writes `size` bytes per lane."""
    if i.encoding == "MUBUF":
        return _buffer_accessors(i, size)
    if i.encoding == "SCRATCH":
        offsets = _scratch_offsets(i)
        return (
            lambda w, active: access.load_scratch(w, offsets(w), size, active),
            lambda w, data, active: access.store_scratch(w, offsets(w), data, active),
        )
    address = _address(i)
    if i.encoding == "FLAT":
        return (
            lambda w, active: access.load_flat(w, address(w), size, active),
            lambda w, data, active: access.store_flat(w, address(w), data, active),
        )
    return (
        lambda w, active: access.load_global(w, address(w), size, active),
        lambda w, data, active: access.store_global(w, address(w), data, active),
    )


def _address(i: Instruction) -> Callable[[Wave], Addresses]:
    """64-bit address: a VGPR pair, or an SGPR pair plus a 32-bit VGPR; plus the signed offset."""
    assert i.vaddr is not None
    vector, offset = raw_reader(i.vaddr), np.uint64(i.offset & 0xFFFFFFFFFFFFFFFF)
    if i.saddr is None:
        return lambda w: vector(w) + offset
    base = scalar_reader(_wide(i))
    return lambda w: vector(w).astype(np.uint64) + (np.uint64(base(w)) + offset)


def _wide(i: Instruction) -> Operand:
    assert i.saddr is not None
    return replace(i.saddr, dwords=2)


def _scratch_offsets(i: Instruction) -> Callable[[Wave], Offsets]:
    """Byte offsets in each lane's private memory; 32-bit sums."""
    scalar = scalar_reader(i.saddr) if i.saddr is not None else None
    vector = raw_reader(i.vaddr) if i.vaddr is not None else None

    def offsets(w: Wave) -> Offsets:
        base = (scalar(w) if scalar else 0) + i.offset
        base = (base & 0xFFFFFFFF) - (1 << 32 if base & 0x80000000 else 0)
        if vector is None:
            return np.full(LANES, base, np.int64)
        return vector(w).view(np.int32).astype(np.int64) + base

    return offsets


def _store(i: Instruction, store: Store, size: int, skip: int) -> Step:
    row, dwords = row_of(i.src[0]), max(1, size // 4)
    return lambda w: store(w, registers_to_bytes(w, row, dwords)[:, skip : skip + size], w.active)


def _load_to_lds(i: Instruction, load: Load, size: int, signed: bool) -> Step:
    """Memory to LDS without registers: lane l writes at M0 + offset + l * (4 bytes, or the size if larger)."""
    width = max(4, size)
    lane_offsets = np.arange(LANES, dtype=np.uint64) * np.uint64(width)

    def step(w: Wave) -> None:
        data = load(w, w.active)
        if size < 4:
            data = widen(data, signed).view(np.uint8).reshape(LANES, 4)
        base = np.uint64(w.m0 + i.offset & 0xFFFFFFFF)
        access.store_lds(w, lane_offsets + base, data, w.active)

    return step


def _check_aligned(w: Wave, addresses: Addresses, size: int, active: Mask) -> None:
    misaligned = active & (addresses % np.uint64(size) != 0)
    if misaligned.any():
        lane = int(np.argmax(misaligned))
        where = w.group.memory.describe(int(addresses[lane]))
        w.report("misaligned", f"{size}-byte atomic at {where}", lane, int(addresses[lane]))


def _apply(w: Wave, i: Instruction, kind: AtomicKind, addresses: Addresses, data: Bytes, active: Mask) -> Bytes:
    """Run the atomic lane by lane; returns the old bytes."""
    element = kind.size // kind.count if kind.count > 1 else kind.size
    _check_aligned(w, addresses, max(4, element), active)
    returned = np.zeros((LANES, kind.size), np.uint8)
    in_global, in_lds, in_scratch = access.split_flat(addresses, active)
    if in_scratch.any():
        raise unsupported(i, "an atomic on scratch")
    if in_lds.any():
        returned[in_lds] = apply_atomic(w, kind, addresses & np.uint64(0xFFFFFFFF), data, data, in_lds)[in_lds]
    for number, lanes in access.locate(w, addresses, kind.size, in_global, "atomic").items():
        allocation = w.group.memory.allocations[number]
        if not allocation.writable:
            w.report("write_to_read_only", f"atomic on {allocation.name}", int(lanes[0]), int(addresses[lanes[0]]))
        for lane in lanes:
            at = int(addresses[lane]) - allocation.base
            place = slice(at, at + kind.size)
            if allocation.initialised is not None and not allocation.initialised[place].all():
                where = w.group.memory.describe(int(addresses[lane]))
                w.report("uninitialised_global", f"atomic on {where}, never written", int(lane), int(addresses[lane]))
                allocation.initialised[place] = True
            old = allocation.data[place].copy()
            returned[lane] = old
            allocation.data[place] = kind.apply(old, data[lane, : kind.size], data[lane, -kind.size :])
    return returned


def _atomic(i: Instruction, kind: AtomicKind) -> Step:
    address, source = _address(i), i.src[0]
    row, dwords = row_of(source), source.dwords

    def step(w: Wave) -> None:
        old = _apply(w, i, kind, address(w), registers_to_bytes(w, row, dwords), w.active)
        if i.dst:
            bytes_to_registers(w, row_of(i.dst[0]), old)

    return step


def _buffer_atomic(i: Instruction, kind: AtomicKind) -> Step:
    source = i.src[0]
    row, dwords = row_of(source), source.dwords
    locate = _buffer_address(i)

    def step(w: Wave) -> None:
        addresses, offsets, limit = locate(w)
        inside = w.active & (offsets + kind.size <= limit)
        old = _apply(w, i, kind, addresses, registers_to_bytes(w, row, dwords), inside)
        if i.dst:
            bytes_to_registers(w, row_of(i.dst[0]), old)

    return step


def _buffer_address(i: Instruction) -> Callable[[Wave], tuple[Addresses, Offsets, int]]:
    """Per lane: address, offset that the range check looks at, and the limit it must stay within (in bytes).

    Raw buffers (no swizzle): offset = index * stride + VGPR offset + instruction offset + scalar offset.
    """
    assert i.saddr is not None and i.soffset is not None
    descriptor, scalar = scalar_reader(i.saddr), scalar_reader(i.soffset)
    vector = row_of(i.vaddr) if i.vaddr is not None else 0

    def locate(w: Wave) -> tuple[Addresses, Offsets, int]:
        words = descriptor(w)
        base, stride = words & 0xFFFFFFFFFFFF, words >> 48 & 0x3FFF
        limit = words >> 64 & 0xFFFFFFFF
        if words >> 63 & 1:
            raise unsupported(i, "a swizzled buffer")
        if words >> (96 + 23) & 1:
            raise unsupported(i, "a buffer with add_tid_enable")
        offsets = np.full(LANES, i.offset + scalar(w), np.int64)
        if i.idxen:
            offsets += w.vgpr[vector].astype(np.int64) * stride
        if i.offen:
            offsets += w.vgpr[vector + (1 if i.idxen else 0)].astype(np.int64)
        return np.uint64(base) + offsets.astype(np.uint64), offsets, limit

    return locate


def _buffer_accessors(i: Instruction, size: int) -> tuple[Load, Store]:
    """Range-checked access: dwords (or a smaller whole) that lie outside read as 0 and are not written."""
    locate = _buffer_address(i)
    unit = min(size, 4)

    def load(w: Wave, active: Mask) -> Bytes:
        addresses, offsets, limit = locate(w)
        whole = active & (offsets + size <= limit)
        out = access.load_global(w, addresses, size, whole)
        for k in range(0, size, unit):
            part = active & ~whole & (offsets + k + unit <= limit)
            if part.any():
                piece = access.load_global(w, addresses + np.uint64(k), unit, part)
                out[part, k : k + unit] = piece[part]
        return out

    def store(w: Wave, data: Bytes, active: Mask) -> None:
        addresses, offsets, limit = locate(w)
        whole = active & (offsets + size <= limit)
        access.store_global(w, addresses, data, whole)
        for k in range(0, size, unit):
            part = active & ~whole & (offsets + k + unit <= limit)
            if part.any():
                access.store_global(w, addresses + np.uint64(k), data[:, k : k + unit], part)

    return load, store
