"""Child side: `cuda` tensors without a GPU.

A torch function mode turns requests for `cuda` or `hip` memory into host memory and answers questions about the device
as the chosen board would. Which tensors *count* as device tensors is tracked the other way round: those known to be
host tensors carry a mark, every other one counts as a device tensor, because gradients and results made inside C++ pass
by the mode unseen. Moves between the two really copy, as on a GPU: a harness that keeps `x.cpu()` and lets a kernel
overwrite `x` must keep the old values.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils import _device

from sandbox.child_values import raw

DEVICE_TYPES = ("cuda", "hip", "privateuseone")
_MARK = "_wavesmith_host"

_RANDOM = {
    torch.randn, torch.rand, torch.randn_like, torch.rand_like, torch.normal, torch.Tensor.normal_,
    torch.Tensor.uniform_, torch.Tensor.exponential_,
}  # fmt: skip


def is_host(tensor: Any) -> bool:
    """Whether the program sees this tensor in host memory."""
    return getattr(tensor, "__dict__", {}).get(_MARK, False) is True


def lies_in_host_memory(tensor: Any) -> bool:
    """The same question on a real GPU."""
    with raw():
        return not tensor.is_cuda


def living_memory() -> frozenset[int]:
    """Addresses of what torch's allocator has given away on the GPUs and not got back."""
    found = []
    for segment in torch.cuda.memory_snapshot():
        address = segment["address"]
        for block in segment["blocks"]:
            if block["state"] == "active_allocated":
                found.append(address)
            address += block["size"]
    return frozenset(found)


def _mark(value: Any, host: bool) -> None:
    for tensor in _shallow(value):
        if host:
            tensor.__dict__[_MARK] = True
        else:
            tensor.__dict__.pop(_MARK, None)


def _shallow(value: Any) -> Iterator[Any]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            if isinstance(item, torch.Tensor):
                yield item
            elif isinstance(item, (list, tuple)):
                yield from (x for x in item if isinstance(x, torch.Tensor))


def device_kind(value: Any) -> str | None:
    """`cuda` or `cpu` for something that names a device, None for anything else. Numbers name GPUs."""
    if isinstance(value, torch.device):
        return "cuda" if value.type in DEVICE_TYPES else value.type
    if isinstance(value, str):
        kind = value.split(":", 1)[0]
        return "cuda" if kind in DEVICE_TYPES else kind if kind in ("cpu", "meta") else None
    if isinstance(value, int) and not isinstance(value, bool):
        return "cuda"
    return None


class DeviceMode(TorchFunctionMode):  # type: ignore[misc]
    """See the module. `redraw` changes what the random factories give: another distribution."""

    def __init__(self, pretend: bool = True) -> None:
        super().__init__()
        self.pretend = pretend
        """False on a real GPU: nothing is rewritten, only comparisons and random draws are seen."""
        self.redraw: Callable[[Any], None] | None = None
        self.on_compare: Callable[..., Any] | None = None
        """Called as (name, function, args, kwargs) for the comparisons a harness makes; returns its answer."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs) if kwargs else {}
        if self.on_compare is not None and func in _COMPARES:
            return self.on_compare(_COMPARES[func], func, args, kwargs)
        if not self.pretend:
            return self._redrawn(func, func(*args, **kwargs))
        special = _SPECIAL.get(func)
        if special is not None:
            return special(self, func, args, kwargs)
        asked = None
        if kwargs.get("device") is not None:
            asked = device_kind(kwargs["device"])
            if asked == "cuda":
                kwargs["device"] = torch.device("cpu")
        elif _device.CURRENT_DEVICE is not None and func in _device._device_constructors():
            asked = device_kind(_device.CURRENT_DEVICE)  # `torch.set_default_device` or `with torch.device(...)`
            kwargs["device"] = torch.device("cpu") if asked == "cuda" else _device.CURRENT_DEVICE
        if kwargs.get("pin_memory"):
            kwargs["pin_memory"] = False
        if any(isinstance(a, torch.device) for a in args):
            asked = next(device_kind(a) for a in args if isinstance(a, torch.device))
            args = tuple(torch.device("cpu") if isinstance(a, torch.device) and asked == "cuda" else a for a in args)
        result = func(*args, **kwargs)
        if isinstance(result, (torch.Tensor, list, tuple)):
            self._settle(func, result, args, kwargs, asked)
        return result

    def _settle(self, func: Any, result: Any, args: Any, kwargs: Any, asked: str | None) -> None:
        with raw():
            if asked is not None:
                _mark(result, asked == "cpu")
            else:
                inputs = [*_shallow(args), *_shallow(tuple(kwargs.values()))]
                if inputs:
                    if all(is_host(t) for t in inputs):
                        _mark(result, True)
                else:
                    _mark(result, True)
            self._redrawn(func, result)

    def _redrawn(self, func: Any, result: Any) -> Any:
        if self.redraw is not None and func in _RANDOM and isinstance(result, torch.Tensor):
            with raw():
                self.redraw(result)
        return result


def _get_is_cuda(mode: DeviceMode, func: Any, args: Any, kwargs: Any) -> bool:
    return not is_host(args[0]) and _real_type(args[0]) in ("cpu", "cuda")


def _get_is_cpu(mode: DeviceMode, func: Any, args: Any, kwargs: Any) -> bool:
    return is_host(args[0])


def _real_type(tensor: Any) -> str:
    with raw():
        return str(tensor.device.type)


def _get_device(mode: DeviceMode, func: Any, args: Any, kwargs: Any) -> Any:
    real = func(*args, **kwargs)
    return torch.device("cuda", 0) if real.type == "cpu" and not is_host(args[0]) else real


def _get_device_number(mode: DeviceMode, func: Any, args: Any, kwargs: Any) -> int:
    return -1 if is_host(args[0]) else 0


def _moved(tensor: Any, result: Any, host: bool) -> Any:
    """`result` as a tensor on the wanted side: a copy when it would otherwise be the other side's tensor itself."""
    if is_host(tensor) != host:
        with raw():
            result = result.clone() if result is tensor else result
            _mark(result, host)
    elif result is not tensor:
        _mark(result, host)
    return result


def _cuda(mode: DeviceMode, func: Any, args: Any, kwargs: Any) -> Any:
    return _moved(args[0], args[0], False)


def _cpu(mode: DeviceMode, func: Any, args: Any, kwargs: Any) -> Any:
    return _moved(args[0], args[0], True)


def _to(mode: DeviceMode, func: Any, args: Any, kwargs: Any) -> Any:
    tensor, rest = args[0], list(args[1:])
    asked = None
    for i, value in enumerate(rest):
        if i == 0 and isinstance(value, torch.Tensor):
            asked = "cpu" if is_host(value) else "cuda"
        elif i == 0 and device_kind(value) is not None:
            asked = device_kind(value)
            rest[i] = torch.device("cpu") if asked == "cuda" else value
    if kwargs.get("device") is not None:
        asked = device_kind(kwargs["device"])
        if asked == "cuda":
            kwargs["device"] = torch.device("cpu")
    if isinstance(kwargs.get("other"), torch.Tensor):
        asked = "cpu" if is_host(kwargs["other"]) else "cuda"
    result = func(tensor, *rest, **kwargs)
    if asked not in ("cpu", "cuda"):
        if is_host(tensor):
            _mark(result, True)
        return result
    return _moved(tensor, result, asked == "cpu")


def _type(mode: DeviceMode, func: Any, args: Any, kwargs: Any) -> Any:
    wanted = args[1] if len(args) > 1 else kwargs.get("dtype")
    if wanted is None:
        name = str(func(*args, **kwargs))
        return name if is_host(args[0]) else name.replace("torch.", "torch.cuda.", 1)
    if isinstance(wanted, str):
        host = not wanted.startswith("torch.cuda.")
        return _moved(args[0], func(args[0], wanted.replace("torch.cuda.", "torch.")), host)
    result = func(*args, **kwargs)
    _mark(result, is_host(args[0]))
    return result


def _set_data(mode: DeviceMode, func: Any, args: Any, kwargs: Any) -> Any:
    result = func(*args, **kwargs)
    _mark(args[0], is_host(args[1]))
    return result


def _same(mode: DeviceMode, func: Any, args: Any, kwargs: Any) -> Any:
    return args[0]


def _nothing(mode: DeviceMode, func: Any, args: Any, kwargs: Any) -> None:
    return None


def _unchanged(mode: DeviceMode, func: Any, args: Any, kwargs: Any) -> Any:
    """`torch.device(...)` itself comes by here too: naming a GPU is no request for its memory."""
    return func(*args, **kwargs)


_SPECIAL: dict[Any, Callable[[DeviceMode, Any, Any, Any], Any]] = {
    torch.device: _unchanged,
    torch.Tensor.is_cuda.__get__: _get_is_cuda,
    torch.Tensor.is_cpu.__get__: _get_is_cpu,
    torch.Tensor.device.__get__: _get_device,
    torch.Tensor.get_device: _get_device_number,
    torch.Tensor.cuda: _cuda,
    torch.Tensor.cpu: _cpu,
    torch.Tensor.to: _to,
    torch.Tensor.type: _type,
    torch.Tensor.data.__set__: _set_data,
    torch.Tensor.pin_memory: _same,
    torch.Tensor.is_pinned: lambda mode, func, args, kwargs: is_host(args[0]),
    torch.Tensor.record_stream: _nothing,
}
_COMPARES = {
    torch.allclose: "torch.allclose",
    torch.equal: "torch.equal",
    torch.Tensor.allclose: "torch.allclose",
    torch.Tensor.equal: "torch.equal",
}


def install(mode: DeviceMode) -> None:
    """Enter the mode for this thread, every later thread, and everything the autograd engine calls."""
    mode.__enter__()
    _wrap_engine(mode)
    _wrap_threads(mode)


def active(mode: DeviceMode) -> bool:
    """Whether the mode is on this thread's stack."""
    count = torch._C._len_torch_function_stack()
    return any(torch._C._get_function_stack_at(i) is mode for i in range(count))


def with_mode(mode: DeviceMode, function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` run with the mode on, whoever calls it."""
    import functools

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        if active(mode):
            return function(*args, **kwargs)
        with mode:
            return function(*args, **kwargs)

    return wrapped


def _wrap_engine(mode: DeviceMode) -> None:
    # Inside `__torch_function__` the mode is off, and `Tensor.backward` gets there through it: without this the user's
    # `backward` methods would see plain CPU tensors.
    engine = with_mode(mode, torch.autograd.graph._engine_run_backward)
    torch.autograd.graph._engine_run_backward = engine
    torch.autograd._engine_run_backward = engine


def _wrap_threads(mode: DeviceMode) -> None:
    start = threading.Thread.start

    def started(self: threading.Thread) -> None:
        self.run = with_mode(mode, self.run)  # type: ignore[method-assign]
        start(self)

    threading.Thread.start = started  # type: ignore[method-assign]
