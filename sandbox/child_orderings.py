"""Child side: integers that a call puts in order for its kernels, and what else it does with them.

Putting work in another order is no computation of the result: integers that the call was given may be sorted, and
integers may be gathered by the order found, where both go to kernels alone and no order is the right one. So a call
that does this is made again with a random order in the place of the one found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch

from sandbox.cheats.names import INDEXING
from sandbox.child_values import raw, storage_of, tensors_in

INTEGERS = frozenset(
    (torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8, torch.uint16, torch.uint32, torch.uint64)
)
_SORTS = frozenset(("argsort", "sort"))
_GATHERS = frozenset(("gather", "index_select", INDEXING))
_QUESTIONS = frozenset(
    ("__get__", "size", "stride", "numel", "nelement", "dim", "ndimension", "element_size", "is_contiguous", "__len__",
     "storage_offset", "data_ptr", "get_device", "is_floating_point")
)  # fmt: skip
"""What may be asked of ordered integers on their way to a kernel: nothing that reads them or makes others of them."""


class Orderings:
    """The orders of one call after another. A storage is known by its address while the call runs."""

    def __init__(self, is_host: Callable[[Any], bool]) -> None:
        self._is_host = is_host
        self.found: dict[str, int] = {}
        """Functions that put integers in order, with how often; they count as no library call."""
        self.wrong: list[str] = []
        """What the call did with an order besides."""
        self.fed: dict[str, int] = {}
        """Kernels that are given ordered integers, with in how many launches."""
        self.shuffle: torch.Generator | None = None
        """Where random orders take the place of those found."""
        self._given: set[int] = set()
        self._floats: set[int] = set()
        self._written: set[int] = set()
        self._orders: set[int] = set()
        self._ordered: set[int] = set()
        self._earlier: set[int] = set()
        self._held: list[Any] = []

    def start(self, given: Iterable[Any], shuffle: torch.Generator | None) -> None:
        """Forget the call before, but for the memory of its orders."""
        self._earlier |= self._orders | self._ordered
        self.found, self.wrong, self.fed, self.shuffle = {}, [], {}, shuffle
        self._given, self._floats, self._written, self._orders, self._ordered = set(), set(), set(), set(), set()
        self._held = []  # an address stands for the same memory until the call ends
        for tensor in given:
            (self._given if tensor.dtype in INTEGERS else self._floats).add(storage_of(tensor)[0])

    def seen(self, name: str, args: Any, kwargs: Mapping[str, Any], result: Any) -> tuple[str | None, Any]:
        """(the name a call of torch counts under, None for a permitted ordering; its result, shuffled or not)."""
        if name == "__getitem__" and any(t.dim() for t in tensors_in(args[1])):
            name = INDEXING
        with raw():
            tensors = [t for t in tensors_in([args, dict(kwargs)]) if t.dim()]
            if name in _SORTS and self._may_sort(tensors):
                result = self._put_in_order(name, args, kwargs, result)
            elif name in _GATHERS and self._may_gather(tensors):
                self._ordered.add(storage_of(result)[0])
            else:
                self._use(name, tensors)
                by_tensor = name == "__setitem__" and any(t.dim() for t in tensors_in(args[1]))
                return (INDEXING if by_tensor else name), result
        self.found[name] = self.found.get(name, 0) + 1
        self._held.append(result)
        return None, result

    def handed(self, kernel: str, arguments: Iterable[Any], own: set[int]) -> None:
        """A launch of a kernel is given these; `own` are the storages of the call."""
        given = {storage_of(tensor)[0] for tensor in arguments}
        self._written |= given
        if given & (self._orders | self._ordered):
            self.fed[kernel] = self.fed.get(kernel, 0) + 1
        if given & self._earlier - own:
            self.wrong.append("a kernel is given the order that an earlier call found")

    def returned(self, tensor: Any) -> None:
        """A result of the call, or an argument that it changed."""
        if not self.found:
            return
        if storage_of(tensor)[0] in self._orders | self._ordered:
            self.wrong.append("what was put in order is itself a result")
        elif tensor.dtype in INTEGERS:
            self.wrong.append("a result of integers depends on integers that the host code puts in order")

    def _may_sort(self, tensors: Sequence[Any]) -> bool:
        """Integers of the call's own arguments, in the device's memory, before any kernel was given them."""
        return len(tensors) == 1 and self._is_integer(tensors[0]) and storage_of(tensors[0])[0] in self._untouched

    def _may_gather(self, tensors: Sequence[Any]) -> bool:
        """Integers that were given or ordered before, by an order of this very call."""
        if len(tensors) != 2 or not all(map(self._is_integer, tensors)):
            return False
        values, order = (storage_of(t)[0] for t in tensors)
        return order in self._orders and values in self._untouched | self._ordered

    @property
    def _untouched(self) -> set[int]:
        return self._given - self._floats - self._written

    def _is_integer(self, tensor: Any) -> bool:
        return type(tensor) is torch.Tensor and tensor.dtype in INTEGERS and not self._is_host(tensor)

    def _use(self, name: str, tensors: Iterable[Any]) -> None:
        """A function that is no ordering; what was ordered may only be asked for its form."""
        if name not in _QUESTIONS and any(storage_of(t)[0] in self._orders | self._ordered for t in tensors):
            self.wrong.append(f"torch's {name} is given integers that were put in order")

    def _put_in_order(self, name: str, args: Any, kwargs: Mapping[str, Any], result: Any) -> Any:
        """The result, or that of a random order along the same axis."""
        values, order = (None, result) if name == "argsort" else result
        if self.shuffle is not None:
            axis = kwargs.get("dim", next((a for a in args[1:] if type(a) is int), -1))
            drawn = torch.rand(order.shape, generator=self.shuffle).argsort(axis).to(order.device)
            order.copy_(drawn)
            if values is not None:
                values.copy_(args[0].gather(axis, drawn))
        self._orders.add(storage_of(order)[0])
        if values is not None:
            self._ordered.add(storage_of(values)[0])
        return result
