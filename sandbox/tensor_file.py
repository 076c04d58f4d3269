"""The safetensors format, read and written as raw bytes: every dtype survives, without torch or numpy."""

from __future__ import annotations

import fcntl
import json
import mmap
import os
import weakref
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sandbox.errors import InputError

MAX_HEADER_BYTES = 100 * 1024 * 1024
"""The limit of the format's own reader."""

DTYPE_NAMES = {
    "float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16", "int64": "I64", "int32": "I32",
    "int16": "I16", "int8": "I8", "uint8": "U8", "bool": "BOOL", "uint16": "U16", "uint32": "U32", "uint64": "U64",
    "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2", "complex64": "C64",
}  # fmt: skip
"""torch's dtype name to the format's. Any other dtype is stored as U8 bytes."""

DTYPE_BYTES = {
    "F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U8": 1, "BOOL": 1, "U16": 2,
    "U32": 4, "U64": 8, "F8_E4M3": 1, "F8_E5M2": 1, "C64": 8,
}  # fmt: skip


@dataclass(frozen=True, slots=True, weakref_slot=True)
class TensorFile(Mapping[str, memoryview]):
    """Tensor name to its little-endian bytes; `dtypes` holds the format's dtype names. Every tensor is 1-D."""

    data: Mapping[str, memoryview] = field(default_factory=dict)
    dtypes: Mapping[str, str] = field(default_factory=dict)

    def __getitem__(self, key: str) -> memoryview:
        return self.data[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.data)

    def __len__(self) -> int:
        return len(self.data)

    @classmethod
    def open(cls, path: Path) -> TensorFile:
        """Map a file; nothing is read until it is used, and what is written to the views stays in this process.

        Raises `InputError` when it is not a safetensors file.
        """
        if not path.is_file():
            raise InputError("the tensor file is missing.", file=path, remedy="Capture the workload again.")
        if path.stat().st_size < 8:
            raise InputError("not a safetensors file.", file=path, remedy="Capture the workload again.")
        with path.open("rb") as handle:
            return cls._mapped(handle.fileno(), path)

    @classmethod
    def of_descriptor(cls, descriptor: int) -> TensorFile:
        """Map what `sealed` made, as `open` does."""
        return cls._mapped(descriptor, Path("the inputs"))

    @classmethod
    def _mapped(cls, descriptor: int, path: Path) -> TensorFile:
        whole = memoryview(mmap.mmap(descriptor, 0, access=mmap.ACCESS_COPY))
        length = int.from_bytes(whole[:8], "little")
        data: dict[str, memoryview] = {}
        dtypes: dict[str, str] = {}
        try:
            if length > min(MAX_HEADER_BYTES, len(whole) - 8):
                raise ValueError("header longer than the file")
            header = json.loads(bytes(whole[8 : 8 + length]))
            for name, entry in header.items():
                if name == "__metadata__":
                    continue
                start, end = entry["data_offsets"]
                if not 0 <= start <= end <= len(whole) - 8 - length:
                    raise ValueError(f"{name} lies outside the file")
                data[name] = whole[8 + length + start : 8 + length + end]
                dtypes[name] = str(entry["dtype"])
        except (ValueError, KeyError, TypeError) as e:
            message = f"not a safetensors file: {e}."
            raise InputError(message, file=path, remedy="Capture the workload again.") from None
        return cls(data, dtypes)


def write_tensor_file(path: Path, tensors: TensorFile) -> None:
    """Write `tensors` as a safetensors file, atomically."""
    partial = path.with_name(path.name + ".partial")
    with partial.open("wb") as out:
        _write(out.fileno(), tensors)
    partial.rename(path)


def _write(descriptor: int, tensors: TensorFile) -> None:
    header: dict[str, object] = {}
    position = 0
    for name, view in tensors.items():
        dtype = tensors.dtypes.get(name, "U8")
        count = view.nbytes // DTYPE_BYTES[dtype]
        header[name] = {"dtype": dtype, "shape": [count], "data_offsets": [position, position + view.nbytes]}
        position += view.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    for part in (memoryview(len(text).to_bytes(8, "little") + text), *tensors.values()):
        left = part.cast("B") if part.nbytes else part
        while left.nbytes:  # a signal is heard between two pieces
            left = left[os.write(descriptor, left[:_PIECE_BYTES]) :]


_PIECE_BYTES = 64 << 20
_SEALS = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE
_sealed: dict[tuple[int, tuple[str, ...]], int] = {}
"""Descriptors by (address of a `TensorFile`, names), as long as that lives."""


def sealed(tensors: TensorFile, names: Iterable[str]) -> int:
    """The named tensors as a safetensors file in memory that nobody can write to any more, for child processes to map.

    A descriptor, the same for the same question as long as `tensors` lives: a job asks for every one of its children,
    and inputs can be gigabytes. Raises `OSError` where the memory is not there.
    """
    # Wide types first: then each lies where its type wants to lie.
    names = sorted(set(names), key=lambda name: (-DTYPE_BYTES[tensors.dtypes.get(name, "U8")], name))
    key = id(tensors), tuple(names)
    if key not in _sealed:
        descriptor = os.memfd_create("inputs.safetensors", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            _write(descriptor, subset(tensors, names))
            fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, _SEALS)
        except BaseException:
            os.close(descriptor)
            raise
        _sealed[key] = descriptor
        weakref.finalize(tensors, _forget, key)
    return _sealed[key]


def _forget(key: tuple[int, tuple[str, ...]]) -> None:
    os.close(_sealed.pop(key))


def subset(tensors: TensorFile, names: Iterable[str]) -> TensorFile:
    """Only the named tensors, without copying."""
    chosen = [name for name in names if name in tensors]
    return TensorFile({n: tensors[n] for n in chosen}, {n: tensors.dtypes[n] for n in chosen})
