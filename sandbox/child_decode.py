"""Child side: recorded values made live again, as they were or drawn anew.

Tensors are rebuilt on storages, so that views alias as they did. Redrawing works per storage: floating-point contents
get new values with the recorded mean, spread and sign domain; integers, indices and booleans stay: they carry meaning.
"""

from __future__ import annotations

import ctypes
import importlib
import types
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from sandbox.child_random import draw, redraw_
from sandbox.child_values import PAGE_BYTES, raw
from sandbox.tensor_file import TensorFile

_STATISTICS_ELEMENTS = 1 << 20


class CannotDecode(Exception):  # noqa: N818 - an outcome: this entry cannot be replayed
    """A recorded value cannot be made again; the message says why."""


@dataclass(slots=True)
class Redraw:
    """How inputs differ from the recorded ones: `poisoned` and `kept` are numbers of storages."""

    distribution: str = "recorded"
    seed: int = 0
    cast: Any = None
    poisoned: frozenset[int] = frozenset()
    kept: frozenset[int] = frozenset()


@dataclass(slots=True)
class Decoder:
    """Makes values for one entry call; every call gets fresh memory."""

    file: TensorFile
    storages: Mapping[int, Mapping[str, Any]]
    redraw: Redraw
    gpu: bool
    module: types.ModuleType | None = None
    made: dict[tuple[int, str], Any] = field(default_factory=dict)
    generator: Any = None

    def __post_init__(self) -> None:
        self.generator = torch._C.Generator("cpu")
        self.generator.manual_seed(self.redraw.seed)

    # --- tensors ----------------------------------------------------------------------------------------------------

    def prepare(self, values: list[Mapping[str, Any]]) -> None:
        """Make the memory of every tensor in `values`, in order, so that draws do not depend on the candidate."""
        with raw():
            for value in values:
                if value.get("tensor") is not None:
                    self._flat(value["tensor"])
                self.prepare(list(value.get("items", ())))

    def tensor(self, record: Mapping[str, Any]) -> Any:
        with raw():
            flat = self._flat(record)
            tensor = flat.new_empty(0).set_(
                flat.untyped_storage(), record["offset"], tuple(record["shape"]), tuple(record["stride"])
            )
            if record["requires_grad"] and (tensor.is_floating_point() or tensor.is_complex()):
                tensor.requires_grad_()
            if record["device"] == "cpu":
                tensor.__dict__["_wavesmith_host"] = True
            return tensor

    def _flat(self, record: Mapping[str, Any]) -> Any:
        """The whole storage as a 1-D tensor of the record's dtype, after redraw and cast."""
        number, dtype = int(record["storage"]), _dtype(record["dtype"])
        for (known, _), flat in self.made.items():
            if known == number:
                return flat if flat.dtype == self._final(dtype) else flat.view(dtype)
        flat = self._recorded(number, dtype)
        if flat.is_floating_point() and flat.numel():
            flat = self._drawn(number, flat)
        if self.gpu and record["device"] != "cpu":
            flat = flat.cuda()
        self.made[(number, record["dtype"])] = flat
        return flat

    def _final(self, dtype: Any) -> Any:
        return self.redraw.cast if self.redraw.cast is not None and dtype.is_floating_point else dtype

    def _recorded(self, number: int, dtype: Any) -> Any:
        storage = self.storages.get(number)
        if storage is None:
            raise CannotDecode(f"storage {number} is not part of the workload")
        nbytes = int(storage["nbytes"])
        if storage.get("key") is None:
            raise CannotDecode(f"an input was not kept: {storage.get('reason')}")
        if storage["key"] not in self.file:
            raise CannotDecode(f"the contents of storage {number} are missing")
        data = self.file[storage["key"]]
        if storage.get("page_key") is None:
            flat = torch.empty(nbytes, dtype=torch.uint8)
            _copy(flat.data_ptr(), data)
        else:
            flat = torch.zeros(nbytes, dtype=torch.uint8)
            pages = self.file[storage["page_key"]].cast("B").cast("q")
            for position, page in enumerate(pages):
                start = page * PAGE_BYTES
                size = min(PAGE_BYTES, nbytes - start)
                if 0 <= start < nbytes:
                    _copy(flat.data_ptr() + start, data[position * PAGE_BYTES : position * PAGE_BYTES + size])
        usable = nbytes - nbytes % dtype.itemsize
        return flat[:usable].view(dtype)

    def _drawn(self, number: int, flat: Any) -> Any:
        if self.redraw.cast is not None:
            flat = flat.to(self.redraw.cast)
        if number in self.redraw.poisoned:
            return flat.fill_(float("nan"))
        if self.redraw.distribution != "recorded" and number not in self.redraw.kept:
            _redraw_like(flat, self.redraw.distribution, self.generator)
        return flat

    # --- values -----------------------------------------------------------------------------------------------------

    def value(self, data: Mapping[str, Any]) -> Any:
        """The live value; raises `CannotDecode`."""
        kind, plain = data["kind"], data.get("value")
        items = data.get("items", ())
        match kind:
            case "tensor":
                return self.tensor(data["tensor"])
            case "none":
                return None
            case "ellipsis":
                return ...
            case "int" | "bool" | "str":
                return plain
            case "float":
                return float(plain)  # type: ignore[arg-type]
            case "complex":
                return complex(str(plain))
            case "dtype":
                return self._final(_dtype(str(plain)))
            case "tl_dtype":
                import triton.language as tl

                return tl.dtype(plain)
            case "device":
                return torch.device(str(plain))
            case "generator":
                return torch.Generator()
            case "size":
                return torch.Size([self.value(i) for i in items])
            case "list":
                return [self.value(i) for i in items]
            case "tuple":
                return tuple(self.value(i) for i in items)
            case "slice":
                return slice(*(self.value(i) for i in items))
            case "dict":
                if data.get("type") == "pairs":
                    flat = [self.value(i) for i in items]
                    return dict(zip(flat[::2], flat[1::2], strict=True))
                return {k: self.value(i) for k, i in zip(data["keys"], items, strict=True)}
            case "global":
                return self.named(str(plain))
        return self._structured(kind, data)

    def _structured(self, kind: str, data: Mapping[str, Any]) -> Any:
        if kind == "unsupported" or (kind != "descriptor" and data.get("type") is None):
            raise CannotDecode(f"a value of type {data.get('value')} cannot be made again")
        values = [self.value(i) for i in data["items"]]
        if kind == "descriptor":
            from triton.tools.tensor_descriptor import TensorDescriptor

            return TensorDescriptor(*values)
        cls = self.named(str(data["type"]))
        if kind == "namedtuple":
            return cls(*values)
        keyed = dict(zip(data["keys"], values, strict=True))
        if kind == "dataclass":
            return cls(**keyed)
        return _instance(cls, keyed)

    def named(self, name: str) -> Any:
        """What `module:qualname` names; module `""` is the file under replay."""
        module_name, _, qualname = name.partition(":")
        if module_name in ("", "__main__"):
            found: Any = self.module
        else:
            try:
                found = importlib.import_module(module_name)
            except ImportError as e:
                raise CannotDecode(f"{module_name} cannot be imported: {e}") from None
        for part in [p for p in qualname.split(".") if p]:
            try:
                found = getattr(found, part)
            except AttributeError:
                raise CannotDecode(f"{name.lstrip(':')} does not exist in this file") from None
        return found


def _instance(cls: Any, parts: Mapping[str, Any]) -> Any:
    """An object made by its recorded constructor call, or restored attribute by attribute."""
    if parts["made"]:
        instance = cls(*parts["args"], **parts["kwargs"])
    else:
        instance = cls.__new__(cls)
        instance.__dict__.update(parts["state"])
    if isinstance(instance, torch.nn.Module):
        own = instance.state_dict()
        matching = {k: v.detach() for k, v in parts["state"].items() if k in own and own[k].shape == v.shape}
        instance.load_state_dict(matching, strict=False)
        instance.train(bool(parts["flags"].get("training", True)))
        return instance.cuda()
    for name, value in parts["state"].items():
        if isinstance(value, torch.Tensor):
            setattr(instance, name, value)
    return instance


def _dtype(name: str) -> Any:
    dtype = getattr(torch, name, None)
    if not isinstance(dtype, torch.dtype):
        raise CannotDecode(f"torch {torch.__version__} has no dtype {name}")
    return dtype


def _copy(address: int, data: memoryview) -> None:
    if data.nbytes:
        whole = ctypes.c_char * data.nbytes
        ctypes.memmove(address, whole.from_buffer_copy(data) if data.readonly else whole.from_buffer(data), data.nbytes)


def _redraw_like(flat: Any, distribution: str, generator: Any) -> None:
    """New values in place. What was never negative stays so, and what was never positive; constants may vary."""
    sample = flat[:_STATISTICS_ELEMENTS].to(torch.float32)
    finite = sample[torch.isfinite(sample)]
    low, high = (float(finite.min()), float(finite.max())) if finite.numel() else (0.0, 0.0)
    spread = float(finite.std()) if finite.numel() > 1 else 0.0
    mean = float(finite.mean()) if finite.numel() else 0.0
    if distribution in ("normal", "uniform", "tails"):
        values = draw(tuple(flat.shape), flat.dtype, distribution, generator)
        values = values * (spread or 1.0) + (mean if spread else 0.0)
    else:
        values = draw(tuple(flat.shape), flat.dtype, distribution, generator)
    if high > low or high != 0.0:
        if low >= 0.0:
            values = values.abs()
        elif high <= 0.0:
            values = -values.abs()
    if flat.element_size() == 1:
        limit = float(torch.finfo(flat.dtype).max)
        values = values.clamp(-limit, limit)
    flat.copy_(values.to(flat.dtype))


__all__ = ["CannotDecode", "Decoder", "Redraw", "redraw_"]
