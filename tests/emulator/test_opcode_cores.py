"""Every arithmetic opcode, with modifiers: the fast core gives what the reference core gives."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from opcode_cores import FastWave, reference_step, result_bits, with_modifiers

from sandbox.emulator import fast
from sandbox.emulator.instruction import Instruction
from sandbox.emulator.opcodes import opcodes

oracle = pytest.importorskip("test_oracle")
pytestmark = pytest.mark.skipif(not fast.available(), reason="no C compiler")

ENCODINGS = ("SOP1", "SOP2", "SOPC", "VOP1", "VOP2", "VOPC", "VOP3", "VOP3P")
VARIANTS = 6
MASKS = ((1 << 64) - 1, 0x00FF00FF00FF00FF, 0xFFFFFFFF00000000, 0x8000000000000001)
APPROXIMATE = (*oracle.APPROXIMATE, "v_frexp_mant", "v_mad", "v_mac", "v_cvt_pk_f16", "v_trig_preop")


SKIPPED = frozenset({"s_getpc_b64"})  # its result is an address, which differs between these two set-ups
SIGNALLING = ("v_min", "v_max", "v_med3", "v_pk_min", "v_pk_max")
"""The fast core takes a signalling NaN in these for a quiet one."""


def signalling(bits: int, type_name: str) -> bool:
    """Whether an f16, f32 or f64 (or one half of a packed pair) is a signalling NaN."""
    kind, _, count = type_name.partition("x")
    if kind not in ("f16", "f32", "f64"):
        return False
    width, fraction = {"f16": (16, 10), "f32": (32, 23), "f64": (64, 52)}[kind]
    for k in range(int(count or 1)):
        value = bits >> width * k & ((1 << width - 1) - 1)
        top = ((1 << width - 1 - fraction) - 1) << fraction
        if top < value < top | 1 << fraction - 1:
            return True
    return False


def describe(i: Instruction) -> str:
    """The mnemonic with the modifiers that are set."""
    plain = Instruction(i.mnemonic, i.encoding, i.opcode, i.size, i.dst, i.src, op_sel_hi=i.op_sel_hi)
    names = ("neg", "abs", "clamp", "omod", "op_sel", "op_sel_hi", "neg_hi", "dpp", "sdwa")
    return f"{i.mnemonic} {[f'{n}={getattr(i, n)}' for n in names if getattr(i, n) != getattr(plain, n)]}"


def compare(row, encoding: str, number: int, arch: str, seed: int) -> tuple[bool, str]:
    """Whether both cores ran it, and what differs."""
    draw = random.Random(f"{row.mnemonic} {seed}")
    i = oracle.instruction_for(row, encoding, number)
    if "mix" in row.src:
        i = replace(i, op_sel_hi=0)  # f32 sources, as the oracle's operands are
    if seed and "mix" not in row.src:
        i = with_modifiers(i, draw, row.properties)
    wave = oracle.fresh_wave(draw)
    oracle.fill(wave, i, draw)
    wave.write_sgpr(126, MASKS[seed % len(MASKS)], 2)
    before = oracle.fresh_wave(draw)
    before.vgpr[:], before.sgpr[:] = wave.vgpr, wave.sgpr
    quick = FastWave(i, arch, oracle.MODE)
    try:
        if quick.unsupported is not None:
            return False, ""
        sgprs, rows, scc, trapped = quick.run(wave)
    finally:
        quick.close()
    if not reference_step(i, wave, arch) or trapped:
        return False, ""
    if [int(x) for x in sgprs] != wave.sgpr or scc != wave.scc:
        wrong = [k for k in range(128) if int(sgprs[k]) != wave.sgpr[k]]
        return True, f"{describe(i)}: scalar registers {wrong} scc {scc}/{wave.scc}"
    tolerance = 1 if row.mnemonic.startswith(APPROXIMATE) else 0
    for o in i.dst:
        if o.kind != "vgpr":
            continue
        for lane in range(64):
            ours, theirs = result_bits(rows, o, lane), result_bits(wave.vgpr, o, lane)
            sources = [(oracle.read_bits(before, x, lane), x.type) for x in i.src]
            if row.mnemonic.startswith(SIGNALLING) and any(signalling(*x) for x in sources):
                continue
            if not oracle.same(ours, theirs, o.type, tolerance):
                inputs = [hex(bits) for bits, _ in sources]
                return True, f"{describe(i)}: lane {lane} of {inputs}: {ours:#x}, reference {theirs:#x}"
    return True, ""


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
def test_cores_agree_on_every_opcode(arch: str) -> None:
    compared, differences = set(), []
    for encoding in ENCODINGS:
        for number, row in opcodes(arch)[encoding].items():
            if row.mnemonic in SKIPPED:
                continue
            for seed in range(VARIANTS):
                try:
                    ran, difference = compare(row, encoding, number, arch, seed)
                except oracle.NotEvaluable:
                    break
                if ran:
                    compared.add(row.mnemonic)
                if difference:
                    differences.append(difference)
    assert not differences, f"{len(differences)}:\n" + "\n".join(differences[:25])
    assert len(compared) > 550
