"""Branches, calls, barriers, waits, mode registers, scalar memory: what directs a wave or feeds its scalars."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sandbox.emulator.instruction import M0, Instruction
from sandbox.emulator.machine import LANES, Wave, unsupported
from sandbox.emulator.semantics.access import load_global, store_global
from sandbox.emulator.semantics.operands import Step, scalar_reader

_NOTHING = frozenset({
    "s_nop", "s_waitcnt", "s_sleep", "s_setprio", "s_icache_inv", "s_wakeup", "s_incperflevel", "s_decperflevel",
    "s_ttracedata", "s_dcache_inv", "s_dcache_wb", "s_dcache_inv_vol", "s_dcache_wb_vol", "s_sethalt",
})  # fmt: skip
"""No effect on results here: memory is coherent and every instruction completes before the next."""

_CONDITIONS: dict[str, Callable[[Wave], bool]] = {
    "s_branch": lambda w: True,
    "s_cbranch_scc0": lambda w: not w.scc,
    "s_cbranch_scc1": lambda w: bool(w.scc),
    "s_cbranch_vccz": lambda w: w.vcc == 0,
    "s_cbranch_vccnz": lambda w: w.vcc != 0,
    "s_cbranch_execz": lambda w: w.exec == 0,
    "s_cbranch_execnz": lambda w: w.exec != 0,
}

MODE, HW_ID, XCC_ID = 1, 4, 20
_WRITABLE_MODE = 0x008001FF | 0x200
"""MODE fields that are modelled: rounding, denormals, dx10_clamp, ieee, fp16_ovfl."""


def build(i: Instruction) -> Step:
    """The step of a SOPP or SMEM instruction, of a jump through registers, or of a mode register access."""
    if i.mnemonic in _NOTHING:
        if i.mnemonic == "s_sethalt" and i.imm:
            raise unsupported(i, "halt")
        return lambda w: None
    if i.mnemonic in _CONDITIONS:
        return _branch(i, _CONDITIONS[i.mnemonic])
    if i.mnemonic in _BUILDERS:
        return _BUILDERS[i.mnemonic](i)
    if i.encoding == "SMEM":
        return _scalar_memory(i)
    raise unsupported(i)


def handles(i: Instruction) -> bool:
    """Whether this module is responsible for the instruction."""
    return i.encoding in ("SOPP", "SMEM") or i.mnemonic in _BUILDERS


def _branch(i: Instruction, taken: Callable[[Wave], bool]) -> Step:
    def step(w: Wave) -> None:
        if taken(w):
            w.next_pc = i.branch_target(w.pc)

    return step


def _end(i: Instruction) -> Step:
    def step(w: Wave) -> None:
        w.done = True

    return step


def _barrier(i: Instruction) -> Step:
    def step(w: Wave) -> None:
        w.at_barrier = True

    return step


def _trap(i: Instruction) -> Step:
    return lambda w: w.report("trap_instruction", f"the program called s_trap {i.imm} (an assertion, or abort)")


_INTERRUPT = 1


def _message(i: Instruction) -> Step:
    """The message to the host, which answers calls; the others ask for something of the graphics pipeline."""
    if i.imm & 15 != _INTERRUPT:
        raise unsupported(i, f"message {i.imm & 15}")

    def step(w: Wave) -> None:
        if w.group.host is not None and (service := w.group.host.answer()):
            raise unsupported(i, f"service {service} of the host")

    return step


def _get_pc(i: Instruction) -> Step:
    index = i.dst[0].index
    return lambda w: w.write_sgpr(index, w.group.code_base + w.next_pc, 2)


def _jump(i: Instruction) -> Step:
    """s_setpc_b64 and s_swappc_b64; the latter leaves the return address."""
    read, index = scalar_reader(i.src[0]), i.dst[0].index if i.dst else None

    def step(w: Wave) -> None:
        target, here = read(w), w.next_pc
        if index is not None:
            w.write_sgpr(index, w.group.code_base + here, 2)
        w.next_pc = target - w.group.code_base

    return step


def _call(i: Instruction) -> Step:
    index = i.dst[0].index

    def step(w: Wave) -> None:
        w.write_sgpr(index, w.group.code_base + w.next_pc, 2)
        w.next_pc = i.branch_target(w.pc)

    return step


def _field(i: Instruction) -> tuple[int, int, int]:
    """Number, lowest bit and width of the hardware register field in the immediate."""
    return i.imm & 63, i.imm >> 6 & 31, (i.imm >> 11) + 1


def _get_register(i: Instruction) -> Step:
    number, low, count = _field(i)
    if number not in (MODE, HW_ID, XCC_ID):
        raise unsupported(i, f"hardware register {number}")
    index, mask = i.dst[0].index, (1 << count) - 1

    def step(w: Wave) -> None:
        value = {MODE: w.mode, HW_ID: w.index & 15, XCC_ID: w.group.xcc}[number]
        w.write_sgpr(index, value >> low & mask)

    return step


def _set_register(i: Instruction) -> Step:
    number, low, count = _field(i)
    if number != MODE:
        raise unsupported(i, f"hardware register {number}")
    mask = ((1 << count) - 1) << low & 0xFFFFFFFF
    if mask & ~_WRITABLE_MODE:
        raise unsupported(i, f"MODE bits {mask & ~_WRITABLE_MODE:#x}")
    read = scalar_reader(i.src[0])

    def step(w: Wave) -> None:
        w.mode = (w.mode & ~mask) | (read(w) << low & mask)

    return step


def _index_on(i: Instruction) -> Step:
    """Vector registers indexed by a scalar: the index goes to M0[7:0], the operands it applies to are in M0[15:12]."""
    read = scalar_reader(i.src[0])

    def step(w: Wave) -> None:
        w.write_sgpr(M0, (w.m0 & ~0xF0FF) | (read(w) & 0xFF) | (i.imm & 15) << 12)
        w.index_mode = True

    return step


def _index_off(i: Instruction) -> Step:
    def step(w: Wave) -> None:
        w.index_mode = False

    return step


def _index_mode(i: Instruction) -> Step:
    return lambda w: w.write_sgpr(M0, (w.m0 & ~0xF000) | (i.imm & 15) << 12)


def _index_value(i: Instruction) -> Step:
    read = scalar_reader(i.src[0])
    return lambda w: w.write_sgpr(M0, (w.m0 & ~0xFF) | (read(w) & 0xFF))


def _time(i: Instruction) -> Step:
    index = i.dst[0].index
    return lambda w: w.write_sgpr(index, w.group.clock, 2)


def _scalar_memory(i: Instruction) -> Step:
    """s_load, s_buffer_load and their stores. The two low address bits are ignored."""
    assert i.saddr is not None
    buffer, store = "buffer" in i.mnemonic, "_store_" in i.mnemonic
    target = (i.src if store else i.dst)[0]
    base, dwords = scalar_reader(i.saddr), target.dwords
    soffset = scalar_reader(i.soffset) if i.soffset is not None else None

    def step(w: Wave) -> None:
        descriptor = base(w)
        offset = i.offset + (soffset(w) if soffset else 0)
        start = descriptor & 0xFFFFFFFFFFFF if buffer else descriptor
        usable = dwords
        if buffer:
            usable = max(0, min(dwords, ((descriptor >> 64 & 0xFFFFFFFF) - offset) // 4)) if offset >= 0 else 0
        address = (start + offset) & 0xFFFFFFFFFFFFFFFC
        if store:
            raw = w.read_sgpr(target.index, usable).to_bytes(4 * usable, "little") if usable else b""
            _scalar_store(w, address, raw)
            return
        raw = _scalar_load(w, address, 4 * usable) + bytes(4 * (dwords - usable))
        w.write_sgpr(target.index, int.from_bytes(raw, "little"), dwords)

    return step


_FIRST = np.arange(LANES) == 0


def _scalar_load(w: Wave, address: int, size: int) -> bytes:
    if size == 0:
        return b""
    result: bytes = load_global(w, np.full(LANES, address, np.uint64), size, _FIRST)[0].tobytes()
    return result


def _scalar_store(w: Wave, address: int, raw: bytes) -> None:
    if raw:
        data = np.zeros((LANES, len(raw)), np.uint8)
        data[0] = np.frombuffer(raw, np.uint8)
        store_global(w, np.full(LANES, address, np.uint64), data, _FIRST)


_BUILDERS: dict[str, Callable[[Instruction], Step]] = {
    "s_endpgm": _end,
    "s_endpgm_saved": _end,
    "s_barrier": _barrier,
    "s_trap": _trap,
    "s_sendmsg": _message,
    "s_getpc_b64": _get_pc,
    "s_setpc_b64": _jump,
    "s_swappc_b64": _jump,
    "s_call_b64": _call,
    "s_getreg_b32": _get_register,
    "s_setreg_b32": _set_register,
    "s_setreg_imm32_b32": _set_register,
    "s_set_gpr_idx_on": _index_on,
    "s_set_gpr_idx_off": _index_off,
    "s_set_gpr_idx_mode": _index_mode,
    "s_set_gpr_idx_idx": _index_value,
    "s_memtime": _time,
    "s_memrealtime": _time,
}
