"""Code objects: kernels, their descriptors and their argument layout (Triton `.hsaco`, clang HIP device objects)."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Any

from sandbox.emulator.elf import Elf, parse_elf
from sandbox.emulator.msgpack import MsgpackError, unpack
from sandbox.errors import InputError

_NT_AMDGPU_METADATA = 32
_DESCRIPTOR_BYTES = 64
_PRELOAD_PROLOGUE_BYTES = 256
"""Code objects with preloaded arguments start with a prologue of this size that loads them for older firmware."""


@dataclass(frozen=True, slots=True)
class KernelArgument:
    """One entry of the kernarg segment. `kind` is the metadata's value kind (`by_value`, `hidden_none`...)."""

    name: str
    offset: int
    size: int
    kind: str

    @property
    def is_hidden(self) -> bool:
        return self.kind.startswith("hidden_")


@dataclass(frozen=True, slots=True)
class Descriptor:
    """The 64-byte kernel descriptor, decoded (LLVM AMDGPU usage guide, code object v3 and later, GFX90A/GFX942)."""

    group_segment_bytes: int
    private_segment_bytes: int
    kernarg_bytes: int
    entry_offset: int
    """Of the first instruction, relative to the descriptor."""
    accum_offset: int
    """Number of ArchVGPRs; AccVGPRs follow in the unified file."""
    mode: int
    """Initial MODE register: rounding (3:0), denormals (7:4), dx10_clamp (8), ieee (9), fp16_ovfl (23)."""
    user_sgprs: int
    workgroup_ids: tuple[bool, bool, bool]
    workgroup_info: bool
    private_segment: bool
    properties: int
    preload_length: int
    preload_offset: int
    """Kernarg dwords that arrive in SGPRs, and the first of them."""

    def has(self, bit: int) -> bool:
        return bool(self.properties >> bit & 1)


@dataclass(frozen=True)
class KernelInfo:
    """A kernel of a code object. Offsets are in the image."""

    name: str
    descriptor: Descriptor
    descriptor_address: int
    entry: int
    """Image offset of the first instruction that runs: after the prologue where arguments are preloaded."""
    arguments: tuple[KernelArgument, ...]
    max_workgroup_size: int
    uses_dynamic_stack: bool
    metadata: dict[str, Any] = field(repr=False, default_factory=dict)

    @property
    def explicit_arguments(self) -> tuple[KernelArgument, ...]:
        return tuple(a for a in self.arguments if not a.is_hidden)


@dataclass(frozen=True)
class CodeObject:
    """A loaded code object of one architecture."""

    arch: str
    elf: Elf = field(repr=False)
    kernels: dict[str, KernelInfo]

    def kernel(self, name: str) -> KernelInfo:
        """The kernel called `name`; raises `InputError` naming those there are."""
        if name not in self.kernels:
            raise InputError(
                f"The code object has no kernel {name!r}.",
                remedy=f"It has: {', '.join(sorted(self.kernels)) or 'none'}.",
            )
        return self.kernels[name]


def _bad(what: str) -> InputError:
    return InputError(f"The code object is damaged: {what}.", remedy="Compile the kernel again.")


def _descriptor(elf: Elf, address: int, name: str) -> Descriptor:
    if address < 0 or address + _DESCRIPTOR_BYTES > len(elf.image) or address % 64:
        raise _bad(f"the descriptor of {name} lies outside the image or is not 64-byte aligned")
    raw = elf.image[address : address + _DESCRIPTOR_BYTES]
    group, private, kernarg, _, entry = struct.unpack_from("<IIIIq", raw, 0)
    rsrc3, rsrc1, rsrc2, properties, preload = struct.unpack_from("<IIIHH", raw, 44)
    if any(raw[12:16]) or any(raw[24:44]) or any(raw[60:64]) or properties & 0xF380:
        raise _bad(f"the descriptor of {name} has reserved bits set")
    if properties >> 10 & 1:
        raise _bad(f"{name} asks for waves of 32 lanes, which this architecture does not have")
    return Descriptor(
        group_segment_bytes=group,
        private_segment_bytes=private,
        kernarg_bytes=kernarg,
        entry_offset=entry,
        accum_offset=((rsrc3 & 63) + 1) * 4,
        mode=(rsrc1 >> 12 & 0xFF) | (rsrc1 >> 21 & 1) << 8 | (rsrc1 >> 23 & 1) << 9 | (rsrc1 >> 26 & 1) << 23,
        user_sgprs=rsrc2 >> 1 & 31,
        workgroup_ids=(bool(rsrc2 >> 7 & 1), bool(rsrc2 >> 8 & 1), bool(rsrc2 >> 9 & 1)),
        workgroup_info=bool(rsrc2 >> 10 & 1),
        private_segment=bool(rsrc2 & 1),
        properties=properties,
        preload_length=preload & 127,
        preload_offset=preload >> 7,
    )


def _integer(data: dict[Any, Any], key: str, default: int | None = None) -> int:
    value = data.get(key, default)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise _bad(f"metadata {key} is missing or no natural number")
    return value


def _text(data: dict[Any, Any], key: str, default: str | None = None) -> str:
    value = data.get(key, default)
    if not isinstance(value, str):
        raise _bad(f"metadata {key} is missing or no string")
    return value


def _arguments(data: dict[Any, Any], kernarg_bytes: int) -> tuple[KernelArgument, ...]:
    rows = data.get(".args", [])
    if not isinstance(rows, list) or not all(isinstance(r, dict) for r in rows):
        raise _bad("metadata .args is no list of maps")
    out = []
    for k, row in enumerate(rows):
        argument = KernelArgument(
            name=_text(row, ".name", f"arg{k}"),
            offset=_integer(row, ".offset"),
            size=_integer(row, ".size"),
            kind=_text(row, ".value_kind"),
        )
        if argument.offset + argument.size > kernarg_bytes:
            raise _bad(f"argument {argument.name} lies outside the kernarg segment")
        out.append(argument)
    return tuple(out)


def _kernel(elf: Elf, data: Any) -> KernelInfo:
    if not isinstance(data, dict):
        raise _bad("a kernel's metadata is no map")
    name = _text(data, ".name")
    symbol = elf.symbols.get(_text(data, ".symbol"))
    if symbol is None or not symbol.section:
        raise _bad(f"the descriptor symbol of {name} is missing")
    descriptor = _descriptor(elf, symbol.address, name)
    start = symbol.address + descriptor.entry_offset
    entry = start + (_PRELOAD_PROLOGUE_BYTES if descriptor.preload_length else 0)
    code = [s for s in elf.segments if s.executable]
    if start % 256 or not any(s.address <= start and entry + 4 <= s.address + s.size for s in code):
        raise _bad(f"the entry point of {name} is not in its code")
    kernarg_bytes = max(_integer(data, ".kernarg_segment_size"), descriptor.kernarg_bytes)
    if kernarg_bytes > 1 << 20:
        raise _bad(f"the kernarg segment of {name} is larger than 1 MiB")
    return KernelInfo(
        name=name,
        descriptor=descriptor,
        descriptor_address=symbol.address,
        entry=entry,
        arguments=_arguments(data, kernarg_bytes),
        max_workgroup_size=_integer(data, ".max_flat_workgroup_size", 1024),
        uses_dynamic_stack=bool(data.get(".uses_dynamic_stack", False)),
        metadata=data,
    )


def load_code_object(data: bytes) -> CodeObject:
    """Read a code object of gfx942 or gfx950.

    Raises `InputError` with one sentence for a truncated or damaged file, another architecture, or an object without
    kernels.
    """
    elf = parse_elf(bytes(data))
    body = next((b for owner, kind, b in elf.notes if owner == "AMDGPU" and kind == _NT_AMDGPU_METADATA), None)
    if body is None:
        raise _bad("it has no kernel metadata")
    try:
        metadata = unpack(body)
    except MsgpackError as e:
        raise _bad(f"its metadata cannot be read ({e})") from e
    rows = metadata.get("amdhsa.kernels") if isinstance(metadata, dict) else None
    if not isinstance(rows, list):
        raise _bad("its metadata lists no kernels")
    kernels = [_kernel(elf, row) for row in rows]
    return CodeObject(elf.arch, elf, {k.name: k for k in kernels})
