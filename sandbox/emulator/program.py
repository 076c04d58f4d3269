"""A kernel's instructions found by following its control flow, translated for the compiled core."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from sandbox.emulator.decoder import decode
from sandbox.emulator.instruction import DecodeError, Instruction, Operand, Unsupported
from sandbox.emulator.machine import VGPRS
from sandbox.emulator.records import RECORD_BYTES, Translator, operations

_ENDS = frozenset({"s_endpgm", "s_setpc_b64", "s_branch", "s_endpgm_saved"})
_INDIRECT = frozenset({"s_setpc_b64", "s_swappc_b64"})
_MAX_INSTRUCTIONS = 1 << 20


@dataclass(frozen=True)
class Program:
    """What the compiled core runs. Arrays are read-only and shared between launches."""

    instructions: tuple[tuple[int, Instruction | None], ...]
    """Image offset and instruction of each record; None where no instruction could be decoded."""
    records: npt.NDArray[np.uint8]
    constants: npt.NDArray[np.uint32]
    record_at: npt.NDArray[np.int32]
    entry: int
    vector_rows: int
    vgprs: int
    """Rows of VGPRs; those of AccVGPRs follow."""
    unsupported: dict[int, Unsupported]


def _reachable(image: bytes, arch: str, entry: int, functions: tuple[int, ...]) -> dict[int, Instruction | Unsupported]:
    """Image offset to instruction, from the entry along branches and calls; indirect jumps may reach any function."""
    found: dict[int, Instruction | Unsupported] = {}
    waiting, indirect = [entry], False
    while waiting:
        pc = waiting.pop()
        while pc not in found and len(found) < _MAX_INSTRUCTIONS:
            try:
                i = decode(image, pc, arch)
            except DecodeError as e:
                found[pc] = Unsupported("decode", str(e))
                break
            except Unsupported as e:
                found[pc] = e
                break
            found[pc] = i
            if i.mnemonic in _INDIRECT and not indirect:
                indirect = True
                waiting += functions
            if i.mnemonic == "s_branch" or i.mnemonic.startswith(("s_cbranch_", "s_call_")):
                target = i.branch_target(pc)
                if 0 <= target < len(image):
                    waiting.append(target)
            if i.mnemonic in _ENDS:
                break
            pc += i.size
    return found


def _operands(i: Instruction) -> list[Operand]:
    return [*i.dst, *i.src, *i.scale, *(o for o in (i.vaddr, i.saddr, i.soffset) if o is not None)]


def _vector_registers(instructions: list[Instruction]) -> tuple[int, int]:
    """How many VGPRs and AccVGPRs a program names."""
    highest = {"vgpr": 1, "agpr": 0}
    for i in instructions:
        for o in _operands(i):
            if o.kind in highest:
                highest[o.kind] = max(highest[o.kind], o.index + o.dwords)
    return highest["vgpr"], highest["agpr"]


@lru_cache(maxsize=64)
def build_program(library: ctypes.CDLL, image: bytes, arch: str, entry: int, functions: tuple[int, ...]) -> Program:
    """The program that starts at image offset `entry`. `functions` are the offsets that indirect jumps may reach."""
    found = _reachable(image, arch, entry, functions)
    offsets = sorted(found)
    number = {pc: n for n, pc in enumerate(offsets)}
    decoded = [i for i in found.values() if isinstance(i, Instruction)]
    vgprs, agprs = _vector_registers(decoded)
    if any(i.mnemonic.startswith("s_set_gpr_idx") for i in decoded):
        vgprs = VGPRS  # any of them may be reached through the index register
    translator = Translator(operations(library), vgprs)
    # Behind an instruction that falls through lies its successor; the last record stops what runs off the end.
    stop = Instruction("end_of_code", "", 0, 4)
    parts: list[bytes] = []
    instructions: list[tuple[int, Instruction | None]] = []
    for n, pc in enumerate(offsets):
        item = found[pc]
        if isinstance(item, Unsupported):
            parts.append(translator.record(n, pc, stop, -1))
            translator.unsupported[n] = item
            instructions.append((pc, None))
            continue
        if item.mnemonic not in _ENDS and number.get(pc + item.size) != n + 1:  # a jump into the middle of this one
            parts.append(translator.record(n, pc, stop, -1))
            translator.unsupported[n] = Unsupported("decode", f"overlapping instructions at +{pc:#x}")
            instructions.append((pc, item))
            continue
        target = number.get(item.branch_target(pc), len(offsets)) if item.encoding in ("SOPP", "SOPK") else -1
        parts.append(translator.record(n, pc, item, target))
        instructions.append((pc, item))
    parts.append(translator.record(len(offsets), len(image), stop, -1))
    instructions.append((len(image), None))
    records = np.frombuffer(b"".join(parts), np.uint8).copy()
    library.ws_bind(ctypes.c_void_p(records.ctypes.data), ctypes.c_uint32(len(records) // RECORD_BYTES))
    record_at = np.full(len(image) // 4 + 1, -1, np.int32)
    for pc, n in number.items():
        record_at[pc // 4] = n
    return Program(
        instructions=tuple(instructions),
        records=records,
        constants=translator.constant_lanes(),
        record_at=record_at,
        entry=number[entry],
        vector_rows=vgprs + agprs + 2,
        vgprs=vgprs,
        unsupported=translator.unsupported,
    )
