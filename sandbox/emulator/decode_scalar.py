"""Decoders of the scalar encodings: SOP1, SOP2, SOPC, SOPK, SOPP and SMEM."""

from __future__ import annotations

from sandbox.emulator.encoding import Window, field, scalar_register, signed
from sandbox.emulator.instruction import Instruction, Operand
from sandbox.emulator.opcodes import TYPES, Opcode


def sop2(w: Window) -> Instruction:
    op = field(w.word, 23, 7)
    row = w.row("SOP2", op)
    src = (w.source(field(w.word, 0, 8), row.src[0]), w.source(field(w.word, 8, 8), row.src[1]))
    return _scalar(w, "SOP2", op, row, src)


def sop1(w: Window) -> Instruction:
    op = field(w.word, 8, 8)
    row = w.row("SOP1", op)
    src = (w.source(field(w.word, 0, 8), row.src[0]),) if row.src else ()
    return _scalar(w, "SOP1", op, row, src)


def sopc(w: Window) -> Instruction:
    op = field(w.word, 16, 7)
    row = w.row("SOPC", op)
    if row.src[1] == "imm4":
        index = w.source(field(w.word, 0, 8), row.src[0])
        return Instruction(row.mnemonic, "SOPC", op, 4 + w.literal_size, src=(index,), imm=field(w.word, 8, 4))
    src = (w.source(field(w.word, 0, 8), row.src[0]), w.source(field(w.word, 8, 8), row.src[1]))
    return Instruction(row.mnemonic, "SOPC", op, 4 + w.literal_size, src=src)


def _scalar(w: Window, encoding: str, op: int, row: Opcode, src: tuple[Operand, ...]) -> Instruction:
    dst = tuple(scalar_register(w, field(w.word, 16, 7), TYPES[t], t) for t in row.dst)
    return Instruction(row.mnemonic, encoding, op, 4 + w.literal_size, dst=dst, src=src)


def sopk(w: Window) -> Instruction:
    op = field(w.word, 23, 5)
    row = w.row("SOPK", op)
    index = field(w.word, 16, 7)
    dst = tuple(scalar_register(w, index, TYPES[t], t) for t in row.dst)
    src: list[Operand] = []
    for t in row.src:
        if t == "k32":
            src.append(w.literal("b32"))
        else:
            src.append(dst[0] if t == "acc" else scalar_register(w, index, TYPES[t], t))
    return Instruction(row.mnemonic, "SOPK", op, 4 + w.literal_size, dst=dst, src=tuple(src), imm=w.word & 0xFFFF)


def sopp(w: Window) -> Instruction:
    op = field(w.word, 16, 7)
    return Instruction(w.row("SOPP", op).mnemonic, "SOPP", op, 4, imm=w.word & 0xFFFF)


def smem(w: Window) -> Instruction:
    q = w.qword()
    op = field(q, 18, 8)
    row = w.row("SMEM", op)
    data = field(q, 6, 7)
    dst = tuple(scalar_register(w, data, TYPES[t], t) for t in row.dst)
    src = tuple(scalar_register(w, data, TYPES[t], t) for t in row.src[1:])
    base = row.dst or row.src
    if not row.src:
        return Instruction(row.mnemonic, "SMEM", op, 8, dst=dst, src=src)
    saddr = scalar_register(w, field(q, 0, 6) * 2, TYPES[row.src[0]], row.src[0]) if base else None
    soffset, offset = None, 0
    if field(q, 17, 1):
        offset = signed(field(q, 32, 21), 21)
        if field(q, 14, 1):
            soffset = scalar_register(w, field(q, 57, 7), 1, "b32")
    else:
        low = field(q, 57, 7) if field(q, 14, 1) else field(q, 32, 7)
        soffset = scalar_register(w, low, 1, "b32")
    sc0, nt = bool(field(q, 16, 1)), bool(field(q, 15, 1))
    return Instruction(
        row.mnemonic, "SMEM", op, 8, dst, src, saddr=saddr, soffset=soffset, offset=offset, sc0=sc0, nt=nt
    )
