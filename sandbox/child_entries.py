"""Child side: which host function of the user's file is behind a launch, with its inputs and outputs.

A profile hook sees calls and returns of functions defined in the user's files, nothing is wrapped. Inputs are kept just
before the first launch below a call (tensor versions tell whether the host code changed them before that), outputs and
changed arguments at its return, gradients by hooks on the outputs. Every function on the stack is a candidate; the
parent chooses among them. Launches inside `backward` belong to the call whose `forward` made the context object.
"""

from __future__ import annotations

import dataclasses
import importlib.abc
import importlib.machinery
import inspect
import sys
import sysconfig
import threading
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from sandbox.child_values import Encoder, raw, replayable, tensors_in
from sandbox.frames import FrameWriter

_SKIPPED_FLAGS = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_KEPT_OUTPUTS = 64
_MAX_RNG_CALLS = 20_000
"""Reading the generator's state takes microseconds; a helper called a million times must not."""
_version = torch.Tensor._version.__get__


@dataclasses.dataclass(slots=True)
class Call:
    """A call of a user's function that has not returned, or just has."""

    number: int
    frame: types.FrameType | None
    qualname: str
    kind: str
    parameters: tuple[str, ...]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    receiver: Any = None
    file: str = ""
    versions: dict[int, int] = dataclasses.field(default_factory=dict)
    launched: bool = False
    before: dict[str, str | None] = dataclasses.field(default_factory=dict)
    rng: Any = None


class EntryTracker:
    """Feeds `entry` messages; see the module. One per run, every thread has its own stack of calls."""

    def __init__(self, files: Mapping[str, str], encoder: Encoder, channel: FrameWriter) -> None:
        self.files = files
        self.encoder = encoder
        self.channel = channel
        self.tainted = False
        """Whether a launch before now has unknown outputs."""
        self.outputs: list[tuple[int, int | None, Any]] = []
        """The latest outputs as (call, position, tensor), for matching what a harness compares."""
        self._local = threading.local()
        self._calls = 0
        self._contexts: dict[int, tuple[Any, tuple[int, ...]]] = {}
        self._made: dict[int, tuple[Any, tuple[Any, ...], dict[str, Any]]] = {}
        self._user_code: dict[types.CodeType, bool] = {}
        encoder.constructors = self._constructor

    def start(self) -> None:
        sys.meta_path.insert(0, _InstalledImports(self))
        threading.setprofile(self._event)
        sys.setprofile(self._event)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """No hook inside: our own work and the interpreter's would only be slowed down."""
        previous = sys.getprofile()
        sys.setprofile(None)
        try:
            yield
        finally:
            sys.setprofile(previous)

    # --- the hook ---------------------------------------------------------------------------------------------------

    def _event(self, frame: types.FrameType, event: str, arg: Any) -> None:
        code = frame.f_code
        wanted = self._user_code.get(code)
        if wanted is None:
            wanted = code.co_filename in self.files and not code.co_name.startswith("<")
            wanted = wanted and not code.co_flags & _SKIPPED_FLAGS
            self._user_code[code] = wanted
        if not wanted:
            return
        if event == "call":
            with self.paused():
                self._entered(frame)
        elif event == "return":
            with self.paused():
                self._returned(frame, arg)

    @property
    def stack(self) -> list[Call]:
        if not hasattr(self._local, "stack"):
            self._local.stack = []
        stack: list[Call] = self._local.stack
        return stack

    def _entered(self, frame: types.FrameType) -> None:
        call = self._describe(frame)
        if call is not None:
            self.stack.append(call)

    def _describe(self, frame: types.FrameType) -> Call | None:
        code = frame.f_code
        names = code.co_varnames
        count = code.co_argcount
        values = frame.f_locals
        positional = [values.get(n) for n in names[:count]]
        parameters = list(names[:count])
        kwargs = {n: values.get(n) for n in names[count : count + code.co_kwonlyargcount]}
        extra = count + code.co_kwonlyargcount
        if code.co_flags & inspect.CO_VARARGS:
            positional += list(values.get(names[extra], ()))
            extra += 1
        if code.co_flags & inspect.CO_VARKEYWORDS:
            kwargs.update(values.get(names[extra], {}))
        qualname = code.co_qualname
        if code.co_name == "__init__" and positional:
            self._made[id(positional[0])] = (positional[0], tuple(positional[1:]), dict(kwargs))
            return None
        self._calls += 1
        kind, receiver = "function", None
        first = positional[0] if positional else None
        if isinstance(first, (torch.autograd.function.FunctionCtx, torch.autograd.function.BackwardCFunction)):
            if code.co_name == "backward":
                return Call(self._calls, frame, qualname, "backward", (), (first,), {})
            self._contexts[id(first)] = (first, (*(c.number for c in self.stack), self._calls))
            kind = "autograd"
            qualname = qualname.rpartition(".")[0] + ".apply"
            positional, parameters = positional[1:], parameters[1:]
        elif parameters and parameters[0] == "self" and "." in qualname:
            kind, receiver = "method", first
            positional, parameters = positional[1:], parameters[1:]
        elif parameters and parameters[0] == "cls" and isinstance(first, type):
            positional, parameters = positional[1:], parameters[1:]
        file = self.files[code.co_filename]
        call = Call(self._calls, frame, qualname, kind, tuple(parameters), tuple(positional), kwargs, receiver, file)
        with raw():
            call.versions = {id(t): _safe_version(t) for t in tensors_in([positional, kwargs])}
            call.rng = torch.get_rng_state() if self._calls < _MAX_RNG_CALLS else None
        return call

    def _returned(self, frame: types.FrameType, value: Any) -> None:
        stack = self.stack
        if not stack or stack[-1].frame is not frame:
            if not any(c.frame is frame for c in stack):
                return
            while stack[-1].frame is not frame:
                stack.pop()
        call = stack.pop()
        call.frame = None
        if call.launched and call.kind != "backward":
            self._finish(call, value)

    # --- launches ---------------------------------------------------------------------------------------------------

    def on_launch(self) -> list[dict[str, Any]]:
        """Candidates for the launch about to happen, outermost first, their inputs kept if this is their first."""
        found: list[dict[str, Any]] = []
        for call in self.stack:
            if call.kind == "backward":
                _, numbers = self._contexts.get(id(call.args[0]), (None, ()))
                open_calls = {c.number for c in self.stack}
                found += [{"call": n, "phase": "backward"} for n in numbers if n not in open_calls]
                continue
            if "<locals>" in call.qualname:
                continue
            if not call.launched:
                call.launched = True
                self._begin(call)
            found.append({"call": call.number, "phase": "forward"})
        return found

    def _begin(self, call: Call) -> None:
        with raw(), self.encoder.store.still():
            tensors = dict(_paths(call.args, call.kwargs))
            exact = all(call.versions.get(id(t), -1) == _safe_version(t) for t in tensors.values())
            call.before = {path: self.encoder.store.digest(t) for path, t in tensors.items()}
            self.encoder.store.moment()
            args = [self.encoder.encode(a) for a in call.args]
            kwargs = {k: self.encoder.encode(v) for k, v in call.kwargs.items()}
            receiver = self.encoder.encode(call.receiver) if call.receiver is not None else None
            rng = self.encoder.store.record(call.rng)["storage"] if call.rng is not None else None
        parts = [*args, *kwargs.values(), *([receiver] if receiver is not None else [])]
        message = {
            "call": call.number, "kind": call.kind, "qualname": call.qualname, "parameters": call.parameters,
            "args": args, "kwargs": kwargs, "receiver": receiver, "rng_state": rng, "exact": exact,
            "replayable": all(replayable(p) for p in parts), "tensors": len(tensors),
            "file": call.file,
        }  # fmt: skip
        self.channel.send("entry", message)

    def _finish(self, call: Call, value: Any) -> None:
        with raw(), self.encoder.store.still():
            outputs = self.encoder.encode(value)
            changed = {}
            for path, tensor in _paths(call.args, call.kwargs):
                digest = self.encoder.store.digest(tensor)
                if digest is not None and digest != call.before.get(path):
                    changed[path] = self.encoder.store.record(tensor)
                    self._remember(call.number, None, tensor)
        self.channel.send(
            "entry-end", {"call": call.number, "outputs": outputs, "mutated": changed, "known": not self.tainted}
        )
        for position, tensor in enumerate(tensors_in(value)):
            self._remember(call.number, position, tensor)
            with raw():
                if tensor.requires_grad:
                    tensor.register_hook(self._gradient(call.number, position))

    def _remember(self, number: int, position: int | None, tensor: Any) -> None:
        self.outputs.append((number, position, tensor))
        del self.outputs[:-_KEPT_OUTPUTS]

    def _gradient(self, number: int, position: int) -> Callable[[Any], None]:
        def hook(gradient: Any) -> None:
            with self.paused(), raw():
                record = self.encoder.encode(gradient)
            self.channel.send("grad", {"call": number, "output": position, "value": record})

        return hook

    def _constructor(self, value: Any) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
        made = self._made.get(id(value))
        return (made[1], made[2]) if made is not None and made[0] is value else None


class _InstalledImports(importlib.abc.MetaPathFinder):
    """Pauses the hook while a module of an installed package is loaded: none launches a kernel by that, and the hook
    doubles what loading takes (torch's own compiler: 5.0 s of processor time become 11.4)."""

    def __init__(self, tracker: EntryTracker) -> None:
        self._tracker = tracker
        paths = sysconfig.get_paths()
        self._installed = tuple(paths[n] for n in ("stdlib", "platstdlib", "purelib", "platlib"))

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if sys.getprofile() is None:
            return None
        finders = [f for f in sys.meta_path if f is not self]
        found = (f.find_spec(fullname, path, target) for f in finders)
        spec = next((s for s in found if s is not None), None)
        loader = spec.loader if spec is not None and self._is_installed(spec.origin) else None
        if isinstance(loader, importlib.machinery.SourceFileLoader):
            self._quiet(loader)
        return spec

    def _is_installed(self, origin: str | None) -> bool:
        return str(origin).startswith(self._installed) and origin not in self._tracker.files

    def _quiet(self, loader: importlib.machinery.SourceFileLoader) -> None:
        load = loader.exec_module

        def exec_module(module: types.ModuleType) -> None:
            with self._tracker.paused():
                load(module)

        loader.exec_module = exec_module  # type: ignore[method-assign]


def _safe_version(tensor: Any) -> int:
    return -1 if tensor.is_inference() else int(_version(tensor))


def _paths(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Argument tensors with their paths: `args.0`, `args.1.2`, `kwargs.out`."""
    for i, value in enumerate(args):
        yield from _below(f"args.{i}", value)
    for name, value in kwargs.items():
        yield from _below(f"kwargs.{name}", value)


def _below(path: str, value: Any, depth: int = 0) -> Iterator[tuple[str, Any]]:
    if isinstance(value, torch.Tensor):
        yield path, value
    elif depth < 4 and isinstance(value, (list, tuple)):
        for i, item in enumerate(value):
            yield from _below(f"{path}.{i}", item, depth + 1)
    elif depth < 4 and isinstance(value, dict):
        for key, item in value.items():
            yield from _below(f"{path}.{key}", item, depth + 1)


def user_frames(files: Mapping[str, str]) -> tuple[int | None, int | None]:
    """Lines of the innermost frame in the user's file, and of the module-level statement above it."""
    frame: types.FrameType | None = sys._getframe(1)
    innermost = module = None
    while frame is not None:
        if frame.f_code.co_filename in files:
            innermost = innermost if innermost is not None else frame.f_lineno
            if frame.f_code.co_name == "<module>":
                module = frame.f_lineno
        frame = frame.f_back
    return innermost, module
