"""Global memory as bounded allocations at synthetic 64-bit addresses, with unmapped space around each of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.bool_]

_SLOT_BYTES = 1 << 33
_FIRST_SLOT = 0x1000
_RED_ZONE_BYTES = 1 << 31
_STAGGER_BYTES = 0x11000
"""Allocation k starts at 2 GiB + k * 68 KiB of its slot: at least 2 GiB of unmapped space lie between any two, so
neither an index overflow nor a sign error reaches a neighbour, and addresses differ in their low 32 bits."""


@dataclass(slots=True)
class Allocation:
    """One buffer. `data` is shared with whoever gave it, so results are read from there.

    `initialised` marks the bytes that were ever written; None means all of them were.
    """

    name: str
    base: int
    data: Bytes
    writable: bool = True
    initialised: Mask | None = None

    @property
    def end(self) -> int:
        return self.base + self.data.size


@dataclass(slots=True)
class Memory:
    """The buffers a kernel can reach. Addresses depend only on the order of allocation, so runs are reproducible."""

    allocations: list[Allocation] = field(default_factory=list)
    _next_slot: int = _FIRST_SLOT
    _bases: npt.NDArray[np.uint64] = field(default_factory=lambda: np.zeros(0, np.uint64))
    _ends: npt.NDArray[np.uint64] = field(default_factory=lambda: np.zeros(0, np.uint64))

    def allocate(
        self, name: str, data: npt.NDArray[np.generic] | int, *, writable: bool = True, initialised: bool = True
    ) -> Allocation:
        """Add a buffer: an array (C-contiguous; shared, not copied) or a number of bytes (zeros).

        `initialised=False` makes reads of bytes that no store wrote a finding. Raises `ValueError` for an array whose
        bytes are not contiguous.
        """
        if isinstance(data, int):
            raw: Bytes = np.zeros(data, np.uint8)
        else:
            if not data.flags.c_contiguous:
                raise ValueError(f"{name}: the array is not contiguous")
            raw = data.reshape(-1).view(np.uint8)
        index = len(self.allocations)
        offset = _RED_ZONE_BYTES + index % 4096 * _STAGGER_BYTES
        base = self._next_slot * _SLOT_BYTES + offset
        self._next_slot += 1 + (offset + raw.size + _RED_ZONE_BYTES) // _SLOT_BYTES
        valid = None if initialised else np.zeros(raw.size, np.bool_)
        allocation = Allocation(name, base, raw, writable, valid)
        self.allocations.append(allocation)
        self._bases = np.append(self._bases, np.uint64(base))
        self._ends = np.append(self._ends, np.uint64(allocation.end))
        return allocation

    def release(self, allocation: Allocation) -> None:
        """Take a buffer away: its addresses belong to nothing again, and are not given to another."""
        keep = [a is not allocation for a in self.allocations]
        self.allocations = [a for a, kept in zip(self.allocations, keep, strict=True) if kept]
        self._bases, self._ends = self._bases[keep], self._ends[keep]

    def extended(self) -> Memory:
        """A memory with the same buffers, to which a launch can add its own without changing this one."""
        return Memory(list(self.allocations), self._next_slot, self._bases, self._ends)

    def __iter__(self) -> Iterator[Allocation]:
        return iter(self.allocations)

    def resolve(self, addresses: npt.NDArray[np.uint64], size: int) -> npt.NDArray[np.int64]:
        """Index of the allocation that holds `[address, address + size)` for each address, -1 where none does."""
        if not self.allocations:
            return np.full(addresses.shape, -1, np.int64)
        index = np.searchsorted(self._bases, addresses, side="right").astype(np.int64) - 1
        ends = self._ends[np.maximum(index, 0)]
        inside = (index >= 0) & (addresses < ends) & (addresses + np.uint64(size) <= ends)
        return np.where(inside, index, -1)

    def find(self, address: int, size: int = 1) -> Allocation | None:
        """The allocation that holds `size` bytes at `address`, or None."""
        index = int(self.resolve(np.array([address], np.uint64), size)[0])
        return None if index < 0 else self.allocations[index]

    def describe(self, address: int) -> str:
        """Where an address lies, in words: inside a buffer, or how far past or before the nearest one."""
        if not self.allocations:
            return f"{address:#x} (no buffer is allocated)"
        best = min(
            self.allocations,
            key=lambda a: 0 if a.base <= address < a.end else min(abs(address - a.base), abs(address - a.end)),
        )
        if best.base <= address < best.end:
            return f"byte {address - best.base} of {best.name} ({best.data.size} bytes)"
        if address >= best.end and address - best.end < _SLOT_BYTES:
            return (
                f"byte {address - best.base} of {best.name}, {address - best.end} past its end ({best.data.size} bytes)"
            )
        if address < best.base and best.base - address < _SLOT_BYTES:
            return f"{best.base - address} bytes before the start of {best.name}"
        return f"{address:#x}, near no buffer"
