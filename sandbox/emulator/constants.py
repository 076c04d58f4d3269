"""Inline constants and literals: the bits an operand of each type sees for a 9-bit source code or a 32-bit literal."""

from __future__ import annotations

import struct
from functools import cache

from sandbox.emulator.instruction import Operand, Unsupported
from sandbox.emulator.opcodes import TYPES

LITERAL = 255
_FLOATS = (0.5, -0.5, 1.0, -1.0, 2.0, -2.0, 4.0, -4.0, 0.15915494309189532)
"""Source codes 240 to 248; the last is 1/(2 pi)."""


def _float_bits(value: float, element: str) -> int:
    """A float constant's bits; 16-bit integers that are packed see those of an f32, half of it each.

    (That is what LLVM says of the hardware beside `getInlineEncodingV216`, and emits `v_pk_add_u16 v0, v0, 1.0` for.)
    """
    if element in ("f64", "i64", "u64", "b64"):
        return int.from_bytes(struct.pack("<d", value), "little")
    if element == "f16":
        return int.from_bytes(struct.pack("<e", value), "little")
    bits = int.from_bytes(struct.pack("<f", value), "little")
    return bits >> 16 if element == "bf16" else bits


def bits_of_type(type_name: str) -> int:
    """Width in bits of what one constant fills: 64 for 64-bit scalars, 16 for 16-bit ones, else 32."""
    if type_name in ("f64", "i64", "u64", "b64", "mask", "vcc", "f64x1", "f64x4"):
        return 64
    return 16 if type_name in ("f16", "bf16", "i16", "u16", "b16") else 32


def _element(type_name: str) -> str:
    base, _, count = type_name.partition("x")
    return base if count else {"mask": "b64", "vcc": "b64"}.get(type_name, base)


@cache
def inline_constant(code: int, type_name: str) -> Operand:
    """Operand of source code 128-208 (integers 0 to 64 and -1 to -16) or 240-248 (floats) read as `type_name`."""
    element = _element(type_name)
    width = bits_of_type(type_name)
    if code <= 208:
        number = code - 128 if code <= 192 else 192 - code
        value = number & ((1 << width) - 1)
    else:
        if type_name in ("i16", "u16", "b16"):
            raise Unsupported("decode", f"float inline constant in a {type_name} operand")
        value = _float_bits(_FLOATS[code - 240], element)
    return Operand("inline", code, TYPES.get(type_name, 1), type_name, value)


def literal_constant(word: int, type_name: str) -> Operand:
    """Operand of a 32-bit literal: the high half of a double, sign- or zero-extended for 64-bit integers."""
    element = _element(type_name)
    if element == "f64":
        value = word << 32
    elif element == "i64":
        value = word | (0xFFFFFFFF00000000 if word & 0x80000000 else 0)
    elif bits_of_type(type_name) == 16:
        value = word & 0xFFFF
    else:
        value = word
    return Operand("literal", LITERAL, TYPES.get(type_name, 1), type_name, value)
