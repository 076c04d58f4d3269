"""Every opcode number of every encoding, as LLVM reads it and as the emulator does: what is not implemented.

`python tests/emulator/opcode_sweep.py` writes `not_implemented.txt` beside this file; the test compares with it.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from sandbox.emulator import fast
from sandbox.emulator.decoder import decode
from sandbox.emulator.instruction import DecodeError, Instruction, Unsupported
from sandbox.emulator.native import library
from sandbox.emulator.opcodes import ARCHS, mnemonics
from sandbox.emulator.records import Translator, operations
from sandbox.emulator.reference import build_step

LIST = Path(__file__).parent / "not_implemented.txt"
LLVM_MC = shutil.which("llvm-mc-22")
"""One version, because names and opcodes come and go between versions."""
COUNTS = {
    "SOP2": 60, "SOPK": 29, "SOP1": 128, "SOPC": 128, "SOPP": 128, "SMEM": 256, "VOP1": 256, "VOP2": 62, "VOPC": 256,
    "VOP3": 1024, "VOP3P": 128, "DS": 256, "FLAT": 128, "SCRATCH": 128, "GLOBAL": 128, "MUBUF": 128, "MTBUF": 16,
    "MIMG": 128,
}  # fmt: skip
ROWS = 512


def candidates(encoding: str, op: int) -> Iterator[int]:
    """Encodings of one opcode: with and without what some of its forms need, or must not have."""
    registers = 4 << 32 | 8 << 40 | 12 << 48 | 16 << 56
    sources = (256 + 4) << 32 | (256 + 12) << 41 | (256 + 64) << 50
    if encoding == "SOP2":
        yield 0b10 << 30 | op << 23 | 8 << 16 | 6 << 8 | 4
    elif encoding == "SOPK":
        yield from (0b1011 << 28 | op << 23 | 8 << 16 | low for low in (0x1234, 0x0001))
    elif encoding in ("SOP1", "SOPC", "SOPP"):
        if encoding == "SOP1":
            yield from (0b101111101 << 23 | 8 << 16 | op << 8 | source for source in (4, 0))
        else:
            yield from (word << 23 | op << 16 | low for word in (0b101111110 if encoding == "SOPC" else 0b101111111,)
                        for low in ((6 << 8 | 4,) if encoding == "SOPC" else (4, 0)))  # fmt: skip
    elif encoding == "SMEM":
        for data in (16, 0):
            yield from (0b110000 << 26 | op << 18 | bits << 16 | data << 6 | 2 | 0x10 << 32 for bits in (2, 3, 0))
    elif encoding in ("VOP1", "VOP2", "VOPC"):
        word = {"VOP1": 0b0111111 << 25 | op << 9, "VOP2": op << 25, "VOPC": 0b0111110 << 25 | op << 17}[encoding]
        yield word | (256 + 4) | (16 << 17 if encoding != "VOPC" else 0) | (8 << 9 if encoding != "VOP1" else 0)
        yield word | 256 + 4
        yield word
    elif encoding == "VOP3":
        for third in (256 + 12, 12):
            yield from (0b110100 << 26 | op << 16 | low | (256 + 4) << 32 | (256 + 8) << 41 | third << 50
                        for low in (16, 16 | 20 << 8))  # fmt: skip
        yield from (0b110100 << 26 | op << 16 | 16 | a << 32 | b << 41 for a, b in ((260, 264), (260, 0), (4, 264)))
        yield 0b110100 << 26 | op << 16 | 16 | 4 << 32 | 6 << 41
        yield 0b110100 << 26 | op << 16
    elif encoding == "VOP3P":
        for low in (32 | 1 << 14, 32):
            yield from (0b110100111 << 23 | op << 16 | low | sources | high << 59 for high in (3, 0))
        yield 0b110100111 << 23 | op << 16 | 32 | 260 << 32 | 3 << 59
        yield 0b110100111 << 23 | op << 16 | 32 | 260 << 32
    else:
        yield from (base | extra for base in memory(encoding, op) for extra in (registers, registers & ~(255 << 48)))
        yield from memory(encoding, op)


def memory(encoding: str, op: int) -> Iterator[int]:
    """First halves of memory instructions."""
    if encoding == "DS":
        yield from (0b110110 << 26 | op << 17 | gds << 16 for gds in (0, 1))
    elif encoding in ("FLAT", "SCRATCH", "GLOBAL"):
        segment = {"FLAT": 0, "SCRATCH": 1, "GLOBAL": 2}[encoding]
        for bits in (0, 1 << 16, 1 << 13, 1 << 13 | 1 << 16):
            yield 0b110111 << 26 | op << 18 | segment << 14 | bits | 0x7F << 48
            yield 0b110111 << 26 | op << 18 | segment << 14 | bits
    elif encoding == "MUBUF":
        yield from (0b111000 << 26 | op << 18 | bits for bits in (1 << 12, 1 << 12 | 1 << 14, 1 << 16 | 1 << 12, 0))
    elif encoding == "MTBUF":
        yield from (0b111010 << 26 | op << 15 | 1 << 12 | fmt << 19 for fmt in (0, 7 | 4 << 4))
    else:
        yield 0b111100 << 26 | op << 18 | 15 << 8 | 1 << 12


def as_bytes(word: int, encoding: str) -> bytes:
    short = encoding.startswith("SOP") or encoding in ("VOP1", "VOP2", "VOPC")
    return word.to_bytes(4, "little") + (b"\x2a\0\0\0" if short else b"") if short else word.to_bytes(8, "little")


def plain(mnemonic: str) -> str:
    return re.sub(r"_(e32|e64|dpp|sdwa)$", "", mnemonic)


def read_by_llvm(raws: list[bytes], arch: str) -> dict[bytes, str]:
    """Mnemonic by encoding, of the instructions LLVM knows."""
    assert LLVM_MC is not None
    command = [LLVM_MC, "--disassemble", "-triple=amdgcn", f"-mcpu={arch}", "--show-encoding"]
    lines = "\n".join(" ".join(f"0x{b:02x}" for b in raw) for raw in raws)
    out = subprocess.run(command, input=lines, capture_output=True, text=True, check=False).stdout
    known = {}
    for line in out.splitlines():
        body, found, code = line.partition("; encoding: ")
        if found and "/*Invalid" not in body:
            known[bytes(int(x, 16) for x in re.findall(r"0x(..)", code))] = plain(body.split()[0])
    return known


def refused(i: Instruction, arch: str) -> str:
    """Which cores have no operation for an instruction."""
    missing = []
    try:
        build_step(i, arch)
    except Unsupported:
        missing.append("reference")
    if fast.available():
        core = library()
        assert core is not None
        translator = Translator(operations(core), ROWS)
        translator.record(0, 0, i, 0)
        if translator.unsupported.get(0):
            missing.append("fast")
    return " and ".join(missing)


@cache
def sweep(arch: str) -> tuple[frozenset[str], dict[str, str]]:
    """All mnemonics LLVM reads, and those that trap: mnemonic to which of decoder and cores lacks it.

    A mnemonic is fine if one of its encodings is, since a few templates set fields that an opcode does not take.
    """
    raws = [as_bytes(word, e) for e, n in COUNTS.items() for op in range(n) for word in candidates(e, op)]
    known, missing = read_by_llvm(raws, arch), dict[str, str]()
    ready: set[str] = set()
    for raw, mnemonic in known.items():
        if mnemonic in ready:
            continue
        try:
            i = decode(raw + bytes(16), 0, arch)
            lacks = refused(i, arch)
        except (DecodeError, Unsupported):
            lacks = "decoder"
        if lacks:
            missing[mnemonic] = lacks
        else:
            ready.add(mnemonic)
    return frozenset(known.values()), {m: lack for m, lack in missing.items() if m not in ready}


def overview() -> str:
    """The text of `not_implemented.txt`."""
    lines = ["# Instructions that llvm-mc 22 reads and that end an emulation as `unsupported`: written by",
             "# tests/emulator/opcode_sweep.py. A core that lacks one hands over to the other."]  # fmt: skip
    for arch in ARCHS:
        known, missing = sweep(arch)
        lines.append(f"\n[{arch}] {len(known)} mnemonics read, {len(known) - len(missing)} implemented on both cores")
        lines += [f"{mnemonic:34} {lack}" for mnemonic, lack in sorted(missing.items())]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    LIST.write_text(overview())
    for name in ARCHS:
        print(name, sorted(mnemonics(name) - sweep(name)[0]))
