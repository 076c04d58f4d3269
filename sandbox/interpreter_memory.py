"""The memory an interpreted kernel sees: the storages of its tensors, each far from the others, every access checked.

Addresses are virtual. Storage k sits in a 16 TiB window of its own, so a pointer that leaves its tensor never lands in
another one:
it is caught, reported with its source line, and neither faults nor touches foreign memory. Out-of-bounds loads read a
fixed pattern (finite, not zero), because a GPU would read whatever lies there; out-of-bounds stores are dropped.
"""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from sandbox.interpreter_numerics import Array

_WINDOW_BITS = 44
_FIRST = 1 << 61
_HALF = 1 << (_WINDOW_BITS - 1)
_GARBAGE = 0x3C


@dataclass(slots=True)
class Storage:
    """Bytes of one tensor storage. `address` is the virtual address of its first byte, `real` the machine's."""

    name: str
    address: int
    real: int
    data: Array


@dataclass(frozen=True, slots=True)
class BadAccess:
    """Lanes of one source line that reached outside every tensor. `offset_bytes` is relative to the storage's start."""

    action: str
    storage: str
    storage_bytes: int
    offset_bytes: int
    lanes: int

    def __str__(self) -> str:
        where = f"byte {self.offset_bytes} of {self.storage} ({self.storage_bytes} bytes)"
        return f"out-of-bounds {self.action}: {self.lanes} lanes, the first at {where}"


class ExactSums:
    """What atomics added to the elements of a storage, without the rounding of each addition.

    An element counts as long as its memory holds what was last stored there.
    """

    def __init__(self, size: int, dtype: np.dtype[np.generic]) -> None:
        self._sums = np.zeros(size, np.float64)
        self._stored = np.zeros(size, dtype)
        self._known = np.zeros(size, np.bool_)

    def recall(self, index: Array, stored: Array, values: Array) -> Array:
        """The exact sums of the elements, or their `values` where something else was stored since."""
        kept = self._known[index] & (self._stored[index] == stored)
        return np.asarray(np.where(kept, self._sums[index], values))

    def keep(self, index: Array, stored: Array, sums: Array) -> None:
        self._sums[index], self._stored[index], self._known[index] = sums, stored, True


class Memory:
    """Registered storages, and typed access by virtual address."""

    def __init__(self) -> None:
        self.storages: list[Storage] = []
        self.bad: list[BadAccess] = []
        self._exact: dict[int, ExactSums] = {}

    def exact_sums(self, data: Array) -> ExactSums:
        """Of the storage that `data` views."""
        key = data.ctypes.data
        if key not in self._exact:
            self._exact[key] = ExactSums(data.size, data.dtype)
        return self._exact[key]

    def register(self, name: str, real: int, size: int) -> Storage:
        """Make `size` bytes at machine address `real` reachable; the same storage is registered once."""
        for known in self.storages:
            if known.real == real and known.data.size == size:
                return known
        buffer: Any = (ctypes.c_uint8 * size).from_address(real) if size else bytearray()
        data: Array = np.frombuffer(buffer, dtype=np.uint8)
        address = _FIRST + (len(self.storages) << _WINDOW_BITS) + _HALF + real % 4096
        storage = Storage(name, address, real, data)
        self.storages.append(storage)
        return storage

    def register_tensor(self, name: str, tensor: Any) -> int:
        """Register a CPU tensor's storage; returns the virtual address of the tensor's first element."""
        storage = tensor.untyped_storage()
        known = self.register(name, storage.data_ptr(), storage.nbytes())
        return known.address + int(tensor.data_ptr()) - int(storage.data_ptr())

    def to_real(self, addresses: Array) -> Array:
        """Machine addresses of virtual ones, for code that looks at a pointer's value."""
        result = addresses.copy()
        index = (addresses - _FIRST) >> _WINDOW_BITS
        for number, storage in enumerate(self.storages):
            chosen = (addresses >= _FIRST) & (index == number)
            result[chosen] += storage.real - storage.address
        return result

    def to_virtual(self, addresses: Array) -> Array:
        """Virtual addresses of machine ones that were stored as integers, such as tables of `data_ptr()`."""
        result = addresses.copy()
        pending = (addresses < _FIRST) & (addresses != 0)
        for attempt in range(2):
            for storage in self.storages:
                inside = pending & (addresses >= storage.real) & (addresses < storage.real + max(1, storage.data.size))
                result[inside] += storage.address - storage.real
                pending &= ~inside
            if not pending.any() or attempt:
                break
            self._adopt(np.unique(addresses[pending]).tolist())
        return result

    def _adopt(self, addresses: Iterable[int]) -> None:
        """Register the live tensors that hold the addresses, though no argument of the launch is one of them."""
        torch = sys.modules["torch"]
        wanted = list(addresses)
        for candidate in gc.get_objects():
            if not issubclass(type(candidate), torch.Tensor) or candidate.device.type != "cpu":
                continue
            storage = candidate.untyped_storage()
            first, size = storage.data_ptr(), storage.nbytes()
            if any(first <= a < first + size for a in wanted):
                self.register("a tensor reached through a pointer", first, size)

    def load(self, addresses: Array, mask: Array | None, dtype: np.dtype[np.generic], other: Array | None) -> Array:
        """Values of `dtype` at `addresses`; where `mask` is False, `other` (or zero). Shapes broadcast."""
        shape = np.broadcast_shapes(*(a.shape for a in (addresses, mask, other) if a is not None))
        if mask is None:
            return np.broadcast_to(self._gather(addresses.ravel(), dtype).reshape(addresses.shape), shape)
        result = np.zeros(shape, dtype) if other is None else np.array(np.broadcast_to(other, shape), dtype)
        lanes = np.broadcast_to(mask, shape)
        if lanes.any():
            result[lanes] = self._gather(np.broadcast_to(addresses, shape)[lanes], dtype)
        return result

    def _gather(self, addresses: Array, dtype: np.dtype[np.generic]) -> Array:
        result: Array | None = None
        for lanes, storage, offsets in self._split(addresses):
            inside = self._inside("load", storage, offsets, dtype.itemsize)
            if inside is None and storage is not None:
                values = _read(storage.data, offsets, dtype)
            else:
                values = np.frombuffer(bytes([_GARBAGE]) * dtype.itemsize, dtype).repeat(offsets.size)
                if inside is not None and inside.any() and storage is not None:
                    values[inside] = _read(storage.data, offsets[inside], dtype)
            if lanes is None:
                return values
            if result is None:
                result = np.empty(addresses.shape, dtype)
            result[lanes] = values
        return result if result is not None else np.empty(0, dtype)

    def store(self, addresses: Array, values: Array) -> None:
        """Write one-dimensional `values` at `addresses`; of lanes with one address the last wins."""
        for lanes, storage, offsets in self._split(addresses):
            part = values if lanes is None else values[lanes]
            inside = self._inside("store", storage, offsets, values.dtype.itemsize)
            if inside is not None:
                offsets, part = offsets[inside], part[inside]
            if storage is not None and offsets.size:
                _write(storage.data, offsets, part)

    def view(self, addresses: Array, dtype: np.dtype[np.generic], action: str) -> list[tuple[Array, Array, Array]]:
        """For read-modify-write: per storage, (lane numbers, typed array, element index of each lane)."""
        found = []
        for lanes, storage, offsets in self._split(addresses):
            numbers = np.arange(addresses.size) if lanes is None else np.flatnonzero(lanes)
            inside = self._inside(action, storage, offsets, dtype.itemsize)
            if inside is not None:
                numbers, offsets = numbers[inside], offsets[inside]
            if storage is None or not offsets.size:
                continue
            shift = int(offsets[0]) % dtype.itemsize
            found.append((numbers, _typed(storage.data, shift, dtype), (offsets - shift) // dtype.itemsize))
        return found

    def _inside(self, action: str, storage: Storage | None, offsets: Array, itemsize: int) -> Array | None:
        """None when every lane is inside, else which ones are; the others are noted."""
        size = storage.data.size if storage is not None else 0
        if offsets.size == 0 or (offsets.min() >= 0 and offsets.max() <= size - itemsize):
            return None
        inside: Array = (offsets >= 0) & (offsets <= size - itemsize)
        self._note(action, storage, offsets[~inside])
        return inside

    def _split(self, addresses: Array) -> Iterable[tuple[Array | None, Storage | None, Array]]:
        """Lanes by storage: (which lanes, or None for all; the storage; byte offsets in it)."""
        if addresses.size == 0:
            return
        first = (int(addresses.min()) - _FIRST) >> _WINDOW_BITS
        last = (int(addresses.max()) - _FIRST) >> _WINDOW_BITS
        if first == last:
            storage = self._storage(first)
            yield None, storage, addresses - (storage.address if storage else 0)
            return
        windows = (addresses - _FIRST) >> _WINDOW_BITS
        for window in np.unique(windows):
            lanes = windows == window
            storage = self._storage(int(window))
            yield lanes, storage, addresses[lanes] - (storage.address if storage else 0)

    def _storage(self, window: int) -> Storage | None:
        return self.storages[window] if 0 <= window < len(self.storages) else None

    def _note(self, action: str, storage: Storage | None, offsets: Array) -> None:
        name, size = (storage.name, storage.data.size) if storage is not None else ("no tensor", 0)
        self.bad.append(BadAccess(action, name, size, int(offsets[0]), int(offsets.size)))


def _typed(data: Array, shift: int, dtype: np.dtype[np.generic]) -> Array:
    """The bytes from `shift` on as whole elements."""
    usable = (data.size - shift) // dtype.itemsize * dtype.itemsize
    return data[shift : shift + usable].view(dtype)


def _elements(offsets: Array, size: int) -> tuple[int, Array] | None:
    """Byte offsets as a common misalignment and element indices; None when they are not equally aligned."""
    shift = int(offsets[0]) % size
    relative = offsets - shift if shift else offsets
    if int(np.bitwise_or.reduce(relative)) & (size - 1):
        return None
    return shift, relative >> (size.bit_length() - 1)


def _read(data: Array, offsets: Array, dtype: np.dtype[np.generic]) -> Array:
    size = dtype.itemsize
    if (found := _elements(offsets, size)) is not None:
        return _typed(data, found[0], dtype).take(found[1])
    loose: Array = data[offsets[:, None] + np.arange(size)].reshape(-1).view(dtype)
    return loose


def _write(data: Array, offsets: Array, values: Array) -> None:
    size = values.dtype.itemsize
    if (found := _elements(offsets, size)) is not None:
        _typed(data, found[0], values.dtype)[found[1]] = values
    else:
        data[offsets[:, None] + np.arange(size)] = np.ascontiguousarray(values).view(np.uint8).reshape(-1, size)
