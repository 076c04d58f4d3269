"""Bytes to `Instruction`, driven by the opcode tables; no disassembler is needed at run time."""

from __future__ import annotations

from collections.abc import Callable

from sandbox.emulator.decode_matrix import vop3p
from sandbox.emulator.decode_memory import ds, flat, mubuf
from sandbox.emulator.decode_scalar import smem, sop1, sop2, sopc, sopk, sopp
from sandbox.emulator.decode_vector import vop1, vop2, vop3, vopc
from sandbox.emulator.encoding import Window
from sandbox.emulator.instruction import Instruction
from sandbox.emulator.opcodes import ARCHS, opcodes


def _select(word: int) -> Callable[[Window], Instruction] | None:
    """The decoder of an encoding, from the leading bits of the first dword."""
    if not word >> 31:
        return {0b0111110: vopc, 0b0111111: vop1}.get(word >> 25, vop2)
    if word >> 30 == 0b10:
        scalar = {0b101111101: sop1, 0b101111110: sopc, 0b101111111: sopp}
        return scalar.get(word >> 23) or (sopk if word >> 28 == 0b1011 else sop2)
    if word >> 23 == 0b110100111:
        return vop3p
    six = {0b110000: smem, 0b110100: vop3, 0b110110: ds, 0b110111: flat, 0b111000: mubuf}
    return six.get(word >> 26)


def decode(code: bytes | memoryview, offset: int, arch: str) -> Instruction:
    """The instruction at `code[offset:]` for `gfx942` or `gfx950`.

    Raises `DecodeError` for bytes that are no instruction there, `Unsupported` for the few encodings whose meaning is
    not settled (a float constant in an unpacked 16-bit integer operand). Never reads outside `code`.
    """
    if arch not in ARCHS:
        raise ValueError(f"no opcode table for {arch}")
    window = Window(code, offset, opcodes(arch))
    decoder = _select(window.word)
    if decoder is None:
        raise window.fail("unknown encoding")
    instruction = decoder(window)
    if instruction.size > 4 * window.have:
        raise window.fail("truncated instruction")
    if any(o.kind in ("vgpr", "agpr") and o.index + o.dwords > 256 for o in instruction.operands):
        raise window.fail("a vector register beyond 255")
    return instruction
