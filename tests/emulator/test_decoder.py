"""The decoder against LLVM: mnemonic, size and operand text, on compiled kernels and on random encodings."""

from __future__ import annotations

import random
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from llvm_tools import llvm_tool

from sandbox.emulator.decoder import decode
from sandbox.emulator.disassembly import text
from sandbox.emulator.instruction import DecodeError, Unsupported
from sandbox.emulator.loader import load_code_object
from sandbox.emulator.opcodes import ARCHS, Opcode, mnemonics, opcodes

OBJDUMP = llvm_tool("llvm-objdump")
LLVM_MC = llvm_tool("llvm-mc")
LINE = re.compile(r"\t(.*?)\s*// ([0-9A-F]{12}): ((?:[0-9A-F]{8} ?)+)")


FILE = re.compile(r"(.*):\tfile format ")


def objdump(paths: list[Path]) -> Iterator[tuple[str, str, int, bytes]]:
    """File name, text, address and bytes of every instruction llvm-objdump finds."""
    assert OBJDUMP is not None
    out = subprocess.run([OBJDUMP, "-d", *map(str, paths)], capture_output=True, text=True, check=True).stdout
    name = ""
    for line in out.splitlines():
        if match := LINE.match(line):
            words = match[3].split()
            raw = b"".join(int(w, 16).to_bytes(4, "little") for w in words)
            yield name, re.sub(r"\s+", " ", match[1].strip()), int(match[2], 16), raw
        elif match := FILE.match(line):
            name = Path(match[1]).stem


@pytest.mark.skipif(OBJDUMP is None, reason="needs llvm-objdump")
@pytest.mark.parametrize("arch", ARCHS)
def test_every_instruction_of_the_corpus_reads_as_llvm_reads_it(
    arch: str, corpus_code: dict[str, dict[str, bytes]], tmp_path: Path
) -> None:
    seen: set[tuple[bytes, str]] = set()
    wrong = []
    objects = {code: name for name, code in corpus_code[arch].items()}  # HIP kernels share them
    for code, name in objects.items():
        (tmp_path / f"{name}.hsaco").write_bytes(code)
    images = {name: load_code_object(code).elf.image for code, name in objects.items()}
    for name, want, address, raw in objdump([tmp_path / f"{name}.hsaco" for name in images]):
        if (raw, want) in seen:
            continue
        seen.add((raw, want))
        instruction = decode(images[name], address, arch)
        if text(instruction) != want or instruction.size != len(raw):
            wrong.append((name, hex(address), want, text(instruction)))
    assert len(seen) > 5000
    assert not wrong, wrong[:10]


FIXED = {
    "SOP2": 0b10 << 30, "SOPK": 0b1011 << 28, "SOP1": 0b101111101 << 23, "SOPC": 0b101111110 << 23,
    "SMEM": 0b110000 << 26, "VOP1": 0b0111111 << 25, "VOP2": 0, "VOPC": 0b0111110 << 25, "VOP3": 0b110100 << 26,
    "DS": 0b110110 << 26,
    "FLAT": 0b110111 << 26, "SCRATCH": 0b110111 << 26 | 1 << 14, "GLOBAL": 0b110111 << 26 | 2 << 14,
    "MUBUF": 0b111000 << 26,
}  # fmt: skip
OPCODE_BIT = {
    "SOP2": 23, "SOPK": 23, "SOP1": 8, "SOPC": 16, "SMEM": 18, "VOP1": 9, "VOP2": 25, "VOPC": 17, "VOP3": 16, "DS": 17,
    "FLAT": 18, "SCRATCH": 18, "GLOBAL": 18, "MUBUF": 18,
}  # fmt: skip


def encoding(kind: str, number: int, row: Opcode, draw: random.Random) -> bytes:
    """A plausible instruction: random registers and constants in the fields that the row uses."""

    def scalar() -> int:
        return draw.choice([draw.randrange(24) * 4, 106, 126, draw.randrange(128, 209)])

    def source() -> int:
        return draw.choice([256 + draw.randrange(100) * 2, scalar()])

    word = FIXED[kind] | number << OPCODE_BIT[kind]
    size, data = 8, draw.randrange(50) * 4
    if kind in ("SOP2", "SOPC"):
        size, word = 4, word | scalar() << 8 | scalar() | (draw.randrange(24) * 4 << 16 if kind == "SOP2" else 0)
    elif kind == "SOP1":
        size, word = 4, word | scalar() | draw.randrange(24) * 4 << 16
    elif kind == "SOPK":
        size, word = 4, word | draw.randrange(24) * 4 << 16 | draw.randrange(1 << 16)
    elif kind == "SMEM":
        word |= 1 << 17 | draw.randrange(20) * 4 << 6 | draw.randrange(40) & ~1 | draw.randrange(1 << 20) << 32
    elif kind in ("VOP1", "VOP2", "VOPC"):
        size, word = 4, word | source() | (data << 17 if kind != "VOPC" else 0) | (0 if kind == "VOP1" else data << 9)
    elif kind == "VOP3":
        sources = [t for t in row.src if t not in ("acc", "vccr")]
        for k, t in enumerate(sources):
            word |= (draw.randrange(20) * 2 if t in ("vcc", "mask", "s32") else source()) << 32 + 9 * k
        scalar_result = bool(row.dst) and row.dst[0] in ("mask", "vcc", "s32")
        word |= draw.randrange(24) * 4 if scalar_result else data
        if len(row.dst) == 2:
            word |= draw.randrange(40) * 2 << 8
    elif kind == "DS":
        word |= draw.randrange(1 << 16) | draw.choice([0, 1]) << 25
        word |= draw.randrange(200) << 32 if "addr" in row.src else 0
        for k, _ in enumerate(t for t in row.src if t != "addr"):
            word |= draw.randrange(100) * 2 << 40 + 8 * k
        word |= draw.randrange(100) * 2 << 56 if row.dst else 0
    elif kind == "MUBUF":
        fence = row.mnemonic in ("buffer_inv", "buffer_wbl2")
        fields = draw.randrange(4) << 12 | draw.randrange(1 << 12) | data << 32 | data << 40 | draw.randrange(20) << 48
        word |= (
            draw.randrange(2) << 14 | draw.randrange(2) << 17 | (0 if fence else fields | draw.choice([4, 128]) << 56)
        )
    else:
        returned = row.dst and ("atomic" not in row.properties or draw.random() < 0.5)
        word |= 1 << 16 if returned and "atomic" in row.properties else 0
        word |= draw.randrange(1 << 12) | data << 32 | (data << 40 if row.src else 0) | (data << 56 if returned else 0)
        word |= draw.choice([0x7F, draw.randrange(40) * 2]) << 48 if kind != "FLAT" else 0
        word |= 1 << 13 if kind == "SCRATCH" else 0
    return word.to_bytes(size, "little")


@pytest.mark.skipif(LLVM_MC is None, reason="needs llvm-mc")
@pytest.mark.parametrize("arch", ARCHS)
def test_random_encodings_of_every_opcode_read_as_llvm_reads_them(arch: str) -> None:
    draw = random.Random(20)
    cases = []
    for kind, rows in opcodes(arch).items():
        if kind in FIXED:
            cases += [(row.mnemonic, encoding(kind, n, row, draw)) for n, row in rows.items() for _ in range(3)]
    lines = [" ".join(f"0x{b:02x}" for b in raw) for _, raw in cases]
    assert LLVM_MC is not None
    command = [LLVM_MC, "--disassemble", "-triple=amdgcn", f"-mcpu={arch}", "--show-encoding"]
    out = subprocess.run(command, input="\n".join(lines), capture_output=True, text=True, check=False).stdout
    want: dict[bytes, str] = {}
    for line in out.splitlines():
        body, found, code = line.partition("; encoding: ")
        if found:
            want[bytes(int(x, 16) for x in re.findall(r"0x(..)", code))] = re.sub(r"\s+", " ", body.strip())
    compared, wrong = 0, []
    for mnemonic, raw in cases:
        expected = want.get(raw)
        if expected is None or "Invalid" in expected or mnemonic in UNREADABLE:
            continue
        compared += 1
        got = text(decode(raw + bytes(8), 0, arch))
        if got != expected:
            wrong.append((raw.hex(), expected, got))
    assert compared > 0.8 * len(cases), (compared, len(cases))
    assert not wrong, wrong[:10]


UNREADABLE = {"s_set_gpr_idx_on", "ds_swizzle_b32", "s_getreg_b32", "s_setreg_b32", "s_setreg_imm32_b32"}
"""llvm writes symbolic names for fields that are kept as numbers here."""


TINYGRAD_NAMES = {
    "v_accvgpr_read": "v_accvgpr_read_b32",
    "v_accvgpr_write": "v_accvgpr_write_b32",
    "v_mad_mix_f32": "v_fma_mix_f32",
    "v_mad_mixlo_f16": "v_fma_mixlo_f16",
    "v_mad_mixhi_f16": "v_fma_mixhi_f16",
}
"""Older names of the same opcodes."""


def test_the_corpus_reads_as_the_tinygrad_decoder_reads_it(corpus_code: dict[str, dict[str, bytes]]) -> None:
    amd = pytest.importorskip("tinygrad.renderer.amd")
    seen: set[bytes] = set()
    for arch, objects in corpus_code.items():
        for code in sorted(set(objects.values()))[::4]:
            image = load_code_object(code).elf
            segment = next(s for s in image.segments if s.executable)
            at = segment.address
            while at < segment.address + segment.size:
                try:
                    i = decode(image.image, at, arch)
                except DecodeError:
                    break
                raw, at = image.image[at : at + i.size], at + i.size
                if raw in seen:
                    continue
                seen.add(raw)
                other = amd.decode_inst(raw + bytes(8), "cdna")
                name = other.op.name.lower().removesuffix("_e32").removesuffix("_e64")
                assert (TINYGRAD_NAMES.get(name, name), other.size()) == (i.mnemonic, i.size)
    assert len(seen) > 3000


def test_matrix_operands_follow_the_accumulator_bits() -> None:
    # v_mfma_f32_32x32x8_f16 a[0:15], v[2:3], a[4:5], a[16:31]
    word = (
        0b110100111 << 23 | 0x4C << 16 | 1 << 15 | 0 | (256 + 2) << 32 | (256 + 4) << 41 | (256 + 16) << 50 | 0b10 << 59
    )
    i = decode(word.to_bytes(8, "little"), 0, "gfx942")
    assert text(i) == "v_mfma_f32_32x32x8_f16 a[0:15], v[2:3], a[4:5], a[16:31]"
    assert [o.kind for o in (*i.dst, *i.src)] == ["agpr", "vgpr", "agpr", "agpr"]


def test_constants_have_the_bits_of_their_type() -> None:
    add_f64 = 0b110100 << 26 | 0x280 << 16 | 242 << 32 | 193 << 41  # v_add_f64 v[0:1], 1.0, -1
    i = decode(add_f64.to_bytes(8, "little"), 0, "gfx942")
    assert i.src[0].value == 0x3FF0000000000000
    assert i.src[1].value == 0xFFFFFFFFFFFFFFFF
    mul_f16 = 0x22 << 25 | 240  # v_mul_f16 v0, 0.5, v0
    assert decode(mul_f16.to_bytes(4, "little"), 0, "gfx942").src[0].value == 0x3800


def test_arch_only_opcodes_are_refused_on_the_other_arch() -> None:
    bitop = (0b110100 << 26 | 0x234 << 16 | 256 << 32 | 257 << 41 | 258 << 50).to_bytes(8, "little")
    assert decode(bitop, 0, "gfx950").mnemonic == "v_bitop3_b32"
    with pytest.raises(DecodeError):
        decode(bitop, 0, "gfx942")
    assert "v_mfma_f32_32x32x4_xf32" in mnemonics("gfx942") - mnemonics("gfx950")


@pytest.mark.parametrize("arch", ARCHS)
def test_random_bytes_never_do_worse_than_a_decode_error(arch: str) -> None:
    draw = random.Random(7)
    for _ in range(20_000):
        raw = draw.randbytes(draw.choice([1, 4, 8, 12, 16]))
        try:
            i = decode(raw, 0, arch)
        except (DecodeError, Unsupported):
            continue
        assert i.size <= len(raw)
        assert text(i)
