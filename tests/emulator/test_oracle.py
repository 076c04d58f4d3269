"""Each opcode of the reference core against AMD's published pseudocode, on random operands with edge values."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from pseudocode import Machine, NotEvaluable, Value, floating, integer

from sandbox.emulator.instruction import Instruction, Operand, Unsupported
from sandbox.emulator.machine import LANES, Findings, Wave, Workgroup
from sandbox.emulator.memory import Memory
from sandbox.emulator.opcodes import TYPES, Opcode, opcodes
from sandbox.emulator.reference import build_step

pcode = pytest.importorskip("tinygrad.runtime.autogen.amd.cdna.str_pcode").PCODE

ENCODINGS = ("SOP1", "SOP2", "SOPC", "VOP1", "VOP2", "VOPC", "VOP3", "VOP3P")
MODE = 0x2F0
"""As compilers set it: round to nearest, subnormals kept, dx10_clamp and ieee on."""

EDGES = {
    16: [0, 0x8000, 1, 0x3FF, 0x400, 0x3C00, 0xBC00, 0x7BFF, 0x7C00, 0xFC00, 0x7E00, 0x7FFF, 0xFFFF, 0x5640],
    32: [0, 1, 0x80000000, 0xFFFFFFFF, 0x7FFFFFFF, 31, 32, 0x3F800000, 0xBF800000, 0x7F800000, 0xFF800000, 0x7FC00000,
         0x00000001, 0x007FFFFF, 0x00800000, 0x7F7FFFFF, 0x3F000000, 0x40490FDB, 0x4F000000, 0xCF000000, 0x00010010],
    64: [0, 1, 1 << 63, (1 << 64) - 1, (1 << 63) - 1, 63, 0x3FF0000000000000, 0xBFF0000000000000, 0x7FF0000000000000,
         0xFFF0000000000000, 0x7FF8000000000000, 0x0010000000000000, 0x000FFFFFFFFFFFFF, 0x7FEFFFFFFFFFFFFF,
         0x41EFFFFFFFE00000, 0x40490FDB54442D18],
}  # fmt: skip


def operand_bits(draw: random.Random, width: int, type_name: str) -> int:
    """Random bits, an edge value, or a float of ordinary size."""
    roll = draw.random()
    if width not in EDGES:
        return draw.getrandbits(width)
    if roll < 0.35:
        return draw.choice(EDGES[width])
    if roll < 0.6 or type_name[0] != "f":
        return draw.getrandbits(width) >> draw.choice([0, 0, 0, width // 2, width - 6])
    return floating(draw.gauss(0, 1) * 2.0 ** draw.randint(-10, 10), width).bits


def width_of(type_name: str) -> int:
    if type_name in ("f16", "i16", "u16", "b16", "bf16"):
        return 16
    return 32 * TYPES.get(type_name, 1)


def register_width(operand: Operand) -> int:
    return 64 if operand.type == "mask" else max(width_of(operand.type), 32)


def library(name: str, a: list[Value]) -> Value | None:
    """Functions the pseudocode calls, written from their names and the ISA manual."""
    x = a[0].number if a else 0
    width = a[0].width if a else 0
    simple: dict[str, Callable[[], Value]] = {
        "isNAN": lambda: integer(int(math.isnan(x)), 1, "u"),
        "isINF": lambda: integer(int(math.isinf(x)), 1, "u"),
        "sign": lambda: integer(a[0].bits >> (width - 1), 1, "u"),
        "abs": lambda: (
            Value(a[0].bits & ~(1 << (width - 1)), width, "f") if a[0].kind == "f" else integer(abs(x), width)
        ),
        "exponent": lambda: integer(a[0].bits >> {16: 10, 32: 23, 64: 52}[width] & {16: 31, 32: 255, 64: 2047}[width]),
        "floor": lambda: floating(float(np.floor(x)), width),
        "trunc": lambda: floating(float(np.trunc(x)), width),
        "sqrt": lambda: floating(float(np.sqrt(x)), width),
        "fract": lambda: floating(x - float(np.floor(x)), width),
        "log2": lambda: floating(float(np.log2(x)), width),
        "sin": lambda: floating(float(np.sin(x)), width),
        "cos": lambda: floating(float(np.cos(x)), width),
        "isEven": lambda: integer(int(float(x) % 2 == 0), 1, "u"),
        "signext": lambda: integer(cast_signed(a[0]), 64),
        "bitCount": lambda: integer(a[0].bits.bit_count()),
        "cvtToQuietNAN": lambda: Value(a[0].bits | 1 << {16: 9, 32: 22, 64: 51}[width], width, "f"),
        "isSignalNAN": lambda: integer(
            int(math.isnan(x) and not a[0].bits >> {16: 9, 32: 22, 64: 51}[width] & 1), 1, "u"
        ),
        "isQuietNAN": lambda: integer(
            int(math.isnan(x) and bool(a[0].bits >> {16: 9, 32: 22, 64: 51}[width] & 1)), 1, "u"
        ),
        "mantissa": lambda: floating(math.frexp(x)[0], width),
    }
    with np.errstate(all="ignore"):
        if name in simple:
            return simple[name]()
        if name == "ldexp":
            return floating(
                float(
                    np.ldexp(
                        np.array(x, {16: np.float16, 32: np.float32, 64: np.float64}[width]),
                        max(-5000, min(5000, a[1].number)),
                    )
                ),
                width,
            )
        if name == "fma":
            return exact_fma(*a)
        if name == "signext_from_bit":
            count = a[1].number
            return integer(cast_signed(Value(a[0].bits & (1 << count) - 1, count)) if count else 0, width)
        if name == "f32_to_u8":
            return integer(0 if math.isnan(x) else int(max(0, min(255, np.rint(x)))), 8, "u")
        if name in ("f16_to_snorm", "f32_to_snorm", "f16_to_unorm", "f32_to_unorm"):
            low, scale = (-1.0, 32767) if "snorm" in name else (0.0, 65535)
            return integer(0 if math.isnan(x) else int(np.rint(max(low, min(1.0, x)) * scale)), 16, "u")
        if name == "pow":
            return floating(float(np.float64(x) ** np.float64(a[1].number)), a[1].width)
        return conversion(name, a) or called(name, a)


def exact_fma(a: Value, b: Value, c: Value) -> Value:
    """One rounding of the exact result."""
    x, y, z = (float(v.number) for v in (a, b, c))
    plain = x * y + z
    if not all(map(math.isfinite, (x, y, z))):
        return floating(plain, a.width)
    exact = Fraction(x) * Fraction(y) + Fraction(z)
    if exact == 0:
        return floating(plain if plain == 0 else 0.0, a.width)
    bits, smallest = {16: (11, -24), 32: (24, -149), 64: (53, -1074)}[a.width]
    size = abs(exact)
    if size >= Fraction(2) ** 1024:
        return floating(math.inf if exact > 0 else -math.inf, a.width)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    exponent -= int(Fraction(2) ** exponent > size)
    unit = Fraction(2) ** max(exponent - bits + 1, smallest)
    scaled = round(size / unit)  # to even
    size = scaled * unit
    size = float(size) if size < Fraction(2) ** 1024 else math.inf
    return floating(size if exact > 0 else -size, a.width)


def cast_signed(value: Value) -> int:
    return value.bits - (1 << value.width) if value.bits >> (value.width - 1) else value.bits


def conversion(name: str, a: list[Value]) -> Value | None:
    """`f32_to_i32` and its like."""
    source, found, target = name.partition("_to_")
    if not found or len(a) != 1 or target[1:] not in ("16", "32", "64") or not source[1:].isdigit():
        return None
    kind, width = target[0], int(target[1:])
    number = (
        a[0].number
        if source[0] in "fu"
        else cast_signed(Value(a[0].bits & (1 << int(source[1:])) - 1, int(source[1:])))
    )
    if kind == "f":
        return floating(float(number), width)
    if source[0] != "f":
        return integer(int(number), width, kind)
    if math.isnan(number):
        return integer(0, width, kind)
    low, high = (-(1 << width - 1), (1 << width - 1) - 1) if kind == "i" else (0, (1 << width) - 1)
    return integer(int(max(low, min(high, number))), width, kind)


def called(name: str, a: list[Value]) -> Value | None:
    """Another instruction used as a function."""
    text = TEXTS.get(name)
    if text is None:
        return None
    state = initial_state({f"S{k}": v for k, v in enumerate(a)})
    Machine(text, state, library).run()
    return Value(state["D0"].bits & (1 << a[0].width) - 1, a[0].width, a[0].kind)


def all_texts() -> dict[str, str]:
    out: dict[str, str] = {}
    for op, text in pcode.items():
        name = op.name.lower()
        for suffix in ("_e32", "_e64"):
            name = name.removesuffix(suffix)
        if type(op).__name__.startswith(("SOP", "VOP")):
            out.setdefault(name, text)
    return out


TEXTS = all_texts()


def initial_state(values: dict[str, Value]) -> dict[str, Value]:
    state = {"D0": Value(0, 64), "D1": Value(0, 64), "VCC": Value(0, 64), "SCC": Value(0, 1), "EXEC": Value(0, 64)}
    state["OPSEL"] = Value(0, 4)
    state["ROUND_NEAREST_EVEN"] = state["ROUND_MODE"] = Value(0, 2)
    return state | values


def instruction_for(row: Opcode, encoding: str, number: int) -> Instruction:
    """The plain form of an opcode: every operand a register of its own."""
    scalar = encoding.startswith("SOP")
    dst, src = [], []
    if {"s32", "a32"} & set(row.dst):
        raise NotEvaluable("not one lane alone")
    for k, t in enumerate(row.dst):
        mask = t in ("mask", "vcc")
        kind = "sgpr" if scalar or mask else "vgpr"
        dst.append(
            Operand(kind, 106 if mask else 80 + 4 * k if scalar else 200 + 8 * k, TYPES[t], "mask" if mask else t)
        )
    for k, t in enumerate(row.src):
        if t == "acc":
            src.append(dst[0])
        elif t in ("vcc", "vccr", "mask"):
            src.append(Operand("sgpr", 106, 2, "mask"))
        elif t in ("k16", "k32"):
            src.append(Operand("literal", 255, 1, "f32" if t == "k32" else "f16", 0x40490FDB if t == "k32" else 0x4248))
        elif t in ("s32", "a32", "imm4"):
            raise NotEvaluable(t)
        else:
            t = "f32" if t == "mix" else t
            src.append(Operand("sgpr" if scalar else "vgpr", 8 * k + 8, TYPES[t], t))
    full = (1 << len(src)) - 1
    return Instruction(
        row.mnemonic, encoding, number, 8, tuple(dst), tuple(src), op_sel_hi=full if encoding == "VOP3P" else 0,
        merge="merge" in row.properties,
    )  # fmt: skip


def fresh_wave(draw: random.Random) -> Wave:
    group = Workgroup((0, 0, 0), 0, Memory(), Findings(), 0, 0)
    wave = Wave(group, 0, MODE, 0)
    wave.write_sgpr(126, (1 << 64) - 1, 2)
    wave.write_sgpr(106, draw.getrandbits(64), 2)
    wave.scc = draw.getrandbits(1)
    return wave


def fill(wave: Wave, i: Instruction, draw: random.Random) -> None:
    """Random operands in every source register."""
    for s in (*i.src, *i.dst):
        if s.type == "mask" or s.is_constant:
            continue
        width = width_of(s.type)
        if s.kind == "sgpr":
            wave.write_sgpr(s.index, operand_bits(draw, width, s.type), s.dwords)
            continue
        packed = s.type.endswith("x2")
        element, count = (16 if s.dwords == 1 else 32, 2) if packed else (width, 1)
        for lane in range(LANES):
            bits = sum(operand_bits(draw, element, s.type) << element * k for k in range(count))
            for k in range(s.dwords):
                wave.vgpr[s.index + k, lane] = bits >> 32 * k & 0xFFFFFFFF


def read_bits(wave: Wave, o: Operand, lane: int) -> int:
    if o.is_constant:
        return o.value
    if o.type == "mask":
        return wave.read_sgpr(o.index, 2)
    if o.kind == "sgpr":
        return wave.read_sgpr(o.index, o.dwords)
    return sum(int(wave.vgpr[o.index + k, lane]) << 32 * k for k in range(o.dwords))


def same(got: int, want: int, type_name: str, tolerance: int) -> bool:
    """Equal bits; for floats also NaN for NaN, and neighbours within `tolerance` steps."""
    if got == want:
        return True
    kind = type_name.partition("x")[0]
    if kind not in ("f16", "f32", "f64"):
        return False
    width = int(kind[1:])
    if type_name.endswith("x2"):
        mask = (1 << width) - 1
        return all(same(got >> s & mask, want >> s & mask, kind, tolerance) for s in (0, width))
    a, b = Value(got & (1 << width) - 1, width, "f"), Value(want & (1 << width) - 1, width, "f")
    if math.isnan(a.number) or math.isnan(b.number):
        return math.isnan(a.number) and math.isnan(b.number)
    if a.number == 0 == b.number:
        return a.bits == b.bits or tolerance > 0
    return a.bits >> (width - 1) == b.bits >> (width - 1) and abs(a.bits - b.bits) <= tolerance


APPROXIMATE = ("v_exp", "v_log", "v_rcp", "v_rsq", "v_sqrt", "v_sin", "v_cos", "v_dot2", "v_div_fmas")
"""One or two units in the last place are allowed: hardware approximates, and the text does not say how it rounds."""

EXPLAINED: dict[str, str] = {
    "v_fract_f32": "the result stays below one, as the instruction set manual says in words",
    "v_fract_f64": "the result stays below one, as the instruction set manual says in words",
    "v_log_f32": "subnormal operands count as zero: compilers scale around that",
    "v_rcp_f32": "no subnormal operands or results: compilers scale around that",
    "v_rcp_iflag_f32": "no subnormal operands or results: compilers scale around that",
    "v_rsq_f32": "no subnormal operands: compilers scale around that",
    "v_sin_f32": "outside 256 turns the manual gives 0; inside, the text multiplies in single precision",
    "v_cos_f32": "outside 256 turns the manual gives 1; inside, the text multiplies in single precision",
    "v_sin_f16": "the text multiplies by 2 pi in half precision",
    "v_cos_f16": "the text multiplies by 2 pi in half precision",
    "v_ldexp_f16": "zero stays zero whatever the exponent, where the text multiplies it by infinity",
    "v_ldexp_f32": "zero stays zero whatever the exponent, where the text multiplies it by infinity",
    "v_ldexp_f64": "zero stays zero whatever the exponent, where the text multiplies it by infinity",
    "v_rndne_f16": "the sign of a zero result is kept, as rint in compiled code needs",
    "v_rndne_f32": "the sign of a zero result is kept, as rint in compiled code needs",
    "v_rndne_f64": "the sign of a zero result is kept, as rint in compiled code needs",
    "v_sat_pk_u8_i16": "a 16-bit result clears the upper half, which the text does not mention",
    "v_cvt_pk_u16_u32": "operands are limited to 16 bits, which the text does not mention",
    "v_cvt_pk_i16_i32": "operands are limited to 16 bits, which the text does not mention",
    **dict.fromkeys(
        (
            "v_div_scale_f32",
            "v_div_scale_f64",
            "v_div_fmas_f32",
            "v_div_fmas_f64",
            "v_div_fixup_f16",
            "v_div_fixup_f32",
            "v_div_fixup_f64",
            "v_div_fixup_legacy_f16",
        ),
        "the sequence must give IEEE quotients over the whole range, which the text as printed does not",
    ),
    "v_frexp_exp_i32_f64": "subnormal operands are normalised, as frexp in compiled code needs",
    "v_frexp_exp_i32_f32": "subnormal operands are normalised, as frexp in compiled code needs",
    "v_frexp_exp_i16_f16": "subnormal operands are normalised, as frexp in compiled code needs",
}
"""Mnemonic to why the core rightly differs from the published text."""


def check_opcode(row: Opcode, encoding: str, number: int, arch: str) -> int:
    """Run one opcode on 64 operand sets; returns how many were compared."""
    text = TEXTS.get(row.mnemonic)
    if text is None:
        raise NotEvaluable("no text")
    i = instruction_for(row, encoding, number)
    draw = random.Random(row.mnemonic)
    step = build_step(i, arch)
    wave = fresh_wave(draw)
    fill(wave, i, draw)
    before = [[read_bits(wave, s, lane) for s in i.src] for lane in range(LANES)]
    old = [[read_bits(wave, d, lane) for d in i.dst] for lane in range(LANES)]
    vcc, scc = wave.vcc, wave.scc
    with np.errstate(all="ignore"):
        step(wave)
    tolerance = 2 if i.mnemonic.startswith(APPROXIMATE) else 0
    scalar, compared = encoding.startswith("SOP"), 0
    for lane in range(1 if scalar else LANES):
        registers = [(s, before[lane][k]) for k, s in enumerate(i.src) if not s.is_constant]
        values = {f"S{k}": Value(bits, register_width(s)) for k, (s, bits) in enumerate(registers)}
        values |= {"D0": Value(old[lane][0] if i.dst and i.dst[0].type != "mask" else 0, 64), "SCC": Value(scc, 1)}
        values |= {f"SIMM{width_of(s.type)}": Value(s.value, width_of(s.type)) for s in i.src if s.is_constant}
        values |= {"VCC": Value(vcc, 64), "laneId": integer(lane), "EXEC": Value((1 << 64) - 1, 64)}
        state = initial_state(values)
        Machine(text, state, library).run()
        expect(i, wave, state, lane, tolerance, scalar, [hex(v) for v in before[lane]])
        compared += 1
    return compared


def expect(
    i: Instruction, wave: Wave, state: dict[str, Value], lane: int, tolerance: int, scalar: bool, shown: list[str]
) -> None:
    for n, d in enumerate(i.dst):
        got = read_bits(wave, d, lane)
        if d.type == "mask":
            if i.mnemonic.startswith("v_mad_"):
                want_bit = state["D1"].bits & 1
            else:
                want_bit = state["D0" if n == 0 else "VCC"].bits >> lane & 1
            assert got >> lane & 1 == want_bit, f"lane mask of {shown}: {got >> lane & 1}, expected {want_bit}"
            continue
        width = width_of(d.type)
        want = state["D0"].bits & (1 << width) - 1
        got &= (1 << width) - 1
        assert same(got, want, d.type, tolerance), f"{shown}: got {got:#x}, expected {want:#x}"
    if scalar and "SCC" in TEXTS[i.mnemonic]:
        assert wave.scc == (state["SCC"].bits & 1), f"SCC of {shown}: {wave.scc}"


def cases() -> list[tuple[str, str, int, Opcode]]:
    out, seen = [], set()
    for arch in ("gfx950", "gfx942"):
        table = opcodes(arch)
        for encoding in ENCODINGS:
            for number, row in table[encoding].items():
                if row.mnemonic not in seen:
                    seen.add(row.mnemonic)
                    out.append((arch, encoding, number, row))
    return out


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_opcodes_agree_with_the_published_pseudocode(encoding: str) -> None:
    compared, wrong, skipped = [], [], []
    for arch, kind, number, row in cases():
        if kind != encoding:
            continue
        try:
            check_opcode(row, kind, number, arch)
        except (NotEvaluable, Unsupported) as e:
            skipped.append((row.mnemonic, str(e)))
        except AssertionError as e:
            if row.mnemonic not in EXPLAINED:
                wrong.append((row.mnemonic, str(e)))
        else:
            compared.append(row.mnemonic)
    assert not wrong, "\n".join(f"{m}: {e}" for m, e in wrong)
    assert len(compared) >= LEAST[encoding], (len(compared), skipped)


LEAST = {"SOP1": 41, "SOP2": 51, "SOPC": 18, "VOP1": 57, "VOP2": 57, "VOPC": 198, "VOP3": 81, "VOP3P": 31}
"""How many opcodes of each encoding the evaluator can judge; the rest use text it does not evaluate."""
