"""The part of MessagePack that code-object metadata uses: maps, arrays, strings, numbers, booleans, nil, binary."""

from __future__ import annotations

import struct
from typing import Any

_MAX_DEPTH = 16


class MsgpackError(ValueError):
    """The bytes are not MessagePack, or are nested deeper than metadata ever is."""


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def take(self, count: int) -> bytes:
        if count > len(self.data) - self.at:
            raise MsgpackError("truncated")
        self.at += count
        return self.data[self.at - count : self.at]

    def number(self, fmt: str) -> Any:
        return struct.unpack(">" + fmt, self.take(struct.calcsize(fmt)))[0]

    def text(self, count: int) -> str:
        try:
            return self.take(count).decode("utf-8")
        except UnicodeDecodeError as e:
            raise MsgpackError("a string is not UTF-8") from e

    def value(self, depth: int = 0) -> Any:
        if depth > _MAX_DEPTH:
            raise MsgpackError("nested too deeply")
        tag = self.take(1)[0]
        if tag < 0x80:
            return tag
        if tag < 0x90:
            return self.mapping(tag & 15, depth)
        if tag < 0xA0:
            return self.array(tag & 15, depth)
        if tag < 0xC0:
            return self.text(tag & 31)
        if tag >= 0xE0:
            return tag - 256
        return self.tagged(tag, depth)

    def tagged(self, tag: int, depth: int) -> Any:
        constants = {0xC0: None, 0xC2: False, 0xC3: True}
        if tag in constants:
            return constants[tag]
        numbers = {
            0xCA: "f",
            0xCB: "d",
            0xCC: "B",
            0xCD: "H",
            0xCE: "I",
            0xCF: "Q",
            0xD0: "b",
            0xD1: "h",
            0xD2: "i",
            0xD3: "q",
        }
        if tag in numbers:
            return self.number(numbers[tag])
        if tag in (0xC4, 0xC5, 0xC6):
            return self.take(self.number("BHI"[tag - 0xC4]))
        if tag in (0xD9, 0xDA, 0xDB):
            return self.text(self.number("BHI"[tag - 0xD9]))
        if tag in (0xDC, 0xDD):
            return self.array(self.number("HI"[tag - 0xDC]), depth)
        if tag in (0xDE, 0xDF):
            return self.mapping(self.number("HI"[tag - 0xDE]), depth)
        raise MsgpackError(f"tag {tag:#x} is not used in metadata")

    def array(self, count: int, depth: int) -> list[Any]:
        if count > len(self.data) - self.at:
            raise MsgpackError("truncated")
        return [self.value(depth + 1) for _ in range(count)]

    def mapping(self, count: int, depth: int) -> dict[Any, Any]:
        if count > len(self.data) - self.at:
            raise MsgpackError("truncated")
        out: dict[Any, Any] = {}
        for _ in range(count):
            key = self.value(depth + 1)
            if not isinstance(key, str | int):
                raise MsgpackError("a map key is neither a string nor an integer")
            out[key] = self.value(depth + 1)
        return out


def unpack(data: bytes) -> Any:
    """The first value in `data`; bytes after it are ignored. Raises `MsgpackError`."""
    return _Reader(data).value()
