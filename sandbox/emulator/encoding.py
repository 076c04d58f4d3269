"""Reading the fields of one instruction: the window on its bytes, source operands, literals."""

from __future__ import annotations

from sandbox.emulator.constants import LITERAL, inline_constant, literal_constant
from sandbox.emulator.instruction import M0, VCC_LO, DecodeError, Operand
from sandbox.emulator.opcodes import TYPES, Opcode

SDWA_CODE, DPP_CODE = 249, 250
VCC = Operand("sgpr", VCC_LO, 2, "mask")
_SPECIAL = frozenset({235, 236, 237, 238, 251, 252, 253})


def field(word: int, low: int, count: int) -> int:
    return (word >> low) & ((1 << count) - 1)


def signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> (bits - 1) else value


class Window:
    """The bytes from one instruction on: 64-bit view and the literal that may follow."""

    def __init__(self, code: bytes | memoryview, offset: int, table: dict[str, dict[int, Opcode]]) -> None:
        self.offset = offset
        self.table = table
        chunk = bytes(code[offset : offset + 16])
        if len(chunk) < 4:
            raise DecodeError(offset, int.from_bytes(chunk, "little"), "truncated instruction")
        self.have = len(chunk) // 4
        self.words = tuple(int.from_bytes(chunk[i : i + 4].ljust(4, b"\0"), "little") for i in (0, 4, 8, 12))
        self.word = self.words[0]
        self.literal_size = 0

    def fail(self, reason: str) -> DecodeError:
        return DecodeError(self.offset, self.word, reason)

    def row(self, encoding: str, number: int) -> Opcode:
        row = self.table[encoding].get(number)
        if row is None:
            raise self.fail(f"{encoding} has no opcode {number:#x}")
        return row

    def qword(self) -> int:
        if self.have < 2:
            raise self.fail("truncated instruction")
        return self.word | self.words[1] << 32

    def literal(self, type_name: str, at: int = 1) -> Operand:
        if self.have <= at:
            raise self.fail("truncated literal")
        self.literal_size = 4
        return literal_constant(self.words[at], type_name)

    def source(self, code: int, type_name: str, *, literal: bool = True) -> Operand:
        """Operand of a 9-bit source field."""
        dwords = TYPES.get(type_name, 1)
        if code >= 256:
            return Operand("vgpr", code - 256, dwords, type_name)
        if code < 128:
            return scalar_register(self, code, dwords, type_name)
        if code <= 208 or 240 <= code <= 248:
            return inline_constant(code, type_name)
        if code == LITERAL and literal:
            return self.literal(type_name)
        if code in _SPECIAL:
            return Operand("special", code, dwords, type_name)
        raise self.fail(f"source code {code} is reserved")


def scalar_register(window: Window, index: int, dwords: int, type_name: str) -> Operand:
    """A register of the scalar file; raises `DecodeError` where it would run past the end."""
    if index + dwords > 128:
        raise window.fail(f"scalar register {index} of {dwords} dwords runs past the file")
    if index % min(dwords, 4) and dwords in (2, 4, 8, 16):
        raise window.fail(f"scalar register {index} is not aligned for {dwords} dwords")
    if index <= M0 + 1 < index + dwords:
        raise window.fail(f"scalar register {M0 + 1} is reserved")
    return Operand("sgpr", index, dwords, type_name)


def vgpr(index: int, type_name: str, acc: bool = False, dwords: int = 0) -> Operand:
    return Operand("agpr" if acc else "vgpr", index, dwords or TYPES[type_name], type_name)
