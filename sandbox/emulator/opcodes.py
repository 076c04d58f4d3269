"""The opcode tables of gfx942 and gfx950, read from `isa/*.txt`.

Each line is `opcode mnemonic destinations = sources | properties @only_arch`, opcode in hexadecimal. Operand words are
types (`TYPES`) or one of: `mask` a 64-bit lane mask in SGPRs, `vcc` the same but implicit in the short form, `vccr` VCC
in every form, `acc` the destination read as a last source, `k16`/`k32` a literal, `s32` a scalar register, `a32` an
AccVGPR, `addr` the LDS address, `mix` f32 or f16 as op_sel_hi says. Properties: `e64`, `dpp`, `sdwa` forms that exist
besides the short one; `merge` other bits of a partly written destination are kept; `atomic`, `lds` kinds of memory
instruction. Opcode numbers are those LLVM's disassembler accepts for the two architectures.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import resources

ARCHS = ("gfx942", "gfx950")

TYPES: dict[str, int] = {
    **{f"{k}{bits}": max(1, bits // 32) for k in "buif" for bits in (16, 32, 64)},
    **{f"b{32 * dwords}": dwords for dwords in (3, 4, 5, 6, 8, 16, 32)},
    "b8": 1,
    "bf16": 1,
    "f16x2": 1,
    "bf16x2": 1,
    "u16x2": 1,
    "i16x2": 1,
    "f32x2": 2,
    "b32x2": 2,
    **{f"{k}x{n}": n for k in ("f32", "i32") for n in (4, 16, 32)},
    "f64x1": 2,
    "f64x4": 8,
    "mask": 2,
    "vcc": 2,
    "vccr": 2,
    "s32": 1,
    "a32": 1,
    "mix": 1,
    "k16": 1,
    "k32": 1,
}
"""Operand type to the number of 32-bit registers it spans."""

_VOP3_BASE = {"VOPC": 0x000, "VOP2": 0x100, "VOP1": 0x140}


@dataclass(frozen=True, slots=True)
class Opcode:
    """One row: an operation in one encoding."""

    mnemonic: str
    dst: tuple[str, ...]
    src: tuple[str, ...]
    properties: frozenset[str]


def _parse_line(line: str) -> tuple[int, Opcode, str]:
    body, _, tail = line.partition("|")
    left, _, right = body.partition("=")
    number, mnemonic, *dst = left.split()
    words = tail.split()
    only = next((w[1:] for w in words if w.startswith("@")), "")
    properties = frozenset(w for w in words if not w.startswith("@"))
    return int(number, 16), Opcode(mnemonic, tuple(dst), tuple(right.split()), properties), only


@cache
def _rows() -> tuple[tuple[str, int, Opcode, str], ...]:
    rows: list[tuple[str, int, Opcode, str]] = []
    for name in ("scalar", "vector", "packed", "memory"):
        text = (resources.files("sandbox.emulator") / "isa" / f"{name}.txt").read_text(encoding="utf-8")
        encoding = ""
        for line in text.splitlines():
            if line.startswith("["):
                encoding = line.strip("[]")
            elif line and not line.startswith("#"):
                rows.append((encoding, *_parse_line(line)))
    return tuple(rows)


@cache
def opcodes(arch: str) -> dict[str, dict[int, Opcode]]:
    """Encoding to opcode number to row, for `gfx942` or `gfx950`. VOP3 holds the long forms of VOP1, VOP2, VOPC too."""
    table: dict[str, dict[int, Opcode]] = {}
    for encoding, number, row, only in _rows():
        if only and only != arch:
            continue
        table.setdefault(encoding, {})[number] = row
        if encoding in _VOP3_BASE and ("e64" in row.properties or row.mnemonic == "v_nop"):
            table.setdefault("VOP3", {})[_VOP3_BASE[encoding] + number] = row
    return table


@cache
def mnemonics(arch: str) -> frozenset[str]:
    """Every mnemonic of an architecture, without encoding suffix."""
    return frozenset(row.mnemonic for rows in opcodes(arch).values() for row in rows.values())
