"""Source lines of instructions, from the DWARF line table that Triton always and clang with -g write.

Versions 2 to 5. A damaged table gives no lines, never an error: lines only make findings easier to read.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass

Row = tuple[int, str, int]
"""Address, file, line (0 where the compiler made the instruction up); line -1 ends a sequence."""


class _DamagedError(Exception):
    pass


class _Cursor:
    def __init__(self, data: bytes, at: int = 0) -> None:
        self.data = data
        self.at = at

    def number(self, size: int) -> int:
        if self.at + size > len(self.data):
            raise _DamagedError
        self.at += size
        return int.from_bytes(self.data[self.at - size : self.at], "little")

    def uleb(self) -> int:
        value = shift = 0
        while shift < 70:
            byte = self.number(1)
            value |= (byte & 127) << shift
            shift += 7
            if not byte & 128:
                return value
        raise _DamagedError

    def sleb(self) -> int:
        start = self.at
        value = self.uleb()
        bits = 7 * (self.at - start)
        return value - (1 << bits) if value >> (bits - 1) & 1 else value

    def text(self) -> str:
        end = self.data.find(b"\0", self.at)
        if end < 0:
            raise _DamagedError
        raw, self.at = self.data[self.at : end], end + 1
        return raw.decode("utf-8", "replace")


@dataclass(slots=True)
class _Header:
    min_length: int
    line_base: int
    line_range: int
    opcode_base: int
    operand_counts: list[int]
    files: list[str]
    first_file: int


def _form(cursor: _Cursor, form: int, sections: Mapping[str, bytes], wide: bool) -> str | int:
    """One attribute of a version 5 directory or file entry."""
    if form == 0x08:
        return cursor.text()
    if form in (0x0E, 0x1F):
        offset = cursor.number(8 if wide else 4)
        return _Cursor(sections.get(".debug_str" if form == 0x0E else ".debug_line_str", b""), offset).text()
    sizes = {0x0B: 1, 0x05: 2, 0x06: 4, 0x07: 8, 0x1E: 16}
    if form in sizes:
        return cursor.number(sizes[form])
    if form == 0x0F:
        return cursor.uleb()
    raise _DamagedError


def _entries(cursor: _Cursor, sections: Mapping[str, bytes], wide: bool) -> list[tuple[str, int]]:
    """Path and directory number of each entry of a version 5 table."""
    formats = [(cursor.uleb(), cursor.uleb()) for _ in range(cursor.number(1))]
    out = []
    for _ in range(min(cursor.uleb(), 65536)):
        path, directory = "", 0
        for content, form in formats:
            value = _form(cursor, form, sections, wide)
            if content == 1:
                path = str(value)
            elif content == 2 and isinstance(value, int):
                directory = value
        out.append((path, directory))
    return out


def _old_tables(cursor: _Cursor) -> tuple[list[str], list[tuple[str, int]]]:
    """Directories and files of versions 2 to 4; numbering starts at 1, directory 0 is the compilation's own."""
    directories, files = [""], []
    while text := cursor.text():
        directories.append(text)
    while text := cursor.text():
        files.append((text, cursor.uleb()))
        cursor.uleb()
        cursor.uleb()
    return directories, files


def _joined(files: list[tuple[str, int]], directories: list[str]) -> list[str]:
    out = []
    for path, number in files:
        folder = directories[number] if number < len(directories) else ""
        out.append(path if path.startswith("/") or not folder else f"{folder}/{path}")
    return out


def _header(cursor: _Cursor, version: int, sections: Mapping[str, bytes], wide: bool) -> tuple[_Header, int]:
    if version >= 5:
        cursor.number(2)  # sizes of addresses and segment selectors
    length = cursor.number(8 if wide else 4)
    program = cursor.at + length
    min_length = cursor.number(1)
    if version >= 4:
        cursor.number(1)
    cursor.number(1)
    line_base = cursor.number(1)
    line_range, opcode_base = cursor.number(1), cursor.number(1)
    if not line_range or not opcode_base:
        raise _DamagedError
    counts = [cursor.number(1) for _ in range(opcode_base - 1)]
    if version >= 5:
        directories = [path for path, _ in _entries(cursor, sections, wide)]
        files = _joined(_entries(cursor, sections, wide), directories)
    else:
        old_directories, old_files = _old_tables(cursor)
        files = _joined(old_files, old_directories)
    base = line_base - 256 if line_base > 127 else line_base
    return _Header(min_length, base, line_range, opcode_base, counts, files, 0 if version >= 5 else 1), program


def _run(cursor: _Cursor, end: int, h: _Header) -> list[Row]:
    """The line program: a state machine that appends rows."""
    rows: list[Row] = []
    address, file, line = 0, 1, 1

    def name() -> str:
        number = file - h.first_file
        return h.files[number] if 0 <= number < len(h.files) else ""

    while cursor.at < end:
        op = cursor.number(1)
        if op >= h.opcode_base:
            step = op - h.opcode_base
            address += step // h.line_range * h.min_length
            line += h.line_base + step % h.line_range
            rows.append((address, name(), line))
        elif op == 0:
            length = cursor.uleb()
            after = cursor.at + length
            extended = cursor.number(1) if length else 0
            if extended == 1:
                rows.append((address, "", -1))
                address, file, line = 0, 1, 1
            elif extended == 2:
                address = cursor.number(length - 1)
            cursor.at = after
        elif op == 1:
            rows.append((address, name(), line))
        elif op == 2:
            address += cursor.uleb() * h.min_length
        elif op == 3:
            line += cursor.sleb()
        elif op == 4:
            file = cursor.uleb()
        elif op == 8:
            address += (255 - h.opcode_base) // h.line_range * h.min_length
        elif op == 9:
            address += cursor.number(2)
        else:
            for _ in range(h.operand_counts[op - 1]):
                cursor.uleb()
    return rows


class LineTable:
    """Addresses to source lines. `sections` are the contents of `.debug_line` and the string sections."""

    def __init__(self, sections: Mapping[str, bytes]) -> None:
        self._rows: list[Row] = []
        cursor = _Cursor(sections.get(".debug_line", b""))
        try:
            while cursor.at < len(cursor.data):
                length, wide = cursor.number(4), False
                if length == 0xFFFFFFFF:
                    length, wide = cursor.number(8), True
                end = cursor.at + length
                version = cursor.number(2)
                if not 2 <= version <= 5 or end > len(cursor.data):
                    raise _DamagedError
                header, cursor.at = _header(cursor, version, sections, wide)
                self._rows += _run(cursor, end, header)
                cursor.at = end
        except _DamagedError:
            pass
        self._rows.sort(key=lambda row: row[0])
        self._addresses = [row[0] for row in self._rows]

    def find(self, address: int) -> str | None:
        """`file:line` of the instruction at an image offset, or of the last one before it that has a line."""
        at = bisect_right(self._addresses, address) - 1
        while at >= 0 and self._rows[at][2] == 0:
            at -= 1
        if at < 0 or self._rows[at][2] < 0 or not self._rows[at][1]:
            return None
        return f"{self._rows[at][1]}:{self._rows[at][2]}"
