"""Decoders of the vector ALU encodings: VOP1, VOP2, VOPC with their SDWA and DPP forms, and VOP3."""

from __future__ import annotations

from dataclasses import replace

from sandbox.emulator.encoding import DPP_CODE, SDWA_CODE, VCC, Window, field, scalar_register, vgpr
from sandbox.emulator.instruction import Dpp, Instruction, Operand, Sdwa
from sandbox.emulator.opcodes import TYPES, Opcode


def _short_dst(w: Window, row: Opcode, index: int) -> tuple[Operand, ...]:
    out = []
    for t in row.dst:
        if t in ("vcc", "mask"):
            out.append(VCC)
        elif t == "s32":
            out.append(scalar_register(w, index & 0x7F, 1, "b32"))
        elif t == "a32":
            out.append(vgpr(index, "b32", acc=True))
        else:
            out.append(vgpr(index, t))
    return tuple(out)


def _short_src(w: Window, row: Opcode, first: Operand | None, second: int, dst: tuple[Operand, ...]) -> list[Operand]:
    """Sources of a VOP1, VOP2 or VOPC form: source 0 is decoded already, source 1 is a VGPR number."""
    out: list[Operand] = []
    for i, t in enumerate(row.src):
        if t in ("k16", "k32"):
            out.append(w.literal({"k16": "f16", "k32": "f32"}[t]))
        elif t in ("vcc", "vccr"):
            out.append(VCC)
        elif t == "acc":
            out.append(replace(dst[0], type=dst[0].type))
        elif i == 0 and first is not None:
            out.append(first)
        else:
            out.append(vgpr(second, t))
    return out


def _vector_short(w: Window, encoding: str, op: int, index: int, second: int) -> Instruction:
    row = w.row(encoding, op)
    code = field(w.word, 0, 9)
    dst = _short_dst(w, row, index)
    if not row.src:
        return Instruction(row.mnemonic, encoding, op, 4, dst=dst)
    if code == SDWA_CODE:
        return _sdwa(w, encoding, op, row, dst, second)
    if code == DPP_CODE:
        return _dpp(w, encoding, op, row, dst, second)
    first_type = row.src[0]
    if first_type == "a32":
        first = vgpr(code & 0xFF, "b32", acc=True)
    else:
        first = w.source(code, first_type)
    src = _short_src(w, row, first, second, dst)
    if first.kind == "literal" and any(t in ("k16", "k32") for t in row.src):
        src = [w.literal(first_type) if s is first else s for s in src]
    return Instruction(row.mnemonic, encoding, op, 4 + w.literal_size, dst=dst, src=tuple(src))


def _sdwa(w: Window, encoding: str, op: int, row: Opcode, dst: tuple[Operand, ...], second: int) -> Instruction:
    if "sdwa" not in row.properties:
        raise w.fail(f"{row.mnemonic} has no SDWA form")
    q = w.qword() >> 32

    def reg(index: int, scalar: int, t: str) -> Operand:
        return scalar_register(w, index, TYPES[t], t) if scalar else vgpr(index, t)

    first = reg(field(q, 0, 8), field(q, 23, 1), row.src[0])
    src = _short_src(w, row, first, second, dst)
    if len(row.src) > 1 and row.src[1] not in ("acc", "vcc"):
        src[1] = reg(second, field(q, 31, 1), row.src[1])
    dst_sel, dst_unused, clamp, omod = field(q, 8, 3), field(q, 11, 2), bool(field(q, 13, 1)), field(q, 14, 2)
    if encoding == "VOPC":
        dst = (scalar_register(w, field(q, 8, 7), 2, "mask"),) if field(q, 15, 1) else dst
        dst_sel, dst_unused, clamp, omod = 6, 0, False, 0
    if dst_sel == 7 or dst_unused == 3 or field(q, 16, 3) == 7 or field(q, 24, 3) == 7:
        raise w.fail("reserved SDWA selection")
    sdwa = Sdwa(dst_sel, dst_unused, (field(q, 16, 3), field(q, 24, 3)), (bool(field(q, 19, 1)), bool(field(q, 27, 1))))
    neg, absolute = field(q, 20, 1) | field(q, 28, 1) << 1, field(q, 21, 1) | field(q, 29, 1) << 1
    return Instruction(
        row.mnemonic, encoding, op, 8, dst, tuple(src), neg=neg, abs=absolute, clamp=clamp, omod=omod, sdwa=sdwa
    )


def _dpp(w: Window, encoding: str, op: int, row: Opcode, dst: tuple[Operand, ...], second: int) -> Instruction:
    if "dpp" not in row.properties:
        raise w.fail(f"{row.mnemonic} has no DPP form")
    q = w.qword() >> 32
    src = _short_src(w, row, vgpr(field(q, 0, 8), row.src[0]), second, dst)
    dpp = Dpp(field(q, 8, 9), field(q, 28, 4), field(q, 24, 4), bool(field(q, 19, 1)))
    neg, absolute = field(q, 20, 1) | field(q, 22, 1) << 1, field(q, 21, 1) | field(q, 23, 1) << 1
    return Instruction(row.mnemonic, encoding, op, 8, dst, tuple(src), neg=neg, abs=absolute, dpp=dpp)


def vop1(w: Window) -> Instruction:
    op = field(w.word, 9, 8)
    return _vector_short(w, "VOP1", op, field(w.word, 17, 8), 0)


def vop2(w: Window) -> Instruction:
    return _vector_short(w, "VOP2", field(w.word, 25, 6), field(w.word, 17, 8), field(w.word, 9, 8))


def vopc(w: Window) -> Instruction:
    return _vector_short(w, "VOPC", field(w.word, 17, 8), 0, field(w.word, 9, 8))


def vop3(w: Window) -> Instruction:
    q = w.qword()
    op = field(q, 16, 10)
    row = w.row("VOP3", op)
    two_results = len(row.dst) == 2
    index = field(q, 0, 8)
    dst: list[Operand] = []
    for i, t in enumerate(row.dst):
        if t in ("mask", "vcc"):
            dst.append(scalar_register(w, field(q, 8, 7) if i else index & 0x7F, 2, "mask"))
        elif t == "s32":
            dst.append(scalar_register(w, index & 0x7F, 1, "b32"))
        else:
            dst.append(vgpr(index, t))
    src: list[Operand] = []
    for code, t in zip((field(q, 32, 9), field(q, 41, 9), field(q, 50, 9)), row.src, strict=False):
        if t == "acc":
            src.append(dst[0])
        else:
            src.append(w.source(code, {"vcc": "mask", "s32": "b32"}.get(t, t), literal=False))
    if "vccr" in row.src:
        src.append(VCC)
    if row.mnemonic.startswith("v_bitop3"):
        table = field(q, 61, 3) | field(q, 8, 3) << 3 | field(q, 59, 2) << 6
        return Instruction(row.mnemonic, "VOP3", op, 8, tuple(dst), tuple(src), op_sel=field(q, 11, 4), imm=table)
    return Instruction(
        row.mnemonic,
        "VOP3",
        op,
        8,
        tuple(dst),
        tuple(src),
        neg=field(q, 61, 3),
        abs=0 if two_results else field(q, 8, 3),
        clamp=bool(field(q, 15, 1)),
        omod=field(q, 59, 2),
        op_sel=0 if two_results else field(q, 11, 4),
        merge="merge" in row.properties,
    )
