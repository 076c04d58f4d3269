"""What a launch gives a kernel: arguments, dispatch packet, code, and the registers each wave starts with.

Both cores start from a `Launch`. Register set-up follows the LLVM AMDGPU usage guide for gfx942 (architected flat
scratch, packed work-item ids, kernarg preload).
"""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sandbox.emulator.hostcall import HostCalls, host_calls
from sandbox.emulator.loader import CodeObject, KernelArgument, KernelInfo
from sandbox.emulator.machine import LANES, PRIVATE_APERTURE, SHARED_APERTURE
from sandbox.emulator.memory import Allocation, Memory
from sandbox.errors import InputError

Dim = tuple[int, int, int]
Argument = int | float | bytes | np.generic | Allocation

LDS_BYTES = {"gfx942": 65536, "gfx950": 163840}
XCCS = 8
_MAX_THREADS = 1024
_DYNAMIC_STACK_BYTES = 16384
"""Scratch per lane given to kernels whose stack depth the compiler does not know (recursion, function pointers)."""
_KERNARG_SLACK_BYTES = 64
"""Wide scalar loads of the last arguments may touch bytes behind them, which hardware maps as well."""


@dataclass(frozen=True)
class Launch:
    """One kernel launch, ready to run. Addresses are those of `memory`, which holds code and arguments too."""

    code: CodeObject
    kernel: KernelInfo
    grid: Dim
    """Workgroups per dimension."""
    block: Dim
    """Work-items per workgroup."""
    memory: Memory
    code_base: int
    kernarg_base: int
    kernarg: bytes
    dispatch_base: int
    lds_bytes: int
    private_bytes: int
    host: HostCalls | None = None
    """Where a kernel's calls of the host go, if it can make any."""
    copied_lanes: bool = False
    """Lanes of a wave that store to one LDS address in one instruction hold copies of one value (see `emulate`)."""

    @property
    def threads(self) -> int:
        return self.block[0] * self.block[1] * self.block[2]

    @property
    def waves(self) -> int:
        """Waves per workgroup."""
        return -(-self.threads // LANES)

    @property
    def workgroups(self) -> int:
        return self.grid[0] * self.grid[1] * self.grid[2]

    def workgroup(self, number: int) -> Dim:
        """Index of a workgroup from its number in dispatch order (x fastest)."""
        x, y, _ = self.grid
        return number % x, number // x % y, number // (x * y)

    def scalar_registers(self, workgroup: Dim) -> list[int]:
        """The 128 scalar registers a wave of a workgroup starts with, EXEC aside."""
        d = self.kernel.descriptor
        sgprs: list[int] = []
        pointers = {1: self.dispatch_base, 2: 0, 3: self.kernarg_base, 4: 0, 5: 0}
        if d.has(0):
            sgprs += [0, 0, 0, 0]
        for bit, address in pointers.items():
            if d.has(bit):
                sgprs += [address & 0xFFFFFFFF, address >> 32]
        if d.has(6):
            sgprs.append(self.private_bytes)
        start = 4 * d.preload_offset
        preload = self.kernarg[start : start + 4 * d.preload_length]
        sgprs += struct.unpack(f"<{len(preload) // 4}I", preload[: len(preload) // 4 * 4])
        sgprs = (sgprs + [0] * d.user_sgprs)[: d.user_sgprs]
        sgprs += [index for index, wanted in zip(workgroup, d.workgroup_ids, strict=True) if wanted]
        return (sgprs + [0] * 128)[:128]

    def lanes(self, wave: int) -> tuple[npt.NDArray[np.uint32], int]:
        """v0 (packed work-item ids) and EXEC of wave `wave` of any workgroup."""
        item = np.arange(wave * LANES, (wave + 1) * LANES, dtype=np.uint32)
        x, y, _ = (np.uint32(n) for n in self.block)
        ids = item % x | item // x % y << np.uint32(10) | item // (x * y) << np.uint32(20)
        count = min(LANES, self.threads - wave * LANES)
        return np.where(item < self.threads, ids, np.uint32(0)), (1 << count) - 1


def sample_workgroups(total: int, count: int, seed: int) -> list[int]:
    """The first, the last, and seeded others up to `count` workgroup numbers, in order; all if they are fewer."""
    if total <= count:
        return list(range(total))
    chosen = {0, total - 1}
    generator = random.Random(seed)
    while len(chosen) < max(count, 2):
        chosen.add(generator.randrange(total))
    return sorted(chosen)


def _dims(values: Sequence[int], what: str) -> Dim:
    whole = all(isinstance(v, int | np.integer) for v in values)
    padded = (*(int(v) for v in values), 1, 1, 1) if whole else (0, 0, 0)
    if not 1 <= len(values) <= 3 or any(v < 1 for v in padded[:3]):
        raise InputError(f"The {what} {tuple(values)} is not made of one to three positive numbers.")
    return padded[0], padded[1], padded[2]


def _pack_value(argument: KernelArgument, value: Argument) -> bytes:
    if isinstance(value, Allocation):
        value = value.base
    if isinstance(value, np.generic):
        value = value.tobytes()
    if isinstance(value, float):
        if argument.size not in (2, 4, 8):
            raise InputError(f"A float cannot be passed as {argument.name} of {argument.size} bytes.")
        with np.errstate(over="ignore"):
            return np.array(value).astype(f"<f{argument.size}").tobytes()
    if isinstance(value, int):
        if not -(1 << 8 * argument.size - 1) <= value < 1 << 8 * argument.size:
            raise InputError(f"{value} does not fit {argument.name}, which has {argument.size} bytes.")
        return (value & (1 << 8 * argument.size) - 1).to_bytes(argument.size, "little")
    if not isinstance(value, bytes | bytearray):
        raise InputError(
            f"{argument.name} cannot be a {type(value).__name__}.",
            remedy="Pass a number, bytes, or for a pointer what Memory.allocate returned.",
        )
    if len(value) > argument.size:
        raise InputError(f"{len(value)} bytes were given for {argument.name}, which has {argument.size}.")
    return bytes(value).ljust(argument.size, b"\0")


def _hidden(kind: str, launch_grid: Dim, block: Dim, dynamic_lds_bytes: int, host: HostCalls | None) -> int:
    """Value of a hidden argument; what a host runtime would provide beside printf (heap, queues) is null."""
    axis = {"x": 0, "y": 1, "z": 2}.get(kind[-1], 0)
    dims = 3 if launch_grid[2] * block[2] > 1 else 2 if launch_grid[1] * block[1] > 1 else 1
    values = {
        "hidden_block_count": launch_grid[axis],
        "hidden_group_size": block[axis],
        "hidden_grid_dims": dims,
        "hidden_dynamic_lds_size": dynamic_lds_bytes,
        "hidden_hostcall_buffer": host.block.base if host is not None else 0,
        "hidden_private_base": PRIVATE_APERTURE >> 32,
        "hidden_shared_base": SHARED_APERTURE >> 32,
    }
    stem = kind[:-2] if kind[-2:] in ("_x", "_y", "_z") else kind
    return values.get(stem, 0)


def pack_arguments(
    kernel: KernelInfo,
    arguments: bytes | Sequence[Argument],
    grid: Dim,
    block: Dim,
    dynamic_lds_bytes: int,
    host: HostCalls | None = None,
) -> bytes:
    """The kernarg segment: explicit values laid out by the metadata, hidden ones filled in.

    Bytes are taken as the start of the segment. A list may leave out up to two pointers at the end (Triton's scratch
    pointers), which become null. Raises `InputError` if arguments are missing or too many.
    """
    explicit = kernel.explicit_arguments
    size = max([kernel.descriptor.kernarg_bytes, *(a.offset + a.size for a in kernel.arguments)], default=0)
    out = bytearray(size)
    if isinstance(arguments, bytes | bytearray):
        needed = max((a.offset + a.size for a in explicit), default=0)
        if len(arguments) < needed:
            raise InputError(
                f"The kernarg data of {kernel.name} has {len(arguments)} bytes; its arguments take {needed}.",
                remedy="Pass every argument.",
            )
        given = len(arguments)
        out[: min(given, size)] = arguments[:size]
    else:
        rest = explicit[len(arguments) :]
        if len(arguments) > len(explicit) or len(rest) > 2 or any(a.kind != "global_buffer" for a in rest):
            raise InputError(
                f"{kernel.name} takes {len(explicit)} arguments; {len(arguments)} were given.",
                remedy="Pass every argument.",
            )
        given = 0
        for a, value in zip(explicit, arguments, strict=False):
            out[a.offset : a.offset + a.size] = _pack_value(a, value)
    for a in kernel.arguments:
        if a.is_hidden and a.offset >= given:
            value = _hidden(a.kind, grid, block, dynamic_lds_bytes, host)
            out[a.offset : a.offset + a.size] = value.to_bytes(max(8, a.size), "little")[: a.size]
    return bytes(out)


def _dispatch_packet(grid: Dim, block: Dim, private_bytes: int, lds_bytes: int, kernarg_base: int) -> bytes:
    """The HSA kernel dispatch packet (64 bytes)."""
    dims = 3 if grid[2] * block[2] > 1 else 2 if grid[1] * block[1] > 1 else 1
    sizes = [g * b for g, b in zip(grid, block, strict=True)]
    packet = struct.pack("<HHHHHHIIIIIQQ", 2, dims, *block, 0, *sizes, private_bytes, lds_bytes, 0, kernarg_base)
    return packet.ljust(64, b"\0")


def _relocated(code: CodeObject, base: int) -> npt.NDArray[np.uint8]:
    image = bytearray(code.elf.image)
    for place, value in code.elf.relocations:
        image[place : place + 8] = (base + value & 0xFFFFFFFFFFFFFFFF).to_bytes(8, "little")
    return np.frombuffer(image, np.uint8).copy()


def load_image(code: CodeObject, buffer: Allocation) -> None:
    """Lay a code object out in a buffer of at least its image's size: instructions, and variables as they begin."""
    image = _relocated(code, buffer.base)
    buffer.data[: image.size] = image
    buffer.writable = any(s.writable for s in code.elf.segments)


def prepare(
    code: CodeObject,
    kernel_name: str,
    grid: Sequence[int],
    block: Sequence[int],
    arguments: bytes | Sequence[Argument],
    memory: Memory,
    dynamic_lds_bytes: int = 0,
    image: Allocation | None = None,
) -> Launch:
    """Check a launch and lay it out. Raises `InputError` for what hardware would refuse: sizes, arguments, LDS.

    `image` is a buffer of `memory` that `load_image` filled; without one the code is loaded for this launch alone.
    """
    kernel = code.kernel(kernel_name)
    grid, block = _dims(grid, "grid"), _dims(block, "block")
    threads = block[0] * block[1] * block[2]
    if threads > min(_MAX_THREADS, kernel.max_workgroup_size):
        raise InputError(
            f"{kernel_name} cannot run with {threads} threads per workgroup.",
            remedy=f"It was compiled for at most {min(_MAX_THREADS, kernel.max_workgroup_size)}.",
        )
    if any(g * b >= 1 << 32 for g, b in zip(grid, block, strict=True)):
        raise InputError(f"The grid {grid} of {block} threads has 2^32 threads or more in a dimension.")
    if dynamic_lds_bytes < 0:
        raise InputError(f"{dynamic_lds_bytes} bytes of dynamic LDS were asked for.")
    lds_bytes = kernel.descriptor.group_segment_bytes + dynamic_lds_bytes
    if lds_bytes > LDS_BYTES[code.arch]:
        raise InputError(f"{kernel_name} needs {lds_bytes} bytes of LDS; {code.arch} has {LDS_BYTES[code.arch]}.")
    private = kernel.descriptor.private_segment_bytes + (_DYNAMIC_STACK_BYTES if kernel.uses_dynamic_stack else 0)
    own = memory.extended()
    host = host_calls(own) if any(a.kind == "hidden_hostcall_buffer" for a in kernel.arguments) else None
    kernarg = pack_arguments(kernel, arguments, grid, block, dynamic_lds_bytes, host)
    if image is None:
        image = own.allocate("the code object", len(code.elf.image) + 1)
        load_image(code, image)
    padded = np.frombuffer(kernarg.ljust(len(kernarg) + _KERNARG_SLACK_BYTES, b"\0"), np.uint8).copy()
    kernarg_base = own.allocate("the kernel arguments", padded, writable=False).base
    packet = np.frombuffer(_dispatch_packet(grid, block, private, lds_bytes, kernarg_base), np.uint8).copy()
    dispatch_base = own.allocate("the dispatch packet", packet, writable=False).base
    return Launch(
        code, kernel, grid, block, own, image.base, kernarg_base, kernarg, dispatch_base, lds_bytes, private, host
    )
