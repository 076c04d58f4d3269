"""Bytes to `Instruction`, driven by the opcode tables. One function per encoding; no disassembler is needed at run time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sandbox.emulator.constants import LITERAL, inline_constant, literal_constant
from sandbox.emulator.instruction import M0, VCC_LO, DecodeError, Dpp, Instruction, Operand, Sdwa
from sandbox.emulator.opcodes import ARCHS, TYPES, Opcode, opcodes

_SDWA_CODE, _DPP_CODE = 249, 250
_SPECIAL = frozenset({235, 236, 237, 238, 251, 252, 253})
_VCC = Operand("sgpr", VCC_LO, 2, "mask")
_F8F6F4_DWORDS = {0: 8, 1: 8, 2: 6, 3: 6, 4: 4}


def _field(word: int, low: int, count: int) -> int:
    return (word >> low) & ((1 << count) - 1)


def _signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> (bits - 1) else value


class _Window:
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


def scalar_register(window: _Window, index: int, dwords: int, type_name: str) -> Operand:
    """A register of the scalar file; raises `DecodeError` where it would run past the end."""
    if index + dwords > 128:
        raise window.fail(f"scalar register {index} of {dwords} dwords runs past the file")
    return Operand("sgpr", index, dwords, type_name)


def _vgpr(index: int, type_name: str, acc: bool = False, dwords: int = 0) -> Operand:
    return Operand("agpr" if acc else "vgpr", index, dwords or TYPES[type_name], type_name)


def _sop2(w: _Window) -> Instruction:
    op = _field(w.word, 23, 7)
    row = w.row("SOP2", op)
    src = (w.source(_field(w.word, 0, 8), row.src[0]), w.source(_field(w.word, 8, 8), row.src[1]))
    return _scalar(w, "SOP2", op, row, src)


def _sop1(w: _Window) -> Instruction:
    op = _field(w.word, 8, 8)
    row = w.row("SOP1", op)
    src = (w.source(_field(w.word, 0, 8), row.src[0]),) if row.src else ()
    return _scalar(w, "SOP1", op, row, src)


def _sopc(w: _Window) -> Instruction:
    op = _field(w.word, 16, 7)
    row = w.row("SOPC", op)
    if row.src[1] == "imm4":
        return Instruction(row.mnemonic, "SOPC", op, 4, imm=_field(w.word, 8, 8))
    src = (w.source(_field(w.word, 0, 8), row.src[0]), w.source(_field(w.word, 8, 8), row.src[1]))
    return Instruction(row.mnemonic, "SOPC", op, 4 + w.literal_size, src=src)


def _scalar(w: _Window, encoding: str, op: int, row: Opcode, src: tuple[Operand, ...]) -> Instruction:
    dst = tuple(scalar_register(w, _field(w.word, 16, 7), TYPES[t], t) for t in row.dst)
    return Instruction(row.mnemonic, encoding, op, 4 + w.literal_size, dst=dst, src=src)


def _sopk(w: _Window) -> Instruction:
    op = _field(w.word, 23, 5)
    row = w.row("SOPK", op)
    index = _field(w.word, 16, 7)
    dst = tuple(scalar_register(w, index, TYPES[t], t) for t in row.dst)
    src: list[Operand] = []
    for t in row.src:
        if t == "k32":
            src.append(w.literal("b32"))
        else:
            src.append(dst[0] if t == "acc" else scalar_register(w, index, TYPES[t], t))
    return Instruction(row.mnemonic, "SOPK", op, 4 + w.literal_size, dst=dst, src=tuple(src), imm=w.word & 0xFFFF)


def _sopp(w: _Window) -> Instruction:
    op = _field(w.word, 16, 7)
    return Instruction(w.row("SOPP", op).mnemonic, "SOPP", op, 4, imm=w.word & 0xFFFF)


def _smem(w: _Window) -> Instruction:
    q = w.qword()
    op = _field(q, 18, 8)
    row = w.row("SMEM", op)
    data = _field(q, 6, 7)
    dst = tuple(scalar_register(w, data, TYPES[t], t) for t in row.dst)
    src = tuple(scalar_register(w, data, TYPES[t], t) for t in row.src[1:])
    base = row.dst or row.src
    if not row.src:
        return Instruction(row.mnemonic, "SMEM", op, 8, dst=dst, src=src)
    saddr = scalar_register(w, _field(q, 0, 6) * 2, TYPES[row.src[0]], row.src[0]) if base else None
    soffset, offset = None, 0
    if _field(q, 17, 1):
        offset = _signed(_field(q, 32, 21), 21)
        if _field(q, 14, 1):
            soffset = scalar_register(w, _field(q, 57, 7), 1, "b32")
    else:
        low = _field(q, 57, 7) if _field(q, 14, 1) else _field(q, 32, 7)
        soffset = scalar_register(w, low, 1, "b32")
    flags = {"sc0": bool(_field(q, 16, 1)), "nt": bool(_field(q, 15, 1))}
    return Instruction(row.mnemonic, "SMEM", op, 8, dst, src, saddr=saddr, soffset=soffset, offset=offset, **flags)


def _short_dst(w: _Window, row: Opcode, index: int) -> tuple[Operand, ...]:
    out = []
    for t in row.dst:
        if t in ("vcc", "mask"):
            out.append(_VCC)
        elif t == "s32":
            out.append(scalar_register(w, index & 0x7F, 1, "b32"))
        elif t == "a32":
            out.append(_vgpr(index, "b32", acc=True))
        else:
            out.append(_vgpr(index, t))
    return tuple(out)


def _short_src(w: _Window, row: Opcode, first: Operand | None, second: int, dst: tuple[Operand, ...]) -> list[Operand]:
    """Sources of a VOP1, VOP2 or VOPC form: source 0 is decoded already, source 1 is a VGPR number."""
    out: list[Operand] = []
    for i, t in enumerate(row.src):
        if t in ("k16", "k32"):
            out.append(w.literal({"k16": "f16", "k32": "f32"}[t]))
        elif t in ("vcc", "vccr"):
            out.append(_VCC)
        elif t == "acc":
            out.append(replace(dst[0], type=dst[0].type))
        elif i == 0 and first is not None:
            out.append(first)
        else:
            out.append(_vgpr(second, t))
    return out


def _vector_short(w: _Window, encoding: str, op: int, index: int, second: int) -> Instruction:
    row = w.row(encoding, op)
    code = _field(w.word, 0, 9)
    dst = _short_dst(w, row, index)
    if not row.src:
        return Instruction(row.mnemonic, encoding, op, 4, dst=dst)
    if code == _SDWA_CODE:
        return _sdwa(w, encoding, op, row, dst, second)
    if code == _DPP_CODE:
        return _dpp(w, encoding, op, row, dst, second)
    first_type = row.src[0]
    if first_type == "a32":
        first = _vgpr(code & 0xFF, "b32", acc=True)
    else:
        first = w.source(code, first_type)
    src = _short_src(w, row, first, second, dst)
    if first.kind == "literal" and any(t in ("k16", "k32") for t in row.src):
        src = [w.literal(first_type) if s is first else s for s in src]
    return Instruction(row.mnemonic, encoding, op, 4 + w.literal_size, dst=dst, src=tuple(src))


def _sdwa(w: _Window, encoding: str, op: int, row: Opcode, dst: tuple[Operand, ...], second: int) -> Instruction:
    if "sdwa" not in row.properties:
        raise w.fail(f"{row.mnemonic} has no SDWA form")
    q = w.qword() >> 32

    def reg(index: int, scalar: int, t: str) -> Operand:
        return scalar_register(w, index, TYPES[t], t) if scalar else _vgpr(index, t)

    first = reg(_field(q, 0, 8), _field(q, 23, 1), row.src[0])
    src = _short_src(w, row, first, second, dst)
    if len(row.src) > 1 and row.src[1] not in ("acc", "vcc"):
        src[1] = reg(second, _field(q, 31, 1), row.src[1])
    dst_sel, dst_unused, clamp, omod = _field(q, 8, 3), _field(q, 11, 2), bool(_field(q, 13, 1)), _field(q, 14, 2)
    if encoding == "VOPC":
        dst = (scalar_register(w, _field(q, 8, 7), 2, "mask"),) if _field(q, 15, 1) else dst
        dst_sel, dst_unused, clamp, omod = 6, 0, False, 0
    sdwa = Sdwa(dst_sel, dst_unused, (_field(q, 16, 3), _field(q, 24, 3)), (bool(_field(q, 19, 1)), bool(_field(q, 27, 1))))
    neg, absolute = _field(q, 20, 1) | _field(q, 28, 1) << 1, _field(q, 21, 1) | _field(q, 29, 1) << 1
    return Instruction(
        row.mnemonic, encoding, op, 8, dst, tuple(src), neg=neg, abs=absolute, clamp=clamp, omod=omod, sdwa=sdwa
    )


def _dpp(w: _Window, encoding: str, op: int, row: Opcode, dst: tuple[Operand, ...], second: int) -> Instruction:
    if "dpp" not in row.properties:
        raise w.fail(f"{row.mnemonic} has no DPP form")
    q = w.qword() >> 32
    src = _short_src(w, row, _vgpr(_field(q, 0, 8), row.src[0]), second, dst)
    dpp = Dpp(_field(q, 8, 9), _field(q, 28, 4), _field(q, 24, 4), bool(_field(q, 19, 1)))
    neg, absolute = _field(q, 20, 1) | _field(q, 22, 1) << 1, _field(q, 21, 1) | _field(q, 23, 1) << 1
    return Instruction(row.mnemonic, encoding, op, 8, dst, tuple(src), neg=neg, abs=absolute, dpp=dpp)


def _vop1(w: _Window) -> Instruction:
    op = _field(w.word, 9, 8)
    return _vector_short(w, "VOP1", op, _field(w.word, 17, 8), 0)


def _vop2(w: _Window) -> Instruction:
    return _vector_short(w, "VOP2", _field(w.word, 25, 6), _field(w.word, 17, 8), _field(w.word, 9, 8))


def _vopc(w: _Window) -> Instruction:
    return _vector_short(w, "VOPC", _field(w.word, 17, 8), 0, _field(w.word, 9, 8))


def _vop3(w: _Window) -> Instruction:
    q = w.qword()
    op = _field(q, 16, 10)
    row = w.row("VOP3", op)
    two_results = len(row.dst) == 2
    index = _field(q, 0, 8)
    dst: list[Operand] = []
    for i, t in enumerate(row.dst):
        if t in ("mask", "vcc"):
            dst.append(scalar_register(w, _field(q, 8, 7) if i else index & 0x7F, 2, "mask"))
        elif t == "s32":
            dst.append(scalar_register(w, index & 0x7F, 1, "b32"))
        else:
            dst.append(_vgpr(index, t))
    src: list[Operand] = []
    for code, t in zip((_field(q, 32, 9), _field(q, 41, 9), _field(q, 50, 9)), row.src, strict=False):
        if t == "acc":
            src.append(dst[0])
        else:
            src.append(w.source(code, {"vcc": "mask", "s32": "b32"}.get(t, t), literal=False))
    if "vccr" in row.src:
        src.append(_VCC)
    if row.mnemonic.startswith("v_bitop3"):
        table = _field(q, 61, 3) | _field(q, 8, 3) << 3 | _field(q, 59, 2) << 6
        return Instruction(row.mnemonic, "VOP3", op, 8, tuple(dst), tuple(src), op_sel=_field(q, 11, 4), imm=table)
    return Instruction(
        row.mnemonic,
        "VOP3",
        op,
        8,
        tuple(dst),
        tuple(src),
        neg=_field(q, 61, 3),
        abs=0 if two_results else _field(q, 8, 3),
        clamp=bool(_field(q, 15, 1)),
        omod=_field(q, 59, 2),
        op_sel=0 if two_results else _field(q, 11, 4),
        merge="merge" in row.properties,
    )


def _vop3p(w: _Window) -> Instruction:
    q = w.qword()
    op = _field(q, 16, 7)
    if op == 0x2C:
        return _scaled_mfma(w, q)
    if op in w.table["MAI"]:
        return _mai(w, q, op)
    row = w.row("VOP3P", op)
    op_sel_hi = _field(q, 59, 2) | _field(q, 14, 1) << 2
    src: list[Operand] = []
    for i, t in enumerate(row.src):
        if t == "mix":
            t = "f16" if op_sel_hi >> i & 1 else "f32"
        src.append(w.source(_field(q, 32 + 9 * i, 9), t, literal=False))
    return Instruction(
        row.mnemonic,
        "VOP3P",
        op,
        8,
        (_vgpr(_field(q, 0, 8), row.dst[0]),),
        tuple(src),
        neg=_field(q, 61, 3),
        neg_hi=_field(q, 8, 3),
        clamp=bool(_field(q, 15, 1)),
        op_sel=_field(q, 11, 3),
        op_sel_hi=op_sel_hi,
        merge="merge" in row.properties,
    )


def _mai(w: _Window, q: int, op: int) -> Instruction:
    row = w.row("MAI", op)
    index, acc_cd = _field(q, 0, 8), bool(_field(q, 15, 1))
    if row.dst == ("a32",):
        src0 = w.source(_field(q, 32, 9), "b32", literal=False)
        return Instruction(row.mnemonic, "MAI", op, 8, (_vgpr(index, "b32", acc=True),), (src0,))
    if row.src == ("a32",):
        return Instruction(
            row.mnemonic, "MAI", op, 8, (_vgpr(index, "b32"),), (_vgpr(_field(q, 32, 8), "b32", acc=True),)
        )
    cbsz, blgp = _field(q, 8, 3), _field(q, 61, 3)
    narrow = row.mnemonic.endswith("_f8f6f4")
    if narrow and (cbsz > 4 or blgp > 4):
        raise w.fail(f"{row.mnemonic} has no matrix format {max(cbsz, blgp)}")
    src: list[Operand] = []
    for i, control in ((0, cbsz), (1, blgp)):
        code = _field(q, 32 + 9 * i, 9)
        if code < 256:
            raise w.fail(f"{row.mnemonic} needs vector registers")
        dwords = _F8F6F4_DWORDS[control] if narrow else TYPES[row.src[i]]
        src.append(_vgpr(code - 256, row.src[i], bool(_field(q, 59 + i, 1)), dwords))
    third = w.source(_field(q, 50, 9), row.src[2], literal=False)
    if third.kind == "vgpr" and acc_cd and not row.mnemonic.startswith("v_smfmac"):
        third = replace(third, kind="agpr")
    src.append(third)
    dst = (_vgpr(index, row.dst[0], acc_cd),)
    return Instruction(row.mnemonic, "MAI", op, 8, dst, tuple(src), cbsz=cbsz, abid=_field(q, 11, 4), blgp=blgp)


def _scaled_mfma(w: _Window, q: int) -> Instruction:
    """The 16-byte form: a prefix with the two scale operands, then the matrix instruction."""
    if w.have < 4:
        raise w.fail("truncated instruction")
    second = w.words[2] | w.words[3] << 32
    op = _field(second, 16, 7)
    if _field(second, 23, 9) != 0b110100111 or not w.table["MAI"].get(op, Opcode("", (), (), frozenset())).mnemonic.endswith(
        "_f8f6f4"
    ):
        raise w.fail("scale prefix without a matrix instruction that takes scales")
    inner = _mai(w, second, op)
    scale = tuple(w.source(_field(q, 32 + 9 * i, 9), "b32", literal=False) for i in range(2))
    return replace(
        inner,
        mnemonic=inner.mnemonic.replace("v_mfma_", "v_mfma_scale_"),
        size=16,
        scale=scale,
        abid=0,
        op_sel=_field(q, 11, 2),
        op_sel_hi=_field(q, 59, 2),
        neg=_field(q, 61, 3),
        neg_hi=_field(q, 8, 3),
    )


def _ds(w: _Window) -> Instruction:
    q = w.qword()
    op = _field(q, 17, 8)
    row = w.row("DS", op)
    acc = bool(_field(q, 25, 1))
    data = [t for t in row.src if t != "addr"]
    two = any(part in row.mnemonic for part in ("read2", "write2", "wrxchg2"))
    first, second = _field(q, 0, 8), _field(q, 8, 8)
    return Instruction(
        row.mnemonic,
        "DS",
        op,
        8,
        tuple(_vgpr(_field(q, 56, 8), t, acc) for t in row.dst),
        tuple(_vgpr(_field(q, 40 + 8 * i, 8), t, acc) for i, t in enumerate(data)),
        vaddr=_vgpr(_field(q, 32, 8), "b32") if "addr" in row.src else None,
        offset=first if two else first | second << 8,
        offset1=second if two else 0,
        gds=bool(_field(q, 16, 1)),
    )


def _flat(w: _Window) -> Instruction:
    q = w.qword()
    encoding = ("FLAT", "SCRATCH", "GLOBAL", "")[_field(q, 14, 2)]
    if not encoding:
        raise w.fail("FLAT segment 3 is reserved")
    op = _field(q, 18, 7)
    row = w.row(encoding, op)
    acc, sc0 = bool(_field(q, 55, 1)), bool(_field(q, 16, 1))
    saddr_index, uses_vaddr, address_dwords = _field(q, 48, 7), True, 2
    saddr = None
    if encoding != "FLAT" and saddr_index != 0x7F:
        saddr = scalar_register(w, saddr_index, 1 if encoding == "SCRATCH" else 2, "b32")
        address_dwords = 1
    if encoding == "SCRATCH":
        uses_vaddr, address_dwords = bool(_field(q, 13, 1)), 1
    returns = "atomic" not in row.properties or sc0
    return Instruction(
        row.mnemonic,
        encoding,
        op,
        8,
        tuple(_vgpr(_field(q, 56, 8), t, acc) for t in row.dst) if returns else (),
        tuple(_vgpr(_field(q, 40, 8), t, acc) for t in row.src),
        vaddr=_vgpr(_field(q, 32, 8), "b64" if address_dwords == 2 else "b32") if uses_vaddr else None,
        saddr=saddr,
        offset=_field(q, 0, 12) if encoding == "FLAT" else _signed(_field(q, 0, 13), 13),
        sc0=sc0,
        nt=bool(_field(q, 17, 1)),
        sc1=bool(_field(q, 25, 1)),
        lds="lds" in row.properties,
        merge="merge" in row.properties,
    )


def _mubuf(w: _Window) -> Instruction:
    q = w.qword()
    op = _field(q, 18, 7)
    row = w.row("MUBUF", op)
    acc, sc0, lds = bool(_field(q, 55, 1)), bool(_field(q, 14, 1)), bool(_field(q, 16, 1))
    offen, idxen = bool(_field(q, 12, 1)), bool(_field(q, 13, 1))
    data = _field(q, 40, 8)
    returns = "atomic" not in row.properties or sc0
    addressed = bool(row.dst or row.src)
    vaddr = _vgpr(_field(q, 32, 8), "b64" if offen and idxen else "b32") if offen or idxen else None
    return Instruction(
        row.mnemonic,
        "MUBUF",
        op,
        8,
        tuple(_vgpr(data, t, acc) for t in row.dst) if returns and not lds else (),
        tuple(_vgpr(data, t, acc) for t in row.src),
        vaddr=vaddr if addressed else None,
        saddr=scalar_register(w, _field(q, 48, 5) * 4, 4, "b128") if addressed else None,
        soffset=w.source(_field(q, 56, 8), "b32", literal=False) if addressed else None,
        offset=_field(q, 0, 12),
        sc0=sc0,
        sc1=bool(_field(q, 15, 1)),
        nt=bool(_field(q, 17, 1)),
        offen=offen,
        idxen=idxen,
        lds=lds,
        merge="merge" in row.properties,
    )


def _select(word: int) -> Callable[[_Window], Instruction] | None:
    """The decoder of an encoding, from the leading bits of the first dword."""
    if not word >> 31:
        return {0b0111110: _vopc, 0b0111111: _vop1}.get(word >> 25, _vop2)
    if word >> 30 == 0b10:
        scalar = {0b101111101: _sop1, 0b101111110: _sopc, 0b101111111: _sopp}
        return scalar.get(word >> 23) or (_sopk if word >> 28 == 0b1011 else _sop2)
    if word >> 23 == 0b110100111:
        return _vop3p
    six = {0b110000: _smem, 0b110100: _vop3, 0b110110: _ds, 0b110111: _flat, 0b111000: _mubuf}
    return six.get(word >> 26)


def decode(code: bytes | memoryview, offset: int, arch: str) -> Instruction:
    """The instruction at `code[offset:]` for `gfx942` or `gfx950`.

    Raises `DecodeError` for bytes that are no instruction there, `Unsupported` for the few encodings whose meaning is
    not settled (a float constant in a 16-bit integer operand). Never reads outside `code`.
    """
    if arch not in ARCHS:
        raise ValueError(f"no opcode table for {arch}")
    window = _Window(code, offset, opcodes(arch))
    decoder = _select(window.word)
    if decoder is None:
        raise window.fail("unknown encoding")
    instruction = decoder(window)
    if instruction.size > 4 * window.have:
        raise window.fail("truncated instruction")
    if any(o.kind == "sgpr" and o.index == M0 and o.dwords > 1 for o in instruction.dst):
        raise window.fail("m0 is one dword wide")
    return instruction
