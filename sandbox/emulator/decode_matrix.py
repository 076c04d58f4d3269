"""Decoders of packed math and matrix instructions: VOP3P, MAI and the scaled MFMA of gfx950."""

from __future__ import annotations

from dataclasses import replace

from sandbox.emulator.encoding import Window, field, vgpr
from sandbox.emulator.instruction import Instruction, Operand
from sandbox.emulator.opcodes import TYPES

_F8F6F4_DWORDS = {0: 8, 1: 8, 2: 6, 3: 6, 4: 4}
"""Registers of a matrix operand by its cbsz/blgp format: fp8, bf8, fp6, bf6, fp4."""
_SCALE_PREFIX = 0x2C


def vop3p(w: Window) -> Instruction:
    q = w.qword()
    op = field(q, 16, 7)
    if op == _SCALE_PREFIX:
        return _scaled_mfma(w, q)
    if op in w.table["MAI"]:
        return _mai(w, q, op)
    row = w.row("VOP3P", op)
    op_sel_hi = field(q, 59, 2) | field(q, 14, 1) << 2
    src: list[Operand] = []
    for i, t in enumerate(row.src):
        if t == "mix":
            t = "f16" if op_sel_hi >> i & 1 else "f32"
        src.append(w.source(field(q, 32 + 9 * i, 9), t, literal=False))
    return Instruction(
        row.mnemonic,
        "VOP3P",
        op,
        8,
        (vgpr(field(q, 0, 8), row.dst[0]),),
        tuple(src),
        neg=field(q, 61, 3),
        neg_hi=field(q, 8, 3),
        clamp=bool(field(q, 15, 1)),
        op_sel=field(q, 11, 3),
        op_sel_hi=op_sel_hi,
        merge="merge" in row.properties,
    )


def _mai(w: Window, q: int, op: int) -> Instruction:
    row = w.row("MAI", op)
    index, acc_cd = field(q, 0, 8), bool(field(q, 15, 1))
    if row.dst == ("a32",):
        src0 = w.source(field(q, 32, 9), "b32", literal=False)
        return Instruction(row.mnemonic, "MAI", op, 8, (vgpr(index, "b32", acc=True),), (src0,))
    if row.src == ("a32",):
        return Instruction(row.mnemonic, "MAI", op, 8, (vgpr(index, "b32"),), (vgpr(field(q, 32, 8), "b32", acc=True),))
    cbsz, blgp = field(q, 8, 3), field(q, 61, 3)
    narrow = row.mnemonic.endswith("_f8f6f4")
    if narrow and (cbsz > 4 or blgp > 4):
        raise w.fail(f"{row.mnemonic} has no matrix format {max(cbsz, blgp)}")
    src: list[Operand] = []
    for i, control in ((0, cbsz), (1, blgp)):
        code = field(q, 32 + 9 * i, 9)
        if code < 256:
            raise w.fail(f"{row.mnemonic} needs vector registers")
        dwords = _F8F6F4_DWORDS[control] if narrow else TYPES[row.src[i]]
        src.append(vgpr(code - 256, row.src[i], bool(field(q, 59 + i, 1)), dwords))
    third = w.source(field(q, 50, 9), row.src[2], literal=False)
    if third.kind == "vgpr" and acc_cd and not row.mnemonic.startswith("v_smfmac"):
        third = replace(third, kind="agpr")
    src.append(third)
    dst = (vgpr(index, row.dst[0], acc_cd),)
    return Instruction(row.mnemonic, "MAI", op, 8, dst, tuple(src), cbsz=cbsz, abid=field(q, 11, 4), blgp=blgp)


def _scaled_mfma(w: Window, q: int) -> Instruction:
    """The 16-byte form: a prefix with the two scale operands, then the matrix instruction."""
    if w.have < 4:
        raise w.fail("truncated instruction")
    second = w.words[2] | w.words[3] << 32
    op = field(second, 16, 7)
    row = w.table["MAI"].get(op)
    if field(second, 23, 9) != 0b110100111 or row is None or not row.mnemonic.endswith("_f8f6f4"):
        raise w.fail("scale prefix without a matrix instruction that takes scales")
    inner = _mai(w, second, op)
    scale = tuple(w.source(field(q, 32 + 9 * i, 9), "b32", literal=False) for i in range(2))
    return replace(
        inner,
        mnemonic=inner.mnemonic.replace("v_mfma_", "v_mfma_scale_"),
        size=16,
        scale=scale,
        abid=0,
        op_sel=field(q, 11, 2),
        op_sel_hi=field(q, 59, 2),
        neg=field(q, 61, 3),
        neg_hi=field(q, 8, 3),
    )
