"""Conversions with fp8, bf8, fp6, bf6 and fp4, with and without a scale factor. Steps, because op_sel picks bytes."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from sandbox.emulator.instruction import Instruction
from sandbox.emulator.machine import U32, Wave, unsupported
from sandbox.emulator.semantics.convert import bf16_to_f32, f32_to_bf16, pack16
from sandbox.emulator.semantics.exact import Array
from sandbox.emulator.semantics.integer import pseudo_random
from sandbox.emulator.semantics.minifloat import Format, decode, encode, encode_stochastic, format_named
from sandbox.emulator.semantics.operands import Reader, Step, merged, raw_reader, row_of
from sandbox.emulator.semantics.operands import reader as typed_reader

_PLAIN_UNPACK = re.compile(r"v_cvt_(pk_)?f32_(fp8|bf8)$")
_PLAIN_PACK = re.compile(r"v_cvt_(pk|sr)_(fp8|bf8)_f32$")
_SCALED_UNPACK = re.compile(r"v_cvt_scalef32_(pk_|pk32_)?(f32|f16|bf16)_(fp8|bf8|fp4|fp6|bf6)$")
_SCALED_PACK = re.compile(r"v_cvt_scalef32_(2xpk16|sr_pk32|sr_pk|sr|pk32|pk)_(fp8|bf8|fp4|fp6|bf6)_(f32|f16|bf16)$")


def matches(mnemonic: str) -> bool:
    """Whether this module implements the mnemonic."""
    return any(p.match(mnemonic) for p in (_PLAIN_UNPACK, _PLAIN_PACK, _SCALED_UNPACK, _SCALED_PACK))


def build(i: Instruction, arch: str) -> Step:
    """The step of a narrow conversion; raises `Unsupported` for modifiers other than op_sel, neg and abs."""
    if i.clamp or i.omod or i.dpp:
        raise unsupported(i, "clamp, omod or dpp")
    if m := _PLAIN_UNPACK.match(i.mnemonic):
        return _unpack(i, format_named(m[2], arch), bool(m[1]), "f32", None)
    if m := _PLAIN_PACK.match(i.mnemonic):
        return _pack(i, format_named(m[2], arch), "f32", stochastic=m[1] == "sr", scale=None)
    if m := _SCALED_UNPACK.match(i.mnemonic):
        fmt, scale = format_named(m[3], arch), _scale(i)
        if m[1] == "pk32_":
            return _unpack32(i, fmt, m[2], scale)
        return _unpack(i, fmt, bool(m[1]), m[2], scale)
    m = _SCALED_PACK.match(i.mnemonic)
    assert m is not None
    fmt, stochastic = format_named(m[2], arch), m[1].startswith("sr")
    if m[1] in ("pk32", "sr_pk32", "2xpk16"):
        return _pack32(i, fmt, m[3], stochastic, _scale(i))
    return _pack(i, fmt, m[3], stochastic, _scale(i))


def _scale(i: Instruction) -> Reader:
    """The power of two that the exponent field of the last source stands for, as doubles."""
    if (i.neg | i.abs) >> (len(i.src) - 1) & 1:
        raise unsupported(i, "neg or abs on the scale")
    read = raw_reader(i.src[-1])

    def scale(w: Wave) -> Array:
        exponent = (read(w) >> np.uint32(23) & np.uint32(0xFF)).astype(np.int32)
        return np.where(exponent == 255, np.nan, np.ldexp(1.0, exponent - 127))

    return scale


def _halves(dword: Array, kind: str) -> list[Array]:
    low, high = (dword & np.uint32(0xFFFF)).astype(np.uint16), (dword >> np.uint32(16)).astype(np.uint16)
    if kind == "f16":
        return [low.view(np.float16).astype(np.float64), high.view(np.float16).astype(np.float64)]
    return [bf16_to_f32(low).astype(np.float64), bf16_to_f32(high).astype(np.float64)]


def _store(w: Wave, row: int, values: list[Array], kind: str) -> None:
    """One value as it is, two packed (f16, bf16) or in consecutive registers (f32)."""
    with np.errstate(all="ignore"):
        if kind == "f32":
            for k, v in enumerate(values):
                w.write_vgpr(row + k, v.astype(np.float32).view(np.uint32))
            return
        narrow = [v.astype(np.float16) if kind == "f16" else f32_to_bf16(v.astype(np.float32)) for v in values]
    for k in range(0, len(narrow), 2):
        w.write_vgpr(row + k // 2, pack16(narrow[k], narrow[k + 1]))


def _source_shift(i: Instruction, fmt: Format, pair: bool) -> int:
    """Where op_sel (or SDWA) says the narrow source starts, in bits."""
    if i.sdwa:
        sel = i.sdwa.src_sel[0]
        if i.sdwa.src_sext[0] or i.sdwa.dst_sel != 6 or (pair and sel < 4):
            raise unsupported(i, "this SDWA selection")
        return {6: 0, 4: 0, 5: 16}.get(sel, 8 * sel)
    if i.encoding != "VOP3":
        return 0
    if pair and fmt.bits == 8:
        if i.op_sel & 0b1110:
            raise unsupported(i, "op_sel")
        return 16 * (i.op_sel & 1)
    # LLVM numbers the bytes with op_sel[0] as the low bit of the selector for fp4, and op_sel[0], op_sel[1] for fp8.
    return 8 * (i.op_sel & 1) + 16 * (i.op_sel >> 1 & 1)


def _unpack(i: Instruction, fmt: Format, pair: bool, kind: str, scale: Reader | None) -> Step:
    if i.neg or i.abs:
        raise unsupported(i, "neg or abs")
    half_result = kind == "f16" and not pair
    if i.op_sel & 0b1100 and not half_result:
        raise unsupported(i, "op_sel on the destination")
    read, row = raw_reader(i.src[0]), row_of(i.dst[0])
    shift, mask = np.uint32(_source_shift(i, fmt, pair)), np.uint32((1 << fmt.bits) - 1)
    high = 16 if i.op_sel >> 3 & 1 else 0

    def step(w: Wave) -> None:
        bits = read(w) >> shift
        factor = scale(w) if scale else 1.0
        values = [decode(bits >> np.uint32(fmt.bits * k) & mask, fmt) * factor for k in range(2 if pair else 1)]
        if half_result:
            with np.errstate(all="ignore"):
                half = values[0].astype(np.float16).view(np.uint16).astype(np.uint32)
            w.write_vgpr(row, merged(w.vgpr[row], half, high, 0xFFFF))
        else:
            _store(w, row, values, kind)

    return step


def _pack_sources(i: Instruction, kind: str, stochastic: bool) -> list[Callable[[Wave], list[Array]]]:
    """Readers of the values to convert: separate f32 operands, an f32 pair, or the halves of one dword."""
    if kind == "f32":
        if i.src[0].type == "f32x2":
            first = row_of(i.src[0])
            return [lambda w: [w.vgpr[first + k].view(np.float32).astype(np.float64) for k in range(2)]]
        count = 1 if stochastic else 2
        reads = [typed_reader(i, n) for n in range(count)]
        return [lambda w: [r(w).astype(np.float64) for r in reads]]
    read = raw_reader(i.src[0])
    if i.src[0].type in ("f16", "bf16"):
        return [lambda w: _halves(read(w), kind)[:1]]
    return [lambda w: _halves(read(w), kind)]


def _saturates(w: Wave) -> bool:
    """MODE.FP16_OVFL: finite results that are too large become the largest number."""
    return bool(w.mode >> 23 & 1)


def _encode(values: list[Array], fmt: Format, noise: Array | None, saturate: bool) -> list[U32]:
    """Codes of each value; the random bits of stochastic rounding advance from one value to the next."""
    if noise is None:
        return [encode(v, fmt, saturate) for v in values]
    out = []
    for v in values:
        out.append(encode_stochastic(v, noise, fmt, saturate))
        noise = pseudo_random(noise)
    return out


def _pack(i: Instruction, fmt: Format, kind: str, stochastic: bool, scale: Reader | None) -> Step:
    """Convert one or two values and put them into the byte or half of the destination that op_sel names."""
    if (i.neg or i.abs) and kind != "f32":
        raise unsupported(i, "neg or abs")
    sources, row = _pack_sources(i, kind, stochastic)[0], row_of(i.dst[0])
    noise = raw_reader(i.src[1]) if stochastic else None
    width = 16 if i.dst[0].type == "b16" else 8
    if width == 16:
        if i.op_sel & 0b0111:
            raise unsupported(i, "op_sel on a source")
        shift = 16 if i.op_sel >> 3 & 1 else 0
    else:
        if i.op_sel & 0b0011:
            raise unsupported(i, "op_sel on a source")
        shift = 8 * (i.op_sel >> 2 & 3)

    def step(w: Wave) -> None:
        factor = scale(w) if scale else 1.0
        values = [v / factor for v in sources(w)]
        codes = _encode(values, fmt, noise(w) if noise else None, _saturates(w))
        bits = codes[0]
        for k, code in enumerate(codes[1:], 1):
            bits = bits | code << np.uint32(fmt.bits * k)
        w.write_vgpr(row, merged(w.vgpr[row], bits, shift, (1 << width) - 1))

    return step


def _stream(w: Wave, row: int, count: int, bits: int) -> list[Array]:
    """`count` fields of `bits` bits that follow each other in registers from `row` on."""
    out = []
    for k in range(count):
        at, shift = bits * k // 32, bits * k % 32
        word = w.vgpr[row + at].astype(np.uint64)
        if shift + bits > 32:
            word = word | w.vgpr[row + at + 1].astype(np.uint64) << np.uint64(32)
        out.append((word >> np.uint64(shift)).astype(np.uint32) & np.uint32((1 << bits) - 1))
    return out


def _unpack32(i: Instruction, fmt: Format, kind: str, scale: Reader) -> Step:
    if i.op_sel or i.neg or i.abs or i.src[0].kind not in ("vgpr", "agpr"):
        raise unsupported(i, "a modifier or source")
    source, row = row_of(i.src[0]), row_of(i.dst[0])

    def step(w: Wave) -> None:
        factor = scale(w)
        _store(w, row, [decode(c, fmt) * factor for c in _stream(w, source, 32, fmt.bits)], kind)

    return step


def _pack32(i: Instruction, fmt: Format, kind: str, stochastic: bool, scale: Reader) -> Step:
    if i.op_sel or i.neg or i.abs or i.src[0].kind not in ("vgpr", "agpr"):
        raise unsupported(i, "a modifier or source")
    rows = [row_of(s) for s in i.src[: 2 if "2xpk16" in i.mnemonic else 1]]
    noise = raw_reader(i.src[1]) if stochastic else None
    row, per_source = row_of(i.dst[0]), 32 // len(rows)

    def values(w: Wave) -> list[Array]:
        if kind == "f32":
            if len(rows) == 2:  # the two sources alternate
                pairs = [w.vgpr[r + k] for k in range(per_source) for r in rows]
            else:
                pairs = [w.vgpr[rows[0] + k] for k in range(32)]
            return [p.view(np.float32).astype(np.float64) for p in pairs]
        return [v for k in range(16) for v in _halves(w.vgpr[rows[0] + k], kind)]

    def step(w: Wave) -> None:
        factor = scale(w)
        random = noise(w) if noise else None
        packed: list[U32] = [np.zeros(64, np.uint32) for _ in range(fmt.bits)]
        codes = _encode([v / factor for v in values(w)], fmt, random, _saturates(w))
        for k, code in enumerate(codes):
            at, shift = fmt.bits * k // 32, fmt.bits * k % 32
            packed[at] = packed[at] | code << np.uint32(shift)
            if shift + fmt.bits > 32:
                packed[at + 1] = packed[at + 1] | code >> np.uint32(32 - shift)
        for k, dword in enumerate(packed):
            w.write_vgpr(row + k, dword)

    return step
