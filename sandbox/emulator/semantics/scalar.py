"""Scalar ALU: SOP1, SOP2, SOPC and SOPK, as functions of unsigned integers that return a result and SCC.

SCC is None where an instruction leaves it alone.
"""

from __future__ import annotations

from collections.abc import Callable

from sandbox.emulator.instruction import EXEC_LO, Instruction
from sandbox.emulator.machine import Wave, unsupported
from sandbox.emulator.semantics.operands import Step, scalar_reader

Result = tuple[int, int | None]
_M32, _M64 = 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF


def _signed(value: int, bits: int = 32) -> int:
    return value - (1 << bits) if value >> (bits - 1) & 1 else value


def _logic(mask: int, function: Callable[[int, int], int]) -> Callable[[int, int], Result]:
    def run(a: int, b: int) -> Result:
        value = function(a, b) & mask
        return value, int(value != 0)

    return run


def _logic_forms() -> dict[str, Callable[[int, int], Result]]:
    functions: dict[str, Callable[[int, int], int]] = {
        "and": lambda a, b: a & b,
        "or": lambda a, b: a | b,
        "xor": lambda a, b: a ^ b,
        "andn2": lambda a, b: a & ~b,
        "orn2": lambda a, b: a | ~b,
        "nand": lambda a, b: ~(a & b),
        "nor": lambda a, b: ~(a | b),
        "xnor": lambda a, b: ~(a ^ b),
    }
    return {f"s_{n}_b{bits}": _logic((1 << bits) - 1, f) for n, f in functions.items() for bits in (32, 64)}


def _add_signed(a: int, b: int) -> Result:
    total = _signed(a) + _signed(b)
    return total & _M32, int(not -(1 << 31) <= total < 1 << 31)


def _sub_signed(a: int, b: int) -> Result:
    total = _signed(a) - _signed(b)
    return total & _M32, int(not -(1 << 31) <= total < 1 << 31)


def _bit_field(bits: int, signed: bool) -> Callable[[int, int], Result]:
    """Offset in the low 5 or 6 bits of the second source, width in its bits 22:16."""

    def run(a: int, b: int) -> Result:
        offset, width = b & (bits - 1), b >> 16 & 0x7F
        value = a >> offset & (1 << min(width, bits - offset)) - 1 if width else 0
        if signed and width:
            whole = _signed(a, bits) >> offset & (1 << bits) - 1
            value = _signed(whole & (1 << width) - 1, width) & (1 << bits) - 1 if width < bits else whole
        return value, int(value != 0)

    return run


def _shift(function: Callable[[int, int], int], bits: int) -> Callable[[int, int], Result]:
    def run(a: int, b: int) -> Result:
        value = function(a, b & (bits - 1)) & (1 << bits) - 1
        return value, int(value != 0)

    return run


def _pick(choose: Callable[[int, int], bool], signed: bool) -> Callable[[int, int], Result]:
    """min and max: SCC says that the first source was taken."""

    def run(a: int, b: int) -> Result:
        first = choose(_signed(a), _signed(b)) if signed else choose(a, b)
        return (a if first else b), int(first)

    return run


def _shift_add(amount: int) -> Callable[[int, int], Result]:
    def run(a: int, b: int) -> Result:
        total = (a << amount) + b
        return total & _M32, int(total > _M32)

    return run


TWO_SOURCES: dict[str, Callable[[int, int], Result]] = {
    **_logic_forms(),
    "s_add_u32": lambda a, b: (a + b & _M32, int(a + b > _M32)),
    "s_sub_u32": lambda a, b: (a - b & _M32, int(a < b)),
    "s_add_i32": _add_signed,
    "s_sub_i32": _sub_signed,
    "s_min_i32": _pick(lambda a, b: a < b, True),
    "s_min_u32": _pick(lambda a, b: a < b, False),
    "s_max_i32": _pick(lambda a, b: a >= b, True),
    "s_max_u32": _pick(lambda a, b: a >= b, False),
    "s_lshl_b32": _shift(lambda a, s: a << s, 32),
    "s_lshl_b64": _shift(lambda a, s: a << s, 64),
    "s_lshr_b32": _shift(lambda a, s: a >> s, 32),
    "s_lshr_b64": _shift(lambda a, s: a >> s, 64),
    "s_ashr_i32": _shift(lambda a, s: _signed(a) >> s, 32),
    "s_ashr_i64": _shift(lambda a, s: _signed(a, 64) >> s, 64),
    "s_bfm_b32": lambda a, b: ((1 << (a & 31)) - 1 << (b & 31) & _M32, None),
    "s_bfm_b64": lambda a, b: ((1 << (a & 63)) - 1 << (b & 63) & _M64, None),
    "s_mul_i32": lambda a, b: (a * b & _M32, None),
    "s_mul_hi_u32": lambda a, b: (a * b >> 32, None),
    "s_mul_hi_i32": lambda a, b: (_signed(a) * _signed(b) >> 32 & _M32, None),
    "s_bfe_u32": _bit_field(32, False),
    "s_bfe_i32": _bit_field(32, True),
    "s_bfe_u64": _bit_field(64, False),
    "s_bfe_i64": _bit_field(64, True),
    "s_absdiff_i32": lambda a, b: ((v := abs(_signed(a - b & _M32)) & _M32), int(v != 0)),
    "s_lshl1_add_u32": _shift_add(1),
    "s_lshl2_add_u32": _shift_add(2),
    "s_lshl3_add_u32": _shift_add(3),
    "s_lshl4_add_u32": _shift_add(4),
    "s_pack_ll_b32_b16": lambda a, b: ((a & 0xFFFF) | (b & 0xFFFF) << 16, None),
    "s_pack_lh_b32_b16": lambda a, b: ((a & 0xFFFF) | (b & 0xFFFF0000), None),
    "s_pack_hh_b32_b16": lambda a, b: (a >> 16 | (b & 0xFFFF0000), None),
}


def _nonzero(function: Callable[[int], int], mask: int) -> Callable[[int], Result]:
    def run(a: int) -> Result:
        value = function(a) & mask
        return value, int(value != 0)

    return run


def _reverse(a: int, bits: int) -> int:
    return int(format(a, f"0{bits}b")[::-1], 2)


def _whole_quads(a: int) -> int:
    """Every group of four bits all ones if any of them is."""
    quads = (a | a >> 1 | a >> 2 | a >> 3) & 0x1111111111111111
    return quads * 15


def _quad_mask(a: int) -> int:
    return sum(1 << k for k in range(16) if a >> 4 * k & 15)


def _lowest(a: int) -> int:
    return (a & -a).bit_length() - 1 if a else _M32


def _highest(a: int, bits: int) -> int:
    return bits - a.bit_length() if a else _M32


def _sign_run(a: int, bits: int) -> int:
    """How many bits below the top equal the sign, plus one; -1 if all do."""
    value = _signed(a, bits)
    magnitude = ~value if value < 0 else value
    return bits - magnitude.bit_length() if magnitude else _M32


def _absolute(a: int) -> Result:
    value = abs(_signed(a)) & _M32
    return value, int(value != 0)


ONE_SOURCE: dict[str, Callable[[int], Result]] = {
    "s_mov_b32": lambda a: (a, None),
    "s_mov_b64": lambda a: (a, None),
    "s_not_b32": _nonzero(lambda a: ~a, _M32),
    "s_not_b64": _nonzero(lambda a: ~a, _M64),
    "s_wqm_b32": _nonzero(_whole_quads, _M32),
    "s_wqm_b64": _nonzero(_whole_quads, _M64),
    "s_quadmask_b32": _nonzero(_quad_mask, _M32),
    "s_quadmask_b64": _nonzero(_quad_mask, _M64),
    "s_brev_b32": lambda a: (_reverse(a, 32), None),
    "s_brev_b64": lambda a: (_reverse(a, 64), None),
    "s_bcnt0_i32_b32": _nonzero(lambda a: 32 - a.bit_count(), _M32),
    "s_bcnt0_i32_b64": _nonzero(lambda a: 64 - a.bit_count(), _M32),
    "s_bcnt1_i32_b32": _nonzero(lambda a: a.bit_count(), _M32),
    "s_bcnt1_i32_b64": _nonzero(lambda a: a.bit_count(), _M32),
    "s_ff0_i32_b32": lambda a: (_lowest(~a & _M32), None),
    "s_ff0_i32_b64": lambda a: (_lowest(~a & _M64), None),
    "s_ff1_i32_b32": lambda a: (_lowest(a), None),
    "s_ff1_i32_b64": lambda a: (_lowest(a), None),
    "s_flbit_i32_b32": lambda a: (_highest(a, 32), None),
    "s_flbit_i32_b64": lambda a: (_highest(a, 64), None),
    "s_flbit_i32": lambda a: (_sign_run(a, 32), None),
    "s_flbit_i32_i64": lambda a: (_sign_run(a, 64), None),
    "s_sext_i32_i8": lambda a: (_signed(a & 0xFF, 8) & _M32, None),
    "s_sext_i32_i16": lambda a: (_signed(a & 0xFFFF, 16) & _M32, None),
    "s_abs_i32": _absolute,
    "s_bitreplicate_b64_b32": lambda a: (sum((a >> k & 1) * (3 << 2 * k) for k in range(32)), None),
}

_SAVE_EXEC: dict[str, Callable[[int, int], int]] = {
    "and": lambda s, e: s & e,
    "or": lambda s, e: s | e,
    "xor": lambda s, e: s ^ e,
    "andn2": lambda s, e: s & ~e,
    "orn2": lambda s, e: s | ~e,
    "nand": lambda s, e: ~(s & e),
    "nor": lambda s, e: ~(s | e),
    "xnor": lambda s, e: ~(s ^ e),
    "andn1": lambda s, e: ~s & e,
    "orn1": lambda s, e: ~s | e,
}
"""New EXEC from the source and the old EXEC, of s_*_saveexec_b64 and s_*_wrexec_b64."""

_COMPARE: dict[str, Callable[[int, int], bool]] = {
    "eq": lambda a, b: a == b,
    "lg": lambda a, b: a != b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
}


def build(i: Instruction) -> Step:
    """The step of a SOP1, SOP2 or SOPC instruction that is no branch, or of a SOPK one that touches no mode."""
    if i.encoding == "SOPC":
        return _compare(i)
    if i.encoding == "SOPK":
        return _with_immediate(i)
    if i.mnemonic.endswith(("_saveexec_b64", "_wrexec_b64")):
        return _save_exec(i)
    if i.mnemonic in _STATEFUL:
        return _STATEFUL[i.mnemonic](i)
    two, one = TWO_SOURCES.get(i.mnemonic), ONE_SOURCE.get(i.mnemonic)
    if two is None and one is None:
        raise unsupported(i)
    index, dwords = i.dst[0].index, i.dst[0].dwords
    reads = [scalar_reader(s) for s in i.src]

    def step(w: Wave) -> None:
        value, scc = two(reads[0](w), reads[1](w)) if two else one(reads[0](w))  # type: ignore[misc]
        w.write_sgpr(index, value, dwords)
        if scc is not None:
            w.scc = scc

    return step


def _save_exec(i: Instruction) -> Step:
    function = _SAVE_EXEC[i.mnemonic.split("_")[1]]
    read, index, keep_old = scalar_reader(i.src[0]), i.dst[0].index, i.mnemonic.endswith("_saveexec_b64")

    def step(w: Wave) -> None:
        old = w.exec
        new = function(read(w), old) & _M64
        w.write_sgpr(index, old if keep_old else new, 2)
        w.write_sgpr(EXEC_LO, new, 2)
        w.scc = int(new != 0)

    return step


def _compare(i: Instruction) -> Step:
    if i.mnemonic.startswith("s_bitcmp"):
        value, bit = scalar_reader(i.src[0]), scalar_reader(i.src[1])
        wanted, bits = int(i.mnemonic[8]), 32 * i.src[0].dwords

        def test(w: Wave) -> None:
            w.scc = int((value(w) >> (bit(w) & (bits - 1)) & 1) == wanted)

        return test
    if not i.mnemonic.startswith("s_cmp_"):
        raise unsupported(i)
    _, _, name, kind = i.mnemonic.split("_")
    function, a, b, signed = _COMPARE[name], scalar_reader(i.src[0]), scalar_reader(i.src[1]), kind == "i32"

    def step(w: Wave) -> None:
        x, y = a(w), b(w)
        w.scc = int(function(_signed(x), _signed(y)) if signed else function(x, y))

    return step


def _with_immediate(i: Instruction) -> Step:
    """SOPK: a 16-bit immediate, sign-extended but for unsigned comparisons."""
    constant = _signed(i.imm, 16)
    if i.mnemonic.startswith("s_cmpk_"):
        _, _, name, kind = i.mnemonic.split("_")
        function, read, signed = _COMPARE[name], scalar_reader(i.src[0]), kind == "i32"

        def compare(w: Wave) -> None:
            w.scc = int(function(_signed(read(w)), constant) if signed else function(read(w), i.imm))

        return compare
    index = i.dst[0].index if i.dst else 0
    if i.mnemonic == "s_movk_i32":
        return lambda w: w.write_sgpr(index, constant & _M32)
    if i.mnemonic == "s_cmovk_i32":
        return lambda w: w.write_sgpr(index, constant & _M32) if w.scc else None
    if i.mnemonic == "s_mulk_i32":
        return lambda w: w.write_sgpr(index, w.sgpr[index] * constant & _M32)
    if i.mnemonic != "s_addk_i32":
        raise unsupported(i)

    def add(w: Wave) -> None:
        value, overflow = _add_signed(w.sgpr[index], constant & _M32)
        w.write_sgpr(index, value)
        w.scc = overflow or 0

    return add


def _carry(borrow: bool) -> Callable[[Instruction], Step]:
    def builder(i: Instruction) -> Step:
        a, b, index = scalar_reader(i.src[0]), scalar_reader(i.src[1]), i.dst[0].index

        def step(w: Wave) -> None:
            total = a(w) - b(w) - w.scc if borrow else a(w) + b(w) + w.scc
            w.write_sgpr(index, total & _M32)
            w.scc = int(total < 0 or total > _M32)

        return step

    return builder


def _select(i: Instruction) -> Step:
    a, b, index, dwords = scalar_reader(i.src[0]), scalar_reader(i.src[1]), i.dst[0].index, i.dst[0].dwords
    return lambda w: w.write_sgpr(index, a(w) if w.scc else b(w), dwords)


def _conditional_move(i: Instruction) -> Step:
    a, index, dwords = scalar_reader(i.src[0]), i.dst[0].index, i.dst[0].dwords
    return lambda w: w.write_sgpr(index, a(w), dwords) if w.scc else None


def _set_bit(value: int) -> Callable[[Instruction], Step]:
    def builder(i: Instruction) -> Step:
        read, index, dwords = scalar_reader(i.src[0]), i.dst[0].index, i.dst[0].dwords

        def step(w: Wave) -> None:
            bit = 1 << (read(w) & (32 * dwords - 1))
            old = w.read_sgpr(index, dwords)
            w.write_sgpr(index, old | bit if value else old & ~bit, dwords)

        return step

    return builder


def _relative(reads: bool) -> Callable[[Instruction], Step]:
    """s_movrels, s_movreld: the register number is offset by M0."""

    def builder(i: Instruction) -> Step:
        source, target, dwords = i.src[0], i.dst[0].index, i.dst[0].dwords
        if reads and source.kind != "sgpr":
            raise unsupported(i, "a constant source")
        read = scalar_reader(source)

        def step(w: Wave) -> None:
            index = (source.index if reads else target) + w.m0
            if index + dwords > 102:
                raise unsupported(i, f"register {index} through M0")
            value = w.read_sgpr(index, dwords) if reads else read(w)
            w.write_sgpr(target if reads else index, value, dwords)

        return step

    return builder


_STATEFUL: dict[str, Callable[[Instruction], Step]] = {
    "s_addc_u32": _carry(False),
    "s_subb_u32": _carry(True),
    "s_cselect_b32": _select,
    "s_cselect_b64": _select,
    "s_cmov_b32": _conditional_move,
    "s_cmov_b64": _conditional_move,
    "s_bitset0_b32": _set_bit(0),
    "s_bitset0_b64": _set_bit(0),
    "s_bitset1_b32": _set_bit(1),
    "s_bitset1_b64": _set_bit(1),
    "s_movrels_b32": _relative(True),
    "s_movrels_b64": _relative(True),
    "s_movreld_b32": _relative(False),
    "s_movreld_b64": _relative(False),
}
