"""The ELF side of a code object: loaded image, symbols, notes and relocations. Knows nothing of kernels."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from sandbox.errors import InputError

_EM_AMDGPU = 224
_MACHINES = {0x4C: "gfx942", 0x4F: "gfx950"}
_OTHER_MACHINES = {
    0x2F: "gfx906", 0x30: "gfx908", 0x31: "gfx909", 0x33: "gfx1010", 0x36: "gfx1030", 0x3F: "gfx90a", 0x40: "gfx940",
    0x4B: "gfx941", 0x41: "gfx1100", 0x46: "gfx1101", 0x47: "gfx1102", 0x44: "gfx1103", 0x48: "gfx1200",
    0x4E: "gfx1201",
}  # fmt: skip
_PT_LOAD, _PT_DYNAMIC, _PT_NOTE = 1, 2, 4
_SHT_SYMTAB, _SHT_DYNSYM = 2, 11
_DT_RELA, _DT_RELASZ = 7, 8
_R_ABS64, _R_RELATIVE64 = 3, 13
_MAX_IMAGE_BYTES = 1 << 30


@dataclass(frozen=True, slots=True)
class Symbol:
    """A named address of the image, relative to its start; `section` 0 is undefined."""

    name: str
    address: int
    size: int
    section: int


@dataclass(frozen=True, slots=True)
class Segment:
    """A loaded part: `[address, address + size)` of the image."""

    address: int
    size: int
    executable: bool
    writable: bool


@dataclass(frozen=True)
class Elf:
    """A parsed code object. `image` is laid out by virtual address, from 0."""

    arch: str
    image: bytes
    segments: tuple[Segment, ...]
    symbols: dict[str, Symbol]
    notes: tuple[tuple[str, int, bytes], ...]
    """Owner, type and contents of each note."""
    relocations: tuple[tuple[int, int], ...]
    """Image offset and the value, relative to the load address, of each 64-bit word to fill in."""
    debug: dict[str, bytes]
    """Contents of the debug sections that source lines are read from; empty where there are none."""


def _bad(what: str) -> InputError:
    return InputError(f"The code object cannot be read: {what}.", remedy="Compile the kernel again.")


def _unpack(fmt: str, data: bytes, offset: int, what: str) -> tuple[int, ...]:
    if offset < 0 or offset + struct.calcsize(fmt) > len(data):
        raise _bad(f"it ends inside {what}")
    return struct.unpack_from(fmt, data, offset)


def _string(data: bytes, offset: int) -> str:
    end = data.find(b"\0", offset)
    if offset < 0 or offset >= len(data) or end < 0:
        raise _bad("a name lies outside its string table")
    return data[offset:end].decode("utf-8", "replace")


def _check_header(data: bytes) -> str:
    if not data:
        raise InputError("The file is empty.", remedy="Give a code object (.hsaco) of gfx942 or gfx950.")
    if data.startswith((b"__CLANG_OFFLOAD_BUNDLE__", b"CCOB")):
        raise InputError(
            "This is an offload bundle, not a code object.",
            remedy="Compile with --no-gpu-bundle-output, or unpack it with clang-offload-bundler.",
        )
    if data[:4] != b"\x7fELF":
        raise InputError("This is not an ELF file.", remedy="Give a code object (.hsaco) of gfx942 or gfx950.")
    if len(data) < 64:
        raise _bad("it ends inside the ELF header")
    if data[4] != 2 or data[5] != 1:
        raise _bad("it is not 64-bit little-endian")
    machine, flags = _unpack("<H", data, 18, "the header")[0], _unpack("<I", data, 48, "the header")[0]
    if machine != _EM_AMDGPU:
        raise InputError("This ELF file is not for an AMD GPU.", remedy="Give a code object of gfx942 or gfx950.")
    arch = _MACHINES.get(flags & 0xFF)
    if arch is None:
        name = _OTHER_MACHINES.get(flags & 0xFF, f"machine {flags & 0xFF:#x}")
        raise InputError(
            f"The code object is for {name}; the emulator runs gfx942 and gfx950.", remedy="Compile for one of them."
        )
    return arch


def _program_headers(data: bytes) -> list[tuple[int, ...]]:
    offset = _unpack("<Q", data, 32, "the header")[0]
    size, count = _unpack("<HH", data, 54, "the header")
    if size != 56:
        raise _bad("the program headers have an unknown size")
    return [_unpack("<IIQQQQQQ", data, offset + k * size, "the program headers") for k in range(count)]


def _load(data: bytes, headers: list[tuple[int, ...]]) -> tuple[bytes, tuple[Segment, ...]]:
    loads = [h for h in headers if h[0] == _PT_LOAD]
    if not loads:
        raise _bad("nothing in it is loaded (an object file must be linked first)")
    end = max(h[3] + h[6] for h in loads)
    if end > _MAX_IMAGE_BYTES:
        raise _bad("its image is larger than 1 GiB")
    image = bytearray(end)
    segments = []
    for _, flags, offset, address, _, file_size, memory_size, _ in loads:
        if file_size > memory_size or offset + file_size > len(data):
            raise _bad("it ends inside a loaded segment")
        image[address : address + file_size] = data[offset : offset + file_size]
        segments.append(Segment(address, memory_size, bool(flags & 1), bool(flags & 2)))
    return bytes(image), tuple(segments)


def _notes(data: bytes, headers: list[tuple[int, ...]]) -> tuple[tuple[str, int, bytes], ...]:
    out = []
    for h in headers:
        if h[0] != _PT_NOTE:
            continue
        at, end = h[2], h[2] + h[5]
        if end > len(data):
            raise _bad("it ends inside a note")
        while at + 12 <= end:
            name_size, size, kind = _unpack("<III", data, at, "a note")
            name_at = at + 12
            body = name_at + (name_size + 3 & ~3)
            if body + size > end:
                raise _bad("a note runs past its segment")
            out.append(
                (
                    data[name_at : name_at + name_size].rstrip(b"\0").decode("ascii", "replace"),
                    kind,
                    data[body : body + size],
                )
            )
            at = body + (size + 3 & ~3)
    return tuple(out)


def _symbols(data: bytes) -> dict[str, Symbol]:
    offset = _unpack("<Q", data, 40, "the header")[0]
    size, count, _ = _unpack("<HHH", data, 58, "the header")
    if count and size != 64:
        raise _bad("the section headers have an unknown size")
    sections = [_unpack("<IIQQQQIIQQ", data, offset + k * size, "the section headers") for k in range(count)]
    out: dict[str, Symbol] = {}
    for kind in (_SHT_SYMTAB, _SHT_DYNSYM):
        for s in sections:
            if s[1] != kind:
                continue
            if s[6] >= count:
                raise _bad("a symbol table has no string table")
            strings = data[sections[s[6]][4] : sections[s[6]][4] + sections[s[6]][5]]
            for at in range(s[4], s[4] + s[5] - 23, 24):
                name, _, _, section, value, length = _unpack("<IBBHQQ", data, at, "a symbol table")
                if name:
                    text = _string(strings, name)
                    out[text] = Symbol(text, value, length, section)
    return out


def _relocations(
    image: bytes, data: bytes, headers: list[tuple[int, ...]], symbols: list[Symbol]
) -> tuple[tuple[int, int], ...]:
    dynamic: dict[int, int] = {}
    for h in headers:
        if h[0] == _PT_DYNAMIC:
            for at in range(h[2], h[2] + h[5] - 15, 16):
                tag, value = _unpack("<QQ", data, at, "the dynamic section")
                dynamic[tag] = value
    start, size = dynamic.get(_DT_RELA, 0), dynamic.get(_DT_RELASZ, 0)
    out = []
    for at in range(start, start + size - 23, 24):
        place, info, addend = _unpack("<QQq", image, at, "the relocations")
        kind, index = info & 0xFFFFFFFF, info >> 32
        if place + 8 > len(image):
            raise _bad("a relocation lies outside the image")
        if kind == _R_RELATIVE64:
            out.append((place, addend))
        elif kind == _R_ABS64 and index < len(symbols) and symbols[index].section:
            out.append((place, symbols[index].address + addend))
        else:
            raise _bad(f"relocation type {kind} is not supported, or its symbol is undefined")
    return tuple(out)


def _debug_sections(data: bytes) -> dict[str, bytes]:
    """`.debug_line` and the string sections, by name."""
    offset = _unpack("<Q", data, 40, "the header")[0]
    size, count, names = _unpack("<HHH", data, 58, "the header")
    sections = [_unpack("<IIQQQQIIQQ", data, offset + k * size, "the section headers") for k in range(count)]
    if names >= len(sections):
        return {}
    strings = data[sections[names][4] : sections[names][4] + sections[names][5]]
    out = {}
    for s in sections:
        end = strings.find(b"\0", s[0])
        name = strings[s[0] : end].decode("ascii", "replace") if end >= 0 else ""
        compressed = s[2] & 0x800
        if name in (".debug_line", ".debug_str", ".debug_line_str") and not compressed:
            out[name] = data[s[4] : s[4] + s[5]]
    return out


def _dynamic_symbols(data: bytes) -> list[Symbol]:
    """The dynamic symbol table in order, which relocations index."""
    offset = _unpack("<Q", data, 40, "the header")[0]
    size, count, _ = _unpack("<HHH", data, 58, "the header")
    for k in range(count):
        s = _unpack("<IIQQQQIIQQ", data, offset + k * size, "the section headers")
        if s[1] == _SHT_DYNSYM:
            rows = [_unpack("<IBBHQQ", data, at, "a symbol table") for at in range(s[4], s[4] + s[5] - 23, 24)]
            return [Symbol("", value, length, section) for _, _, _, section, value, length in rows]
    return []


def parse_elf(data: bytes) -> Elf:
    """Read a linked code object. Raises `InputError` for one that is damaged or not for gfx942 or gfx950."""
    arch = _check_header(data)
    headers = _program_headers(data)
    image, segments = _load(data, headers)
    symbols = _symbols(data)
    relocations = _relocations(image, data, headers, _dynamic_symbols(data))
    return Elf(arch, image, segments, symbols, _notes(data, headers), relocations, _debug_sections(data))
