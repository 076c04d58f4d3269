"""Decoders of the memory encodings: DS, FLAT with GLOBAL and SCRATCH, MUBUF."""

from __future__ import annotations

from sandbox.emulator.encoding import Window, field, scalar_register, signed, vgpr
from sandbox.emulator.instruction import Instruction


def ds(w: Window) -> Instruction:
    q = w.qword()
    op = field(q, 17, 8)
    row = w.row("DS", op)
    acc = bool(field(q, 25, 1))
    data = [t for t in row.src if t != "addr"]
    two = any(part in row.mnemonic for part in ("read2", "write2", "wrxchg2"))
    first, second = field(q, 0, 8), field(q, 8, 8)
    return Instruction(
        row.mnemonic,
        "DS",
        op,
        8,
        tuple(vgpr(field(q, 56, 8), t, acc) for t in row.dst),
        tuple(vgpr(field(q, 40 + 8 * i, 8), t, acc) for i, t in enumerate(data)),
        vaddr=vgpr(field(q, 32, 8), "b32") if "addr" in row.src else None,
        offset=first if two else first | second << 8,
        offset1=second if two else 0,
        gds=bool(field(q, 16, 1)),
    )


def flat(w: Window) -> Instruction:
    q = w.qword()
    encoding = ("FLAT", "SCRATCH", "GLOBAL", "")[field(q, 14, 2)]
    if not encoding:
        raise w.fail("FLAT segment 3 is reserved")
    op = field(q, 18, 7)
    row = w.row(encoding, op)
    acc, sc0 = bool(field(q, 55, 1)), bool(field(q, 16, 1))
    saddr_index, uses_vaddr, address_dwords = field(q, 48, 7), True, 2
    saddr = None
    if encoding != "FLAT" and saddr_index != 0x7F:
        saddr = scalar_register(w, saddr_index, 1 if encoding == "SCRATCH" else 2, "b32")
        address_dwords = 1
    if encoding == "SCRATCH":
        uses_vaddr, address_dwords = bool(field(q, 13, 1)), 1
    returns = "atomic" not in row.properties or sc0
    return Instruction(
        row.mnemonic,
        encoding,
        op,
        8,
        tuple(vgpr(field(q, 56, 8), t, acc) for t in row.dst) if returns else (),
        tuple(vgpr(field(q, 40, 8), t, acc) for t in row.src),
        vaddr=vgpr(field(q, 32, 8), "b64" if address_dwords == 2 else "b32") if uses_vaddr else None,
        saddr=saddr,
        offset=field(q, 0, 12) if encoding == "FLAT" else signed(field(q, 0, 13), 13),
        sc0=sc0,
        nt=bool(field(q, 17, 1)),
        sc1=bool(field(q, 25, 1)),
        lds="lds" in row.properties,
        merge="merge" in row.properties,
    )


def mubuf(w: Window) -> Instruction:
    q = w.qword()
    op = field(q, 18, 7)
    row = w.row("MUBUF", op)
    acc, sc0, lds = bool(field(q, 55, 1)), bool(field(q, 14, 1)), bool(field(q, 16, 1))
    offen, idxen = bool(field(q, 12, 1)), bool(field(q, 13, 1))
    data = field(q, 40, 8)
    returns = "atomic" not in row.properties or sc0
    addressed = bool(row.dst or row.src)
    vaddr = vgpr(field(q, 32, 8), "b64" if offen and idxen else "b32") if offen or idxen else None
    return Instruction(
        row.mnemonic,
        "MUBUF",
        op,
        8,
        tuple(vgpr(data, t, acc) for t in row.dst) if returns and not lds else (),
        tuple(vgpr(data, t, acc) for t in row.src),
        vaddr=vaddr if addressed else None,
        saddr=scalar_register(w, field(q, 48, 5) * 4, 4, "b128") if addressed else None,
        soffset=w.source(field(q, 56, 8), "b32", literal=False) if addressed else None,
        offset=field(q, 0, 12),
        sc0=sc0,
        sc1=bool(field(q, 15, 1)),
        nt=bool(field(q, 17, 1)),
        offen=offen,
        idxen=idxen,
        lds=lds,
        merge="merge" in row.properties,
    )
