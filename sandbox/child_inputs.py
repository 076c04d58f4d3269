"""Child side: the inputs of a recorded call, as they were or drawn anew, built before any code of the candidate runs.

Memory is rebuilt per storage, so that views alias and stride as recorded. Objects of the candidate's own classes
are assembled afterwards from tensors that exist already.
"""

from __future__ import annotations

import dataclasses
import math
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from sandbox import device_lock
from sandbox.child_random import Spread
from sandbox.child_values import raw
from sandbox.tensor_file import TensorFile
from sandbox.workload import EntryCall, TensorRecord, Value, Workload

GUARD_BYTES = 4096
_GUARD = 0xA5
_PAGE_BYTES = 4096


class CannotBuild(Exception):  # noqa: N818 - an outcome: this variant does not exist
    """The recorded values are not there, or cannot be changed as asked."""


@dataclasses.dataclass(slots=True)
class Inputs:
    """Tensors of one call by path, and the guarded memory around them."""

    entry: EntryCall
    variant: Mapping[str, Any]
    tensors: dict[str, Any]
    guards: list[tuple[Any, int]]
    """(bytes of a whole allocation, bytes in the middle that belong to the tensor)."""

    def broken_guards(self) -> int:
        """Bytes beside the tensors that are no longer what they were."""
        broken = 0
        with raw():
            for memory, inner in self.guards:
                edges = torch.cat([memory[:GUARD_BYTES], memory[GUARD_BYTES + inner :]])
                broken += int((edges != _GUARD).sum())
        return broken


class InputBuilder:
    """Makes `Inputs`. `device` is where kernels run; guards are laid where nothing else checks addresses.

    `resident` is for one call that is built again and again, as a clock wants it: recorded memory stays on the device,
    and random values are drawn there, so they are not those that another device would draw.
    """

    def __init__(
        self, workload: Workload, tensors: TensorFile, device: str, guarded: bool, resident: bool = False
    ) -> None:
        self._workload = workload
        self._tensors = tensors
        self._device = device
        self._guarded = guarded
        self._draws_on = device if resident else "cpu"
        self._recorded: dict[int, Any] | None = {} if resident else None
        self._zero: dict[int, bool] = {}
        self._spreads: dict[TensorRecord, Spread] = {}

    def build(self, entry: EntryCall, variant: Mapping[str, Any]) -> Inputs:
        """All tensors of the call; raises `CannotBuild`."""
        inputs = Inputs(entry, variant, {}, [])
        shared: dict[int, Any] = {}
        generator = torch._C.Generator(self._draws_on)
        generator.manual_seed(int(variant["seed"]) or 1)
        written = set(entry.mutated)
        with raw():
            for path, record, flags in _tensor_paths(entry):
                keep = "state" in flags and not variant["sizes"]
                keep = keep or (path in written and self._is_zero(record.storage))
                tensor = self._tensor(record, variant, shared, generator, inputs, keep)
                if record.requires_grad and (tensor.is_floating_point() or tensor.is_complex()):
                    tensor.requires_grad_()
                if record.device == "cpu":
                    tensor.__dict__["_wavesmith_host"] = True
                inputs.tensors[path] = tensor
        return inputs

    def _is_zero(self, number: int) -> bool:
        """A buffer that is handed over zeroed and written: what is added to, so any other start has no meaning."""
        if number not in self._zero:
            self._zero[number] = not bool(self._bytes(number).any())
        return self._zero[number]

    def refill(self, held: Inputs, fresh: Inputs) -> Inputs:
        """The fresh values in the held memory, where both have the same tensors: other values at the same addresses."""
        with raw(), torch.no_grad():
            if held.tensors.keys() != fresh.tensors.keys():
                return fresh
            if any(_layout(held.tensors[p]) != _layout(fresh.tensors[p]) for p in held.tensors):
                return fresh
            for path, tensor in held.tensors.items():
                write(tensor, fresh.tensors[path])
                tensor.grad = None
        return Inputs(fresh.entry, fresh.variant, held.tensors, held.guards)

    # --- memory -----------------------------------------------------------------------------------------------------

    def _tensor(
        self, record: TensorRecord, variant: Mapping[str, Any], shared: dict[int, Any], generator: Any, inputs: Inputs,
        keep: bool,
    ) -> Any:  # fmt: skip
        dtype = getattr(torch, record.dtype)
        sizes = {int(a): int(b) for a, b in variant["sizes"]}
        if any(n in sizes for n in record.shape):
            return self._resized(record, dtype, sizes, variant, generator, inputs, keep)
        flat = shared.get(record.storage)
        if flat is None:
            flat = self._allocate(self._bytes(record.storage), inputs, own=self._is_own(record.storage))
            shared[record.storage] = flat
        usable = flat[: flat.numel() // dtype.itemsize * dtype.itemsize].view(dtype)
        # `as_strided` counts its offset from the start of the allocation, guard included.
        tensor = usable.as_strided(record.shape, record.stride, usable.storage_offset() + record.offset)
        if variant["distribution"] != "recorded" and not keep and tensor.numel():
            if dtype.is_floating_point:
                write(tensor, self._float_values(record, record.shape, variant, generator))
            elif variant["permute"]:
                write(tensor, _permuted(tensor, generator))
        if sizes and not dtype.is_floating_point and dtype != torch.bool:
            write(tensor, _into_range(tensor, tensor, sizes))
        return tensor

    def _float_values(
        self, record: TensorRecord, shape: Sequence[int], variant: Mapping[str, Any], generator: Any
    ) -> Any:
        """Values of a distribution for a recorded tensor, of another shape perhaps, in its type."""
        spread = self._spreads.get(record)
        if spread is None:
            self._spreads[record] = spread = Spread.of(self._as_recorded(record))
        dtype, distribution = getattr(torch, record.dtype), str(variant["distribution"])
        on_host = math.prod(shape) * dtype.itemsize if self._draws_on == "cpu" else 0
        with device_lock.away(on_host):
            return spread.values(tuple(shape), dtype, distribution, generator)

    def _as_recorded(self, record: TensorRecord) -> Any:
        """The recorded tensor; not to be written to."""
        dtype = getattr(torch, record.dtype)
        flat = self._bytes(record.storage)
        flat = flat[: flat.numel() // dtype.itemsize * dtype.itemsize].view(dtype)
        return flat.as_strided(record.shape, record.stride, record.offset)

    def _allocate(self, data: Any, inputs: Inputs, *, own: bool) -> Any:
        """New memory holding `data` (uint8), on the device, between guards where asked; `own` data is nobody else's."""
        if not self._guarded:
            return data.to(self._device, copy=not own)
        whole = torch.full((data.numel() + 2 * GUARD_BYTES,), _GUARD, dtype=torch.uint8, device=self._device)
        inner = whole[GUARD_BYTES : GUARD_BYTES + data.numel()]
        inner.copy_(data)
        inputs.guards.append((whole, data.numel()))
        return inner

    def _bytes(self, number: int) -> Any:
        """What the memory held when the call was recorded (uint8); not to be written to."""
        if self._recorded is None:
            return self._read(number)
        if number not in self._recorded:
            self._recorded[number] = self._read(number).to(self._device)
        return self._recorded[number]

    def _is_own(self, number: int) -> bool:
        """Whether `_bytes` makes its answer anew: a copy would touch every page of a buffer of which few are in use."""
        return self._recorded is None and self._workload.storages[number].page_key is not None

    def _read(self, number: int) -> Any:
        storage = self._workload.storages[number]
        if storage.key is None:
            raise CannotBuild(storage.reason or "the recorded values were not kept")
        data = _uint8(self._tensors[storage.key])
        if storage.page_key is None:
            return data
        flat = torch.zeros(storage.nbytes, dtype=torch.uint8)
        pages = np.frombuffer(self._tensors[storage.page_key], dtype=np.int64)
        for i, page in enumerate(pages.tolist()):
            part = data[i * _PAGE_BYTES : (i + 1) * _PAGE_BYTES]
            end = min(storage.nbytes, (page + 1) * _PAGE_BYTES)
            flat[page * _PAGE_BYTES : end] = part[: end - page * _PAGE_BYTES]
        return flat

    def _resized(
        self, record: TensorRecord, dtype: Any, sizes: Mapping[int, int], variant: Mapping[str, Any], generator: Any,
        inputs: Inputs,
        keep: bool,
    ) -> Any:  # fmt: skip
        shape = tuple(sizes.get(n, n) for n in record.shape)
        order = sorted(range(len(shape)), key=lambda d: -record.stride[d])
        strides, step = [0] * len(shape), 1
        for d in reversed(order):
            strides[d] = step
            step *= shape[d]
        flat = self._allocate(torch.zeros(step * dtype.itemsize, dtype=torch.uint8), inputs, own=True)
        tensor = flat.view(dtype).as_strided(shape, strides)
        if keep:
            return tensor
        if dtype.is_floating_point:
            tensor.copy_(self._float_values(record, shape, variant, generator))
            return tensor
        old = part = self._as_recorded(record)
        for d, n in enumerate(shape):
            part = part.index_select(d, torch.arange(n, device=old.device) % max(1, old.shape[d]))
        tensor.copy_(_into_range(part, old, sizes))
        return tensor

    # --- Python values ----------------------------------------------------------------------------------------------

    def assemble(
        self, inputs: Inputs, module: types.ModuleType
    ) -> tuple[Any, tuple[Any, ...], dict[str, Any], list[Any]]:
        """Receiver, positional and keyword arguments, and gradients, with the candidate's own classes."""
        entry = inputs.entry
        make = _Maker(inputs, module)
        receiver = make.value(entry.receiver, "receiver") if entry.receiver is not None else None
        args = tuple(make.value(v, f"args.{i}") for i, v in enumerate(entry.args))
        kwargs = {k: make.value(v, f"kwargs.{k}") for k, v in entry.kwargs.items()}
        grads = [make.value(v, f"grads.{i}") for i, v in enumerate(entry.grads)]
        return receiver, args, kwargs, grads


def _uint8(data: memoryview) -> Any:
    """Bytes as a tensor, those of a mapped file as they lie there. torch reads no empty buffer: one of no elements, or
    memory that nothing touched."""
    if not data.nbytes:
        return torch.empty(0, dtype=torch.uint8)
    return torch.frombuffer(bytearray(data) if data.readonly else data, dtype=torch.uint8)


def write(tensor: Any, values: Any) -> None:
    """Copy values of the same shape; of those that share an element (an expanded tensor's), the first counts."""
    for d, (n, step) in enumerate(zip(tensor.shape, tensor.stride(), strict=True)):
        if step == 0 and n > 1:
            tensor, values = tensor.narrow(d, 0, 1), values.narrow(d, 0, 1)
    tensor.copy_(values)


def _layout(tensor: Any) -> tuple[Any, ...]:
    return tuple(tensor.shape), tuple(tensor.stride()), tensor.dtype


def _tensor_paths(entry: EntryCall) -> Iterator[tuple[str, TensorRecord, frozenset[str]]]:
    roots = [(f"args.{i}", v) for i, v in enumerate(entry.args)]
    roots += [(f"kwargs.{k}", v) for k, v in entry.kwargs.items()]
    roots += [(f"grads.{i}", v) for i, v in enumerate(entry.grads)]
    roots += [("receiver", entry.receiver)] if entry.receiver is not None else []
    for path, value in roots:
        yield from _paths_below(path, value, frozenset(("state",)) if path == "receiver" else frozenset())


def _paths_below(path: str, value: Value, flags: frozenset[str]) -> Iterator[tuple[str, TensorRecord, frozenset[str]]]:
    if value.tensor is not None:
        yield path, value.tensor, flags
    for i, item in enumerate(value.items):
        yield from _paths_below(f"{path}.{i}", item, flags)


def _permuted(tensor: Any, generator: Any) -> Any:
    """The same integers in another order, where their order means nothing."""
    if not tensor.ndim or tensor.is_complex() or _sorted(tensor):
        return tensor
    return tensor[torch.randperm(tensor.shape[0], generator=generator, device=generator.device).to(tensor.device)]


def _sorted(tensor: Any) -> bool:
    """Offsets and segment starts rise; in another order they would mean nothing."""
    flat = tensor.reshape(-1)
    return bool(flat.numel() > 1 and (flat[1:] >= flat[:-1]).all())


def _into_range(tensor: Any, recorded: Any, sizes: Mapping[int, int]) -> Any:
    """Indices and offsets into a dimension that shrank: an end stays the end, an index wraps around.

    Which of them it is, `recorded` tells, of which the tensor may be a part: offsets reach the dimension's old size. In
    a part of them an offset past the end is the end, too, or they would fall, and rows would be written by several.
    """
    if tensor.numel() == 0 or tensor.dtype == torch.bool or tensor.is_floating_point() or tensor.is_complex():
        return tensor
    result = tensor.clone()
    top = int(recorded.max())
    for old, new in sizes.items():
        if new < old and top == old:
            result = result.clamp(max=new)
        elif new < old and top < old and top >= new:
            result = torch.where(result >= new, result % new, result)
    return result


class _Maker:
    """`Value` trees back into Python objects; tensors come from the inputs, names from the candidate's module."""

    def __init__(self, inputs: Inputs, module: types.ModuleType) -> None:
        self._tensors = inputs.tensors
        self._module = module
        variant = inputs.variant
        self._sizes = {int(a): int(b) for a, b in variant["sizes"]}
        self._scalars = bool(variant["scalars"])
        self._flip = variant["flip"]

    def value(self, value: Value, path: str) -> Any:
        if value.kind == "tensor":
            tensor = self._tensors[path]
            return torch.nn.Parameter(tensor) if value.type and value.type.endswith("Parameter") else tensor
        handler = _SCALARS.get(value.kind)
        if handler is not None:
            return self._scalar(handler(value), value.kind, path)
        items = [self.value(item, f"{path}.{i}") for i, item in enumerate(value.items)]
        return self._container(value, items)

    def _scalar(self, plain: Any, kind: str, path: str) -> Any:
        if kind == "int" and not path.startswith("receiver"):
            return self._sizes.get(plain, plain)
        if kind == "float" and self._scalars and not path.startswith("receiver"):
            return plain * 0.75
        if kind == "bool" and path == self._flip:
            return not plain
        return plain

    def _container(self, value: Value, items: list[Any]) -> Any:
        match value.kind:
            case "list":
                return items
            case "tuple":
                return tuple(items)
            case "size":
                return torch.Size(items)
            case "slice":
                return slice(*items)
            case "dict":
                pairs = zip(value.keys, items, strict=True) if value.type != "pairs" else zip(*[iter(items)] * 2)  # noqa: B905
                return dict(pairs)
            case "namedtuple":
                return self.named(value.type)(*items)
            case "dataclass":
                return self.named(value.type)(**dict(zip(value.keys, items, strict=True)))
            case "global":
                return self.named(str(value.value))
            case "descriptor":
                from triton.tools.tensor_descriptor import TensorDescriptor

                return TensorDescriptor(**dict(zip(value.keys, items, strict=True)))
            case "module" | "object":
                return self._object(value, dict(zip(value.keys, items, strict=True)))
        raise CannotBuild(f"a value of kind {value.kind} cannot be rebuilt")

    def _object(self, value: Value, parts: Mapping[str, Any]) -> Any:
        cls = self.named(value.type)
        made = cls(*parts["args"], **parts["kwargs"]) if parts["made"] else cls.__new__(cls)
        if isinstance(made, torch.nn.Module):
            own = made.state_dict()
            fitting = {k: v.detach() for k, v in parts["state"].items() if k in own and own[k].shape == v.shape}
            made.load_state_dict(fitting, strict=False)
            return made.train(bool(parts["flags"].get("training", False))).cuda()
        vars(made).update(parts["state"])
        return made

    def named(self, name: str | None) -> Any:
        """`module:qualname`, the candidate's own file being module `""`; `.` after a class names an enum's member."""
        if name is None:
            raise CannotBuild("an object without a name cannot be rebuilt")
        module_name, _, qualname = name.partition(":")
        found: Any = self._module
        if module_name:
            import importlib

            found = importlib.import_module(module_name)
        for part in qualname.split(".") if qualname else ():
            found = getattr(found, part)
        return found


def _float(value: Value) -> float:
    return float(value.value if value.value is not None else "nan")


_SCALARS: Mapping[str, Callable[[Value], Any]] = {
    "int": lambda v: v.value,
    "bool": lambda v: v.value,
    "str": lambda v: v.value,
    "none": lambda v: None,
    "float": _float,
    "complex": lambda v: complex(str(v.value)),
    "dtype": lambda v: getattr(torch, str(v.value)),
    "device": lambda v: torch.device(str(v.value)),
    "ellipsis": lambda v: Ellipsis,
    "generator": lambda v: torch.Generator("cpu"),
    "tl_dtype": lambda v: _triton_dtype(str(v.value)),
}


def _triton_dtype(name: str) -> Any:
    import triton.language as tl

    return tl.dtype(name)


def flatten(place: str, value: Any) -> Sequence[tuple[str, Any]]:
    """Every leaf of a result tree with its place; an empty container is a leaf too, so that dropping one shows."""
    if isinstance(value, list | tuple) and len(value):
        return [leaf for i, item in enumerate(value) for leaf in flatten(f"{place}[{i}]", item)]
    if isinstance(value, dict) and value:
        return [leaf for key, item in value.items() for leaf in flatten(f"{place}[{key!r}]", item)]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = [(f.name, getattr(value, f.name, None)) for f in dataclasses.fields(value)]
        return [leaf for name, item in fields for leaf in flatten(f"{place}.{name}", item)]
    return [(place, value)]
