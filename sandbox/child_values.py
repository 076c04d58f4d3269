"""Child side: Python values and tensor memory as data, and back.

Holds its own references to the torch functions it uses, taken before any code of the user is imported, and reads tensor
memory by address: what a file does to `torch` afterwards does not change what is recorded.
"""

from __future__ import annotations

import ctypes
import dataclasses
import enum
import hashlib
import os
import types
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch

from sandbox import device_lock
from sandbox.frames import FrameWriter
from sandbox.isolation import Limits

PAGE_BYTES = 4096
_SPARSE_MIN_BYTES = 16 * 1024 * 1024
_MAX_ITEMS = 4096
_MAX_DEPTH = 8
_MAX_TEXT = 100_000

_untyped_storage = torch.Tensor.untyped_storage
_stride = torch.Tensor.stride
_offset = torch.Tensor.storage_offset
_size = torch.Tensor.size
_element_size = torch.Tensor.element_size
_storage_ptr = torch.UntypedStorage.data_ptr
_storage_bytes = torch.UntypedStorage.nbytes
_storage_cpu = torch.UntypedStorage.cpu
_is_cuda = torch.Tensor.is_cuda.__get__
_dtype = torch.Tensor.dtype.__get__
_requires_grad = torch.Tensor.requires_grad.__get__
_layout = torch.Tensor.layout.__get__
_data_ptr = torch.Tensor.data_ptr
raw = torch._C.DisableTorchFunction
"""Context in which torch calls are not rewritten by any mode."""


@dataclasses.dataclass(slots=True)
class Memory:
    """One storage's bytes now: dense, or the touched non-zero pages of a huge one. `digest` identifies the contents."""

    nbytes: int
    dense: memoryview | None
    pages: list[int]
    page_bytes: bytes
    digest: str | None
    reason: str | None = None

    def is_zero(self) -> bool:
        """Whether every byte is zero; False where that is not known."""
        if self.dense is None or self.nbytes == 0:
            return self.dense is None and self.digest is not None and not self.pages
        return self.dense[0] == 0 and _compare(self.dense, self.nbytes - 1)


def _compare(view: memoryview, count: int) -> bool:
    """Whether each of the first `count` bytes equals the one after it."""
    address = ctypes.addressof((ctypes.c_char * view.nbytes).from_buffer(view))
    return count == 0 or _memcmp(ctypes.c_void_p(address), ctypes.c_void_p(address + 1), ctypes.c_size_t(count)) == 0


_memcmp = ctypes.CDLL(None).memcmp


def storage_of(tensor: Any) -> tuple[int, int]:
    """Address and size of a tensor's storage."""
    with raw():
        storage = _untyped_storage(tensor)
        return _storage_ptr(storage), _storage_bytes(storage)


def read_memory(tensor: Any, limit_bytes: int) -> Memory:
    """The contents of the tensor's storage, without touching pages nobody touched before."""
    with raw():
        storage = _untyped_storage(tensor)
        on_device = _is_cuda(tensor)
        if on_device:
            if _storage_bytes(storage) > limit_bytes:
                return _too_large(_storage_bytes(storage), limit_bytes)
            storage = _storage_cpu(storage)
        address, nbytes = _storage_ptr(storage), _storage_bytes(storage)
    if nbytes == 0 or address == 0:
        return Memory(nbytes, memoryview(b""), [], b"", "empty")
    view = memoryview((ctypes.c_char * nbytes).from_address(address)).cast("B")
    if on_device:
        view = memoryview(bytearray(view))  # `storage`, the host's copy of the device memory, ends with this function
        del storage
    elif nbytes >= _SPARSE_MIN_BYTES:
        touched = touched_pages(address, nbytes)
        if touched is not None and len(touched) * PAGE_BYTES < nbytes // 2:
            return _sparse(view, touched, address, limit_bytes)
    if nbytes > limit_bytes:
        return _too_large(nbytes, limit_bytes)
    with device_lock.away(nbytes):
        digest = hashlib.blake2b(view, digest_size=16).hexdigest()
    return Memory(nbytes, view, [], b"", digest)


def _too_large(nbytes: int, limit_bytes: int) -> Memory:
    return Memory(nbytes, None, [], b"", None, f"{nbytes} bytes are more than the {limit_bytes} kept per storage")


def _sparse(view: memoryview, touched: list[int], address: int, limit_bytes: int) -> Memory:
    """`touched` counts machine pages from the one that holds the first byte; ours count from the first byte."""
    if len(touched) * PAGE_BYTES > limit_bytes:
        reason = f"{len(touched) * PAGE_BYTES} touched bytes are more than the {limit_bytes} kept per storage"
        return Memory(view.nbytes, None, [], b"", None, reason)
    skew = address % PAGE_BYTES
    candidates: set[int] = set()
    for page in touched:
        start = max(0, page * PAGE_BYTES - skew)
        end = min(view.nbytes, (page + 1) * PAGE_BYTES - skew)
        candidates.update((start // PAGE_BYTES, (end - 1) // PAGE_BYTES))
    numbers: list[int] = []
    parts: list[bytes] = []
    for number in sorted(candidates):
        data = bytes(view[number * PAGE_BYTES : (number + 1) * PAGE_BYTES])
        if data.count(0) != len(data):
            numbers.append(number)
            parts.append(data.ljust(PAGE_BYTES, b"\0"))
    joined = b"".join(parts)
    digest = hashlib.blake2b(joined + repr(numbers).encode(), digest_size=16).hexdigest()
    return Memory(view.nbytes, None, numbers, joined, digest)


def touched_pages(address: int, nbytes: int) -> list[int] | None:
    """Machine pages of a range that hold memory, counted from its first; None where the kernel does not tell."""
    first = address // PAGE_BYTES
    count = (address + nbytes - 1) // PAGE_BYTES - first + 1
    if os.sysconf("SC_PAGE_SIZE") != PAGE_BYTES:
        return None
    try:
        fd = os.open("/proc/self/pagemap", os.O_RDONLY)
        try:
            data = os.pread(fd, count * 8, first * 8)
        finally:
            os.close(fd)
    except OSError:
        return None
    if len(data) != count * 8:
        return None
    return [i for i, entry in enumerate(memoryview(data).cast("Q")) if entry >> 62]


class SnapshotStore:
    """Sends each distinct storage content once and hands out its number."""

    def __init__(self, channel: FrameWriter, limits: Limits) -> None:
        self._channel = channel
        self._limits = limits
        self._sent: dict[tuple[int, str, str], list[dict[str, Any]]] = {}
        self._moment = 0
        self._holder: dict[int, tuple[int, int]] = {}
        """Number of a storage to the moment and the address it was last handed out for."""
        self._left_bytes = limits.stored_bytes
        self._next = 0
        self._still: dict[tuple[int, int], tuple[Any, Memory]] | None = None
        """What was read in `still`, and the tensor, whose address is then nobody else's."""
        self.is_host: Callable[[Any], bool] = lambda tensor: False
        """Set by the torch mode: whether a tensor counts as lying in host memory."""

    @contextmanager
    def still(self) -> Iterator[None]:
        """Nothing of the user's runs inside, so each storage is read once: its contents stay what they are."""
        around = self._still
        self._still = {} if around is None else around
        try:
            yield
        finally:
            self._still = around

    def _read(self, tensor: Any) -> Memory:
        if self._still is None:
            return read_memory(tensor, self._limits.storage_bytes)
        place = storage_of(tensor)
        if place not in self._still:
            self._still[place] = tensor, read_memory(tensor, self._limits.storage_bytes)
        return self._still[place][1]

    def moment(self) -> None:
        """From here on tensors are recorded that exist side by side: equal contents at two addresses get two numbers.

        One number for both would make them one piece of memory when they are rebuilt.
        """
        self._moment += 1

    def digest(self, tensor: Any) -> str | None:
        """Identifies the storage's contents now; None when it is too large to compare."""
        return self._read(tensor).digest

    def record(self, tensor: Any) -> dict[str, Any]:
        """A `TensorRecord` as JSON, its storage sent when it is new."""
        with raw():
            memory = self._read(tensor)
            dtype = str(_dtype(tensor)).removeprefix("torch.")
            return {
                "dtype": dtype,
                "shape": list(_size(tensor)),
                "stride": list(_stride(tensor)),
                "offset": _offset(tensor),
                "storage": self._number(memory, dtype, storage_of(tensor)[0]),
                "requires_grad": bool(_requires_grad(tensor)),
                "aligned": _data_ptr(tensor) % 16 == 0,
                "device": "cpu" if self.is_host(tensor) else "cuda",
            }

    def _number(self, memory: Memory, dtype: str, address: int) -> int:
        known = self._sent.setdefault((memory.nbytes, dtype, memory.digest or ""), [])
        for data in known if memory.digest is not None else ():
            if self._holder[data["id"]][0] != self._moment or self._holder[data["id"]][1] == address:
                return self._held(data, address)
        number = self._next
        self._next += 1
        if known and memory.digest is not None:
            data = {**known[0], "id": number}
            self._channel.send("storage", data)
        else:
            data = self._send(number, memory, dtype)
        known.append(data)
        return self._held(data, address)

    def _held(self, data: Mapping[str, Any], address: int) -> int:
        number = int(data["id"])
        self._holder[number] = (self._moment, address)
        return number

    def _send(self, number: int, memory: Memory, dtype: str) -> dict[str, Any]:
        """Contents seen for the first time."""
        size = memory.dense.nbytes if memory.dense is not None else len(memory.page_bytes)
        reason = memory.reason
        if reason is None and size > self._left_bytes:
            reason = f"the {self._limits.stored_bytes} bytes kept per run are used up"
        data: dict[str, Any] = {"id": number, "nbytes": memory.nbytes, "dtype": dtype, "zero": memory.is_zero()}
        if reason is not None:
            data["reason"] = reason
            self._channel.send("storage", data)
            return data
        self._left_bytes -= size
        data["key"] = f"s{number}"
        if memory.dense is not None:
            with device_lock.away(size):
                self._channel.send("storage", data, memory.dense)
        else:
            data["page_key"] = f"s{number}.pages"
            self._channel.send(
                "pages", {"key": data["page_key"]}, b"".join(n.to_bytes(8, "little") for n in memory.pages)
            )
            self._channel.send("storage", data, memory.page_bytes)
        return data


class Encoder:
    """Python values as `sandbox.workload.Value` JSON. `user_module` is the name the user's file runs under."""

    def __init__(self, store: SnapshotStore, user_modules: Mapping[str, str]) -> None:
        self.store = store
        self.user_modules = user_modules
        self.constructors: Callable[[Any], tuple[tuple[Any, ...], dict[str, Any]] | None] = lambda value: None
        """Set by the entry tracker: the recorded constructor arguments of an object of a user's class."""

    def encode(self, value: Any, depth: int = 0) -> dict[str, Any]:
        """Never raises: what cannot be data becomes `unsupported` with its type."""
        if depth > _MAX_DEPTH:
            return _unsupported(value)
        with raw():
            plain = self._plain(value)
            if plain is not None:
                return plain
            if isinstance(value, torch.Tensor):
                return self._tensor(value)
            container = self._container(value, depth)
            if container is not None:
                return container
            return self._named(value) or self._object(value, depth) or _unsupported(value)

    def _plain(self, value: Any) -> dict[str, Any] | None:
        if value is None:
            return {"kind": "none"}
        if value is Ellipsis:
            return {"kind": "ellipsis"}
        if isinstance(value, enum.Enum):
            return None
        if isinstance(value, bool):
            return {"kind": "bool", "value": bool(value)}
        if isinstance(value, int):
            return {"kind": "int", "value": int(value)}
        if isinstance(value, float):
            number = float(value)
            finite = number - number == 0.0
            return {"kind": "float", "value": number if finite else repr(number)}
        if isinstance(value, complex):
            return {"kind": "complex", "value": repr(value)}
        if isinstance(value, str):
            return {"kind": "str", "value": str(value)[:_MAX_TEXT]}
        if isinstance(value, torch.dtype):
            return {"kind": "dtype", "value": str(value).removeprefix("torch.")}
        if isinstance(value, torch.device):
            return {"kind": "device", "value": str(value)}
        if isinstance(value, torch._C.Generator):
            return {"kind": "generator"}
        return self._triton_plain(value)

    def _triton_plain(self, value: Any) -> dict[str, Any] | None:
        import triton.language as tl

        if isinstance(value, tl.constexpr):
            return self._plain(value.value) or _unsupported(value)
        if isinstance(value, tl.dtype) and not isinstance(value, tl.pointer_type):
            return {"kind": "tl_dtype", "value": value.name}
        return None

    def _tensor(self, value: Any) -> dict[str, Any]:
        if _layout(value) is not torch.strided or value.device.type not in ("cpu", "cuda") or value.is_quantized:
            return _unsupported(value)
        exact = type(value) in (torch.Tensor, torch.nn.Parameter)
        record = {"kind": "tensor", "tensor": self.store.record(value)}
        return record if exact else {**record, "type": f"{type(value).__module__}.{type(value).__qualname__}"}

    def _container(self, value: Any, depth: int) -> dict[str, Any] | None:
        def many(items: Iterator[Any]) -> list[dict[str, Any]]:
            return [self.encode(item, depth + 1) for item in items]

        if isinstance(value, torch.Size):
            return {"kind": "size", "items": many(iter(tuple(value)))}
        if isinstance(value, (list, tuple, dict, set, frozenset)) and len(value) > _MAX_ITEMS:
            return _unsupported(value)
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            keys = list(value._fields)
            return {"kind": "namedtuple", "items": many(iter(value)), "keys": keys, "type": self.name_of(type(value))}
        if isinstance(value, (list, tuple)):
            return {"kind": "list" if isinstance(value, list) else "tuple", "items": many(iter(value))}
        if isinstance(value, dict):
            if all(isinstance(k, str) for k in value):
                return {"kind": "dict", "items": many(iter(value.values())), "keys": list(value)}
            pairs = many(x for pair in value.items() for x in pair)
            return {"kind": "dict", "items": pairs, "type": "pairs"}
        if isinstance(value, slice):
            return {"kind": "slice", "items": many(iter((value.start, value.stop, value.step)))}
        if type(value).__name__ == "TensorDescriptor" and type(value).__module__.startswith("triton."):
            fields = ["base", "shape", "strides", "block_shape"]
            return {"kind": "descriptor", "items": many(getattr(value, f) for f in fields), "keys": fields}
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            names = [f.name for f in dataclasses.fields(value) if f.init]
            items = many(getattr(value, n, None) for n in names)
            return {"kind": "dataclass", "items": items, "keys": names, "type": self.name_of(type(value))}
        return None

    def name_of(self, value: Any) -> str | None:
        """`module:qualname`; the user's own file is module `""`. None for what has no importable name."""
        if isinstance(value, types.ModuleType):
            return f"{value.__name__}:"
        function = value
        for _ in range(_MAX_DEPTH):
            if isinstance(function, type) or not hasattr(function, "fn"):
                break
            function = function.fn
        module = getattr(function, "__module__", None)
        qualname = getattr(function, "__qualname__", None)
        if not isinstance(module, str) or not isinstance(qualname, str) or "<" in qualname:
            return None
        return f"{self.user_modules.get(module, module)}:{qualname}"

    def _named(self, value: Any) -> dict[str, Any] | None:
        if isinstance(value, enum.Enum):
            owner = self.name_of(type(value))
            return {"kind": "global", "value": f"{owner}.{value.name}"} if owner else None
        if callable(value) or isinstance(value, types.ModuleType):
            plain_object = (
                not isinstance(value, type) and not hasattr(value, "__qualname__") and not hasattr(value, "fn")
            )
            name = None if plain_object else self.name_of(value)
            return {"kind": "global", "value": name} if name else None
        return None

    def _object(self, value: Any, depth: int) -> dict[str, Any] | None:
        """An instance: constructor arguments where they were seen, and its tensors."""
        name = self.name_of(type(value))
        if name is None or not hasattr(value, "__dict__"):
            return None
        made = self.constructors(value)
        if made is None and type(value).__init__ in (torch.nn.Module.__init__, object.__init__):
            made = ((), {})  # a class without a constructor of its own
        if isinstance(value, torch.nn.Module):
            state = {k: v for k, v in value.state_dict().items() if isinstance(v, torch.Tensor)}
            flags = {"training": value.training}
        else:
            state = {k: v for k, v in vars(value).items() if made is None or isinstance(v, torch.Tensor)}
            flags = {}
        if made is None and isinstance(value, torch.nn.Module):
            return None
        args, kwargs = made if made is not None else ((), {})
        parts = {"args": list(args), "kwargs": kwargs, "state": state, "flags": flags, "made": made is not None}
        kind = "module" if isinstance(value, torch.nn.Module) else "object"
        items = [self.encode(part, depth + 1) for part in parts.values()]
        return {"kind": kind, "items": items, "keys": list(parts), "type": name}


def _unsupported(value: Any) -> dict[str, Any]:
    return {"kind": "unsupported", "value": f"{type(value).__module__}.{type(value).__qualname__}"}


def replayable(value: Mapping[str, Any]) -> bool:
    return value["kind"] != "unsupported" and all(replayable(item) for item in value.get("items", ()))


def tensors_in(value: Any, depth: int = 0) -> Iterator[Any]:
    """Every tensor in nested lists, tuples and dicts, depth first, in the order `Value.tensors` gives them."""
    if isinstance(value, torch.Tensor):
        yield value
    elif depth <= _MAX_DEPTH and isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors_in(item, depth + 1)
    elif depth <= _MAX_DEPTH and isinstance(value, dict):
        for item in value.values():
            yield from tensors_in(item, depth + 1)
