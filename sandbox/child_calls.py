"""Child side: the calls a `workload.yaml` describes, made with the user's file. See `sandbox.workload_file`."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from sandbox.child_forms import FormOutcome
from sandbox.child_inputs import write
from sandbox.child_modules import guard, import_file
from sandbox.child_random import DISTRIBUTIONS, draw
from sandbox.child_values import tensors_in
from sandbox.errors import InputError


def run_calls(folder: Path, kernel: str, calls: Sequence[Mapping[str, Any]]) -> FormOutcome:
    """Import `kernel`, a path from `folder`, under its own name, which runs no `__main__` block; make every call."""
    import sys

    sys.argv = [str(folder / kernel)]
    module, error = import_file(folder / kernel, kernel)
    for call in calls if error is None else ():
        error = guard(lambda call=call: _make(module, call))  # type: ignore[misc]
        if error is not None:
            break
    return FormOutcome("workload-file", error, module)


def _make(module: Any, call: Mapping[str, Any]) -> None:
    torch.manual_seed(int(call["seed"]))
    if call["kernel"] is not None:
        kernel = _named(module, call["kernel"])
        kernel[tuple(call["grid"])](**_values(call["arguments"]), **call["options"])
        return
    function = _callable(module, call)
    output = function(**_values(call["arguments"]))
    if call["backward"]:
        total = sum(t.float().sum() for t in tensors_in(output) if t.requires_grad)
        if not isinstance(total, torch.Tensor):
            raise RuntimeError(f"{call['entry']} gives nothing to run backward from: set requires_grad on an argument")
        total.backward()


def _callable(module: Any, call: Mapping[str, Any]) -> Any:
    """The function, or the bound method of an object made with `init`."""
    owner, _, name = str(call["entry"]).rpartition(".")
    if not owner:
        target = _named(module, name)
        if inspect.isclass(target):
            return target(**_values(call["init"]))
        return target
    cls = _named(module, owner)
    if isinstance(inspect.getattr_static(cls, name, None), (staticmethod, classmethod)) or name == "apply":
        return getattr(cls, name)
    instance = cls(**_values(call["init"]))
    if isinstance(instance, torch.nn.Module):
        instance = instance.cuda()
        return instance if name == "forward" else getattr(instance, name)
    return getattr(instance, name)


def _named(module: Any, qualname: str) -> Any:
    found = module
    for part in qualname.split("."):
        if not hasattr(found, part):
            raise InputError(f"the file has no {qualname}.", file=module.__file__, remedy="Correct workload.yaml.")
        found = getattr(found, part)
    return found


def _values(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _value(spec) for name, spec in arguments.items()}


def _value(spec: Any) -> Any:
    return _tensor(spec) if isinstance(spec, Mapping) else spec


def _tensor(spec: Mapping[str, Any]) -> Any:
    """A device tensor as described; values come from torch's global generator."""
    dtype, shape = getattr(torch, spec["dtype"]), tuple(spec["shape"])
    flat = _contents(spec, dtype, shape)
    tensor = flat.cuda()
    if spec["stride"] is not None:
        strided = torch.empty_strided(shape, tuple(spec["stride"]), dtype=dtype, device="cuda")
        write(strided, tensor)
        tensor = strided
    return tensor.requires_grad_() if spec["requires_grad"] else tensor


def _contents(spec: Mapping[str, Any], dtype: Any, shape: tuple[int, ...]) -> Any:
    if spec["values"] is not None:
        return torch.tensor(spec["values"], dtype=torch.float64).reshape(shape).to(dtype)
    kind = spec["distribution"]
    if kind == "empty":
        return torch.empty(shape, dtype=dtype)
    if kind == "arange":
        count = 1
        for size in shape:
            count *= size
        return (torch.arange(count) + spec["low"]).reshape(shape).to(dtype)
    if kind == "zeros":
        return torch.zeros(shape, dtype=dtype)
    if not dtype.is_floating_point:
        if kind == "ones":
            return torch.ones(shape, dtype=dtype)
        high = spec["high"] if spec["high"] is not None else 2 if dtype is torch.bool else 64
        return torch.randint(spec["low"], high, shape).to(dtype)
    if kind == "integers":
        high = spec["high"] if spec["high"] is not None else 64
        return torch.randint(spec["low"], high, shape).to(dtype)
    values = draw(shape, dtype, kind if kind in DISTRIBUTIONS else "normal", torch.default_generator)
    return (values * spec["scale"]).to(dtype)
