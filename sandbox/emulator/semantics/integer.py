"""Integer and bit operations of the vector ALU. Arrays wrap around; shifts use the low bits of the amount."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from sandbox.emulator.semantics.exact import Array

_U32, _I32, _U64, _I64 = np.uint32, np.int32, np.uint64, np.int64


def _amount(shift: Array, bits: int, like: Array) -> Array:
    result: Array = (shift & shift.dtype.type(bits - 1)).astype(like.dtype)
    return result


def _left(bits: int) -> Callable[[Array, Array], Array]:
    return lambda s, a: a << _amount(s, bits, a)


def _right(bits: int) -> Callable[[Array, Array], Array]:
    return lambda s, a: a >> _amount(s, bits, a)


def _wide(a: Array) -> Array:
    return a.astype(_I64 if a.dtype.kind == "i" else _U64)


def _mul_hi(a: Array, b: Array) -> Array:
    result: Array = (_wide(a) * _wide(b) >> _wide(a).dtype.type(32)).astype(a.dtype)
    return result


def _low24(a: Array) -> Array:
    return a & _U32(0xFFFFFF)


def _signed24(a: Array) -> Array:
    return (a << _I32(8)) >> _I32(8)


def _mul_hi_24(narrow: Callable[[Array], Array]) -> Callable[[Array, Array], Array]:
    return lambda a, b: _mul_hi(narrow(a), narrow(b))


def _bit_field_unsigned(a: Array, offset: Array, width: Array) -> Array:
    mask = (_U32(1) << (width & _U32(31))) - _U32(1)
    result: Array = a >> (offset & _U32(31)) & mask
    return result


def _bit_field_signed(a: Array, offset: Array, width: Array) -> Array:
    count = width & _U32(31)
    field = (a >> (offset & _U32(31)).view(_I32)).view(_U32)  # bits above 31 are copies of the sign
    top = (_U32(32) - count) & _U32(31)
    extended = (field << top).view(_I32) >> top.view(_I32)
    return np.where(count == 0, _I32(0), extended)


def _perm(a: Array, b: Array, selector: Array) -> Array:
    """Each selector byte picks a byte of b (0-3) or a (4-7), a replicated sign bit (8-11), 0 (12) or 0xff (above)."""
    source = b.astype(_U64) | a.astype(_U64) << _U64(32)
    out = np.zeros(a.shape, _U32)
    for k in range(4):
        pick = selector >> _U32(8 * k) & _U32(0xFF)
        byte = (source >> (pick & _U32(7)).astype(_U64) * _U64(8)).astype(_U32) & _U32(0xFF)
        word_sign = (source >> ((pick & _U32(3)).astype(_U64) * _U64(16) + _U64(15))).astype(_U32) & _U32(1)
        special = np.where(pick < 12, word_sign * _U32(0xFF), np.where(pick == 12, _U32(0), _U32(0xFF)))
        out |= np.where(pick < 8, byte, special).astype(_U32) << _U32(8 * k)
    return out


def _align(unit: int) -> Callable[[Array, Array, Array], Array]:
    def run(a: Array, b: Array, shift: Array) -> Array:
        amount = (shift & _U32(31 // unit)).astype(_U64) * _U64(unit)
        result: Array = ((b.astype(_U64) | a.astype(_U64) << _U64(32)) >> amount).astype(_U32)
        return result

    return run


def _bytes_of(a: Array) -> list[Array]:
    return [(a >> _U32(8 * k)) & _U32(0xFF) for k in range(4)]


def _sad_u8(a: Array, b: Array, c: Array) -> Array:
    for x, y in zip(_bytes_of(a), _bytes_of(b), strict=True):
        c = c + np.abs(x.astype(_I32) - y.astype(_I32)).astype(_U32)
    return c


def masked_sad_u8(a: Array, b: Array, c: Array) -> Array:
    """Sum of absolute differences of bytes onto `c`, without those where `b` is zero."""
    for x, y in zip(_bytes_of(a), _bytes_of(b), strict=True):
        c = c + np.where(y == 0, 0, np.abs(x.astype(_I32) - y.astype(_I32))).astype(_U32)
    return c


def quad_windows(a: Array) -> list[Array]:
    """The four dwords that start at bytes 0 to 3 of a 64-bit value."""
    return [(a >> _U64(8 * k)).astype(_U32) for k in range(4)]


def _four_sums(one: Callable[..., Array]) -> Callable[..., Array]:
    """`one` over each window, with 16-bit sums packed into 64 bits."""

    def run(a: Array, b: Array, c: Array) -> Array:
        out = np.zeros_like(c)
        for k, window in enumerate(quad_windows(a)):
            total = one(window, b, (c >> _U64(16 * k)).astype(_U32))
            out |= (total & _U32(0xFFFF)).astype(_U64) << _U64(16 * k)
        return out

    return run


def _sad_u16(a: Array, b: Array, c: Array) -> Array:
    for k in (0, 16):
        x, y = a >> _U32(k) & _U32(0xFFFF), b >> _U32(k) & _U32(0xFFFF)
        c = c + np.abs(x.astype(_I32) - y.astype(_I32)).astype(_U32)
    return c


def _lerp_u8(a: Array, b: Array, c: Array) -> Array:
    out = np.zeros(a.shape, _U32)
    for k, (x, y, z) in enumerate(zip(_bytes_of(a), _bytes_of(b), _bytes_of(c), strict=True)):
        out |= ((x + y + (z & _U32(1))) >> _U32(1)) << _U32(8 * k)
    return out


def reverse_bits(a: Array) -> Array:
    """The 32 bits in the opposite order."""
    raw = np.ascontiguousarray(a).view(np.uint8).reshape(-1, 4)
    bits = np.unpackbits(raw, axis=1, bitorder="little")[:, ::-1]
    return np.packbits(bits, axis=1, bitorder="little").reshape(-1).view(_U32)


def population_count(a: Array) -> Array:
    """Number of set bits of each 32-bit element."""
    raw = np.ascontiguousarray(a).view(np.uint8).reshape(-1, 4)
    result: Array = np.unpackbits(raw, axis=1).sum(axis=1).astype(_U32)
    return result


def _bit_length(a: Array) -> Array:
    return np.frexp(a.astype(np.float64))[1].astype(_U32)


def _first_high(a: Array) -> Array:
    """Leading zeros; all ones where there is no bit."""
    return np.where(a == 0, _U32(0xFFFFFFFF), _U32(32) - _bit_length(a))


def _first_low(a: Array) -> Array:
    lowest = a & (~a + _U32(1))
    return np.where(a == 0, _U32(0xFFFFFFFF), _bit_length(lowest) - _U32(1))


def _first_high_signed(a: Array) -> Array:
    """Position, from the top, of the first bit that differs from the sign; -1 where none does."""
    magnitude = np.where(a < 0, ~a, a).view(_U32)
    return np.where(magnitude == 0, _U32(0xFFFFFFFF), _U32(32) - _bit_length(magnitude)).view(_I32)


def _median(a: Array, b: Array, c: Array) -> Array:
    result: Array = np.maximum(np.minimum(a, b), np.minimum(np.maximum(a, b), c))
    return result


def _add_carry(a: Array, b: Array) -> tuple[Array, Array]:
    total = a.astype(_U64) + b.astype(_U64)
    return total.astype(_U32), total > 0xFFFFFFFF


def _add_with_carry(a: Array, b: Array, carry: Array) -> tuple[Array, Array]:
    total = a.astype(_U64) + b.astype(_U64) + carry.astype(_U64)
    return total.astype(_U32), total > 0xFFFFFFFF


def _sub_borrow(a: Array, b: Array) -> tuple[Array, Array]:
    return a - b, a < b


def _sub_with_borrow(a: Array, b: Array, borrow: Array) -> tuple[Array, Array]:
    return a - b - borrow.astype(_U32), a.astype(_U64) < b.astype(_U64) + borrow.astype(_U64)


def _mad_wide_unsigned(a: Array, b: Array, c: Array) -> tuple[Array, Array]:
    product = a.astype(_U64) * b.astype(_U64)
    total = product + c
    return total, total < product


def _mad_wide_signed(a: Array, b: Array, c: Array) -> tuple[Array, Array]:
    product = a.astype(_I64) * b.astype(_I64)
    total = product + c
    overflow = ((product ^ total) & (c ^ total)) < 0
    return total, (total < 0) ^ overflow  # bit 64 of the exact sum


def _bitmask(count: Array, offset: Array) -> Array:
    return ((_U32(1) << (count & _U32(31))) - _U32(1)) << (offset & _U32(31))


def _narrow_pair(low: int, high: int) -> Callable[[Array, Array, Array], Array]:
    """Two arithmetic right shifts, clamped to a byte each, in the low 16 bits."""

    def run(a: Array, b: Array, shift: Array) -> Array:
        amount = (shift & _U32(31)).view(_I32)
        first, second = np.clip(a >> amount, low, high), np.clip(b >> amount, low, high)
        return ((first & 0xFF) | (second & 0xFF) << 8).astype(np.uint16)

    return run


def pseudo_random(state: Array) -> Array:
    """One step of the linear feedback register that stochastic rounding uses."""
    feedback = np.where(state >> _U32(31) != 0, _U32(197), _U32(0))
    result: Array = state << _U32(1) ^ feedback
    return result


def _saturate_bytes(a: Array) -> Array:
    low = np.clip(a.astype(np.uint16).view(np.int16), 0, 255).astype(_U32)
    high = np.clip((a >> _U32(16)).astype(np.uint16).view(np.int16), 0, 255).astype(_U32)
    return low | high << _U32(8)


def _pack_saturated(a: Array, b: Array, low: int, high: int) -> Array:
    first, second = np.clip(a, low, high).astype(np.int64), np.clip(b, low, high).astype(np.int64)
    return ((first & 0xFFFF) | (second & 0xFFFF) << 16).astype(_U32)


def _common(kind: str) -> dict[str, Callable[..., Array]]:
    return {
        f"v_min_{kind}": np.minimum,
        f"v_max_{kind}": np.maximum,
        f"v_min3_{kind}": lambda a, b, c: np.minimum(np.minimum(a, b), c),
        f"v_max3_{kind}": lambda a, b, c: np.maximum(np.maximum(a, b), c),
        f"v_med3_{kind}": _median,
        f"v_add_{kind}": np.add,
        f"v_sub_{kind}": np.subtract,
        f"v_subrev_{kind}": lambda a, b: b - a,
    }


OPERATIONS: dict[str, Callable[..., Any]] = {
    **_common("u16"),
    **_common("i16"),
    **_common("u32"),
    **_common("i32"),
    **{f"v_mad_{k}": lambda a, b, c: a * b + c for k in ("u16", "i16", "legacy_u16", "legacy_i16")},
    "v_mov_b32": lambda a: a,
    "v_mov_b64": lambda a: a,
    "v_not_b32": np.invert,
    "v_and_b32": np.bitwise_and,
    "v_or_b32": np.bitwise_or,
    "v_xor_b32": np.bitwise_xor,
    "v_xnor_b32": lambda a, b: ~(a ^ b),
    "v_cndmask_b32": lambda a, b, m: np.where(m, b, a),
    "v_bfrev_b32": reverse_bits,
    "v_bcnt_u32_b32": lambda a, b: population_count(a) + b,
    "v_ffbh_u32": _first_high,
    "v_ffbl_b32": _first_low,
    "v_ffbh_i32": _first_high_signed,
    "v_lshlrev_b32": _left(32),
    "v_lshrrev_b32": _right(32),
    "v_ashrrev_i32": _right(32),
    "v_lshlrev_b16": _left(16),
    "v_lshrrev_b16": _right(16),
    "v_ashrrev_i16": _right(16),
    "v_lshlrev_b64": _left(64),
    "v_lshrrev_b64": _right(64),
    "v_ashrrev_i64": _right(64),
    "v_mul_lo_u16": np.multiply,
    "v_mul_lo_u32": np.multiply,
    "v_mul_hi_u32": _mul_hi,
    "v_mul_hi_i32": _mul_hi,
    "v_mul_u32_u24": lambda a, b: _low24(a) * _low24(b),
    "v_mul_hi_u32_u24": _mul_hi_24(_low24),
    "v_mul_i32_i24": lambda a, b: _signed24(a) * _signed24(b),
    "v_mul_hi_i32_i24": _mul_hi_24(_signed24),
    "v_mad_u32_u24": lambda a, b, c: _low24(a) * _low24(b) + c,
    "v_mad_i32_i24": lambda a, b, c: _signed24(a) * _signed24(b) + c,
    "v_mad_u32_u16": lambda a, b, c: a.astype(_U32) * b.astype(_U32) + c,
    "v_mad_i32_i16": lambda a, b, c: a.astype(_I32) * b.astype(_I32) + c,
    "v_mad_u64_u32": _mad_wide_unsigned,
    "v_mad_i64_i32": _mad_wide_signed,
    "v_add_co_u32": _add_carry,
    "v_addc_co_u32": _add_with_carry,
    "v_sub_co_u32": _sub_borrow,
    "v_subrev_co_u32": lambda a, b: _sub_borrow(b, a),
    "v_subb_co_u32": _sub_with_borrow,
    "v_subbrev_co_u32": lambda a, b, c: _sub_with_borrow(b, a, c),
    "v_bfe_u32": _bit_field_unsigned,
    "v_bfe_i32": _bit_field_signed,
    "v_bfi_b32": lambda m, a, b: (m & a) | (~m & b),
    "v_bfm_b32": _bitmask,
    "v_alignbit_b32": _align(1),
    "v_alignbyte_b32": _align(8),
    "v_perm_b32": _perm,
    "v_lerp_u8": _lerp_u8,
    "v_sad_u8": _sad_u8,
    "v_sad_hi_u8": lambda a, b, c: (_sad_u8(a, b, np.zeros_like(c)) << _U32(16)) + c,
    "v_msad_u8": masked_sad_u8,
    "v_qsad_pk_u16_u8": _four_sums(_sad_u8),
    "v_mqsad_pk_u16_u8": _four_sums(masked_sad_u8),
    "v_sad_u16": _sad_u16,
    "v_sad_u32": lambda a, b, c: np.where(a > b, a - b, b - a) + c,
    "v_lshl_add_u32": lambda a, s, c: (a << (s & _U32(31))) + c,
    "v_add_lshl_u32": lambda a, b, s: (a + b) << (s & _U32(31)),
    "v_lshl_add_u64": lambda a, s, c: (a << (s & _U32(7)).astype(_U64)) + c,
    "v_add3_u32": lambda a, b, c: a + b + c,
    "v_lshl_or_b32": lambda a, s, c: a << (s & _U32(31)) | c,
    "v_and_or_b32": lambda a, b, c: (a & b) | c,
    "v_or3_b32": lambda a, b, c: a | b | c,
    "v_xad_u32": lambda a, b, c: (a ^ b) + c,
    "v_prng_b32": pseudo_random,
    "v_sat_pk_u8_i16": _saturate_bytes,
    "v_ashr_pk_i8_i32": _narrow_pair(-128, 127),
    "v_ashr_pk_u8_i32": _narrow_pair(0, 255),
    "v_cvt_pk_u16_u32": lambda a, b: _pack_saturated(a, b, 0, 0xFFFF),
    "v_cvt_pk_i16_i32": lambda a, b: _pack_saturated(a, b, -0x8000, 0x7FFF),
}
"""Mnemonic to a function of its sources; forms with a carry return the value and the lanes that carry."""


def _saturating(exact: Callable[..., Array]) -> Callable[..., Array]:
    """The operation computed in 64 bits, limited to what its type can hold."""

    def run(*sources: Array) -> Array:
        dtype = sources[-1].dtype
        limits = np.iinfo(dtype)
        return np.clip(exact(*(s.astype(_I64) for s in sources)), limits.min, limits.max).astype(dtype)

    return run


def _forms(name: str, kinds: tuple[str, ...], exact: Callable[..., Array]) -> dict[str, Callable[..., Array]]:
    return {f"v_{name}_{kind}": _saturating(exact) for kind in kinds}


CLAMPED: dict[str, Callable[..., Any]] = {
    **_forms("add", ("u16", "i16", "u32", "i32"), lambda a, b: a + b),
    **_forms("sub", ("u16", "i16", "u32", "i32"), lambda a, b: a - b),
    **_forms("subrev", ("u16", "u32"), lambda a, b: b - a),
    **_forms("mul_lo", ("u16",), lambda a, b: a * b),
    **_forms("mad", ("u16", "i16"), lambda a, b, c: a * b + c),
    "v_add_co_u32": lambda a, b: (_saturating(lambda x, y: x + y)(a, b), _add_carry(a, b)[1]),
    "v_sub_co_u32": lambda a, b: (_saturating(lambda x, y: x - y)(a, b), _sub_borrow(a, b)[1]),
}
"""Integer operations under the clamp bit: they saturate instead of wrapping around."""
