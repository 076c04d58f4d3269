"""One decoded instruction: the record that the decoder produces and that both cores and the disassembler read.

Every encoding fills the same record. Implicit operands are spelled out (VCC of `v_addc_co_u32_e32`, the accumulator of
`v_fmac_f32`), so that the short and the long form of an operation look alike to a core. Inline constants and literals
are already converted to the bits of the operand's type.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["vgpr", "agpr", "sgpr", "inline", "literal", "special"]
"""`sgpr` covers everything in the scalar register file: s0-s101, flat_scratch (102), xnack_mask (104), vcc (106), ttmp
(108-123), m0 (124) and exec (126). `special` are read-only sources: 235-238 apertures, 251 vccz, 252 execz, 253 scc."""

VCC_LO = 106
M0 = 124
EXEC_LO = 126
VCCZ, EXECZ, SCC = 251, 252, 253
SHARED_BASE, SHARED_LIMIT, PRIVATE_BASE, PRIVATE_LIMIT = 235, 236, 237, 238


@dataclass(frozen=True, slots=True)
class Operand:
    """A register, or a constant.

    `index` is the register number (of the first one), or the 9-bit source code of a constant or special source.
    `type` is a name of `opcodes.TYPES` and fixes how the bits are read; `dwords` is the number of registers it spans.
    `value` are the bits of a constant, as wide as the type (a 16-bit constant occupies the low half).
    """

    kind: Kind
    index: int
    dwords: int
    type: str
    value: int = 0

    @property
    def is_constant(self) -> bool:
        return self.kind == "inline" or self.kind == "literal"


@dataclass(frozen=True, slots=True)
class Dpp:
    """Data-parallel primitive: source 0 comes from another lane. `control` is the 9-bit DPP_CTRL field."""

    control: int
    row_mask: int
    bank_mask: int
    bound_ctrl: bool


@dataclass(frozen=True, slots=True)
class Sdwa:
    """Sub-dword addressing. Selectors: 0-3 byte, 4-5 word, 6 all. `dst_unused`: 0 pad, 1 sign-extend, 2 keep."""

    dst_sel: int
    dst_unused: int
    src_sel: tuple[int, int]
    src_sext: tuple[bool, bool]


@dataclass(frozen=True, slots=True)
class Instruction:
    """A decoded instruction. Bit i of `neg`, `abs`, `op_sel`, `op_sel_hi`, `neg_hi` belongs to source i.

    `mnemonic` has no encoding suffix (`v_add_f32` for the e32, e64, dpp and sdwa forms). `encoding` is one of SOP1,
    SOP2, SOPC, SOPK, SOPP, SMEM, VOP1, VOP2, VOPC, VOP3, VOP3P, MAI, DS, FLAT, GLOBAL, SCRATCH, MUBUF. Bit 3 of
    `op_sel` is the destination's. Memory forms name their operands: `vaddr`, `saddr` (scalar base, or buffer
    descriptor), `soffset`, and data to store in `src`. Two-address LDS forms hold both 8-bit offsets, in elements, in
    `offset` and `offset1`.
    """

    mnemonic: str
    encoding: str
    opcode: int
    size: int
    """Bytes, literal included."""
    dst: tuple[Operand, ...] = ()
    src: tuple[Operand, ...] = ()
    neg: int = 0
    abs: int = 0
    clamp: bool = False
    omod: int = 0
    """Output multiplier: 0 none, 1 times 2, 2 times 4, 3 divided by 2."""
    op_sel: int = 0
    op_sel_hi: int = 0
    neg_hi: int = 0
    dpp: Dpp | None = None
    sdwa: Sdwa | None = None
    cbsz: int = 0
    abid: int = 0
    blgp: int = 0
    scale: tuple[Operand, ...] = ()
    """Scale operands of `v_mfma_scale_*`; their byte selectors are in `op_sel` and `op_sel_hi`."""
    vaddr: Operand | None = None
    saddr: Operand | None = None
    soffset: Operand | None = None
    offset: int = 0
    """Signed byte offset (first element offset of two-address LDS forms)."""
    offset1: int = 0
    sc0: bool = False
    sc1: bool = False
    nt: bool = False
    offen: bool = False
    idxen: bool = False
    lds: bool = False
    gds: bool = False
    imm: int = 0
    """The 16-bit immediate of SOPK and SOPP, unsigned as encoded (the dword offset of a branch must be sign-extended),
    and the 8-bit truth table of `v_bitop3_*`."""
    merge: bool = False
    """A result narrower than its register leaves the other bits as they were, instead of clearing them."""

    @property
    def operands(self) -> tuple[Operand, ...]:
        """Every operand there is."""
        named = (o for o in (self.vaddr, self.saddr, self.soffset) if o is not None)
        return (*self.dst, *self.src, *self.scale, *named)

    @property
    def suffix(self) -> str:
        """What the assembler appends to the mnemonic: `_e32`, `_e64`, `_dpp`, `_sdwa` or nothing."""
        if self.dpp is not None:
            return "_dpp"
        if self.sdwa is not None:
            return "_sdwa"
        return {"VOP1": "_e32", "VOP2": "_e32", "VOPC": "_e32"}.get(self.encoding, "")

    def branch_target(self, pc: int) -> int:
        """Byte address this branch or call at address `pc` goes to."""
        dwords = self.imm - 0x10000 if self.imm & 0x8000 else self.imm
        return pc + 4 + 4 * dwords


class DecodeError(Exception):
    """The bytes are no instruction of this architecture. `offset` is where, in bytes, `word` the first dword there."""

    def __init__(self, offset: int, word: int, reason: str) -> None:
        self.offset = offset
        self.word = word
        self.reason = reason
        super().__init__(f"{reason} at +{offset:#x} (0x{word:08x})")


class Unsupported(Exception):  # noqa: N818 - an outcome that ends the run as inconclusive, not a fault
    """An opcode or a modifier that this emulator does not implement. Names both; never ignored."""

    def __init__(self, mnemonic: str, what: str = "") -> None:
        self.mnemonic = mnemonic
        self.what = what
        super().__init__(f"{mnemonic}{': ' + what if what else ''}")
