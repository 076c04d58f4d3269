"""Child side: a file with kernels and no harness. Types are guessed, the kernel is compiled, nothing is executed.

Two ways, in order. A host function that launches the kernel is called with small tensors of guessed shapes; where a
launch comes out of it, that launch has the file's own constants and options. Else each kernel is compiled from its
signature: annotations, defaults, tuning configs, and how its body uses each parameter.
"""

from __future__ import annotations

import ast
import inspect
import itertools
import textwrap
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from sandbox.child_executors import NoExecutor
from sandbox.child_launches import LaunchRecorder
from sandbox.child_modules import guard
from sandbox.child_signature import Guess, guesses, jit_of, kernels_of
from sandbox.compiling import Compiled, CompileError, compile_signature

_SHAPES: tuple[tuple[int, ...], ...] = ((128, 128), (256,), (2, 4, 128, 64), (4, 128, 64), (1, 128, 4, 64))
_DTYPES = ("float16", "float32", "uint8")
_INTEGER_NAMES = ("idx", "ind", "index", "indices", "ids", "lens", "seqlen", "offset", "table", "loc", "mask", "cu_")
_MAX_CALLS = 15


@dataclass(slots=True)
class StaticResult:
    """What was tried: the harness text to add, and why no call led to a launch."""

    harness: str = ""
    called: str | None = None
    reasons: list[str] = field(default_factory=list)


def run_static(module: types.ModuleType, recorder: LaunchRecorder) -> StaticResult:
    """Compile what can be compiled of a module without harness; launches go into the record unexecuted."""
    result = StaticResult()
    kernels = kernels_of(module)
    recorder.executor = NoExecutor()
    for wrapper in _wrappers(module, [name for name, _ in kernels]):
        text = _call_wrapper(module, recorder, wrapper, result.reasons)
        if text is not None and result.called is None:
            result.harness, result.called = _harness(module, text), wrapper.__qualname__
    for name, kernel in kernels:
        if jit_of(kernel).__name__ not in recorder.launched:
            _compile_guessed(recorder, name, kernel, guesses(module, kernel))
    if not result.harness:
        result.harness = _harness(module, _template(module, [n for n, _ in kernels]))
    return result


def _call_wrapper(
    module: types.ModuleType, recorder: LaunchRecorder, wrapper: Callable[..., Any], reasons: list[str]
) -> str | None:
    """Call with guesses until one launches only what compiles; else the first that launched counts. None: none did."""
    before, launched = recorder.count, set(recorder.launched)
    first: tuple[str, Callable[[], Any]] | None = None

    def drop() -> None:
        recorder.channel.send("drop", {"from": before})
        recorder.count, recorder.launched = before, set(launched)

    for text, call in itertools.islice(_calls(module, wrapper), _MAX_CALLS):
        recorder.failed = False
        error = guard(call)
        if recorder.count > before:
            first = first or (text, call)
            if not recorder.failed:
                return text
            drop()
        elif error is not None:
            reasons.append(f"{wrapper.__qualname__}: {type(error).__name__}: {error}"[:300])
    if first is None:
        return None
    guard(first[1])
    return first[0]


# --- host functions ---------------------------------------------------------------------------------------------------


def _wrappers(module: types.ModuleType, kernels: list[str]) -> list[Callable[..., Any]]:
    """Plain functions of the file from which a launch can be reached, those nobody else calls first."""
    functions = {
        name: value
        for name, value in vars(module).items()
        if inspect.isfunction(value) and value.__module__ == module.__name__
    }
    names = {name: _names(value) for name, value in functions.items()}
    classes = {
        name: _names(value)
        for name, value in vars(module).items()
        if inspect.isclass(value) and value.__module__ == module.__name__
    }
    launching: set[str] = set()
    for _ in range(len(functions) + len(classes)):
        grown = {n for n, used in {**names, **classes}.items() if used & {*kernels, *launching}}
        if grown <= launching:
            break
        launching |= grown
    called = {other for name in launching for other in names.get(name, set()) if other != name}
    chosen = [n for n in functions if n in launching]
    return [functions[n] for n in sorted(chosen, key=lambda n: (n in called, list(functions).index(n)))]


def _names(value: Any) -> set[str]:
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(value)))
    except (OSError, TypeError, SyntaxError):
        return set()
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def _calls(module: types.ModuleType, function: Callable[..., Any]) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Guessed calls as (text, callable)."""
    parameters = [
        p
        for p in inspect.signature(function).parameters.values()
        if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
    ]
    for dtype, shape in itertools.product(_DTYPES, _SHAPES):
        given = {p.name: _argument(p, shape, dtype) for p in parameters}

        def call(given: Mapping[str, _Argument] = given) -> Any:
            return function(**{name: argument.make() for name, argument in given.items()})

        yield _call_text(function, given), call


def _call_text(function: Callable[..., Any], given: Mapping[str, _Argument]) -> str:
    return f"{function.__name__}({', '.join(f'{name}={argument.text}' for name, argument in given.items())})"


@dataclass(frozen=True, slots=True)
class _Argument:
    """A plausible value: a constant, or a tensor of `shape`; `text` is what a harness would say."""

    constant: Any = None
    shape: tuple[int, ...] | None = None
    dtype: str = "float32"

    @property
    def text(self) -> str:
        if self.shape is None:
            return repr(self.constant)
        sizes = ", ".join(map(str, self.shape))
        if self.dtype in ("int32", "uint8"):
            return f'torch.zeros({sizes}, device="cuda", dtype=torch.{self.dtype})'
        return f'torch.randn({sizes}, device="cuda", dtype=torch.{self.dtype})'

    def make(self) -> Any:
        if self.shape is None:
            return self.constant
        if self.dtype in ("int32", "uint8"):
            return torch.zeros(self.shape, device="cuda", dtype=getattr(torch, self.dtype))
        return torch.randn(self.shape, device="cuda", dtype=getattr(torch, self.dtype))


def _argument(parameter: inspect.Parameter, shape: tuple[int, ...], dtype: str) -> _Argument:
    annotation = str(getattr(parameter.annotation, "__name__", parameter.annotation)).lower()
    name = parameter.name.lower()
    if annotation in ("int", "float", "bool", "str"):
        return _Argument({"int": 64, "float": 1.0, "bool": False, "str": ""}[annotation])
    if "tensor" not in annotation and annotation != "_empty":
        return _Argument()
    if annotation == "_empty" and (name in ("eps", "scale", "sm_scale", "alpha", "beta", "p", "dropout_p", "lr")):
        return _Argument(1.0)
    if annotation == "_empty" and (name.startswith(("is_", "use_", "has_")) or name in ("causal", "training")):
        return _Argument(False)
    if annotation == "_empty" and (name.startswith(("n_", "num_", "max_", "block")) or name in ("n", "m", "k", "dim")):
        return _Argument(64)
    if any(word in name for word in _INTEGER_NAMES):
        return _Argument(shape=shape[:1], dtype="int32")
    return _Argument(shape=shape, dtype=dtype)


# --- signatures -------------------------------------------------------------------------------------------------------


def _compile_guessed(recorder: LaunchRecorder, name: str, kernel: Any, tries: Iterator[Guess]) -> None:
    """Record one launch of unknown grid, with the first guess that compiles for the first target, else the first."""
    chosen: Guess | None = None
    first: Guess | None = None
    for guess in itertools.islice(tries, _MAX_CALLS):
        first = first or guess
        outcome = compile_signature(
            guess.fn, guess.signature, guess.constants, guess.options, recorder.targets[0],
            timeout_s=recorder.limits.compile_s, cache=recorder.cache,
        )  # fmt: skip
        if isinstance(outcome, Compiled):
            chosen = guess
            break
    chosen = chosen or first
    if chosen is not None:
        _record(recorder, name, chosen)


def _record(recorder: LaunchRecorder, name: str, guess: Guess) -> None:
    number = recorder.count
    recorder.count += 1
    recorder.launched.add(guess.fn.__name__)
    code = guess.fn.fn.__code__
    args: list[dict[str, Any]] = []
    for param in guess.fn.params:
        if param.name in guess.constants:
            value = recorder.encoder.encode(guess.constants[param.name])
            args.append({"name": param.name, "kind": "constexpr", "value": value})
        else:
            text = guess.signature[param.name]
            kind = "tensor" if text.startswith("*") else "scalar"
            args.append({"name": param.name, "kind": kind, "value": {"kind": "unsupported", "value": text}})
    message = {
        "index": number, "kernel": guess.fn.__name__, "file": recorder.files.get(code.co_filename, code.co_filename),
        "line": code.co_firstlineno, "args": args, "grid": [1, 1, 1],
        "options": {k: recorder.encoder.encode(v) for k, v in guess.options.items()}, "calls": [],
    }  # fmt: skip
    recorder.channel.send("launch", {**message, "phase": "forward", "entry": None})
    for target in recorder.targets:
        outcome = compile_signature(
            guess.fn, guess.signature, guess.constants, guess.options, target,
            timeout_s=recorder.limits.compile_s, cache=recorder.cache,
        )  # fmt: skip
        limit = None if isinstance(outcome, CompileError) else recorder.broken_limit(outcome, None, target)
        recorder.channel.send("compile", {"index": number, **recorder.compile_record(outcome, limit, target)})
    reason = f"{name} has no harness: it was compiled from its signature only"
    execution = {"status": "unknown", "by": "none", "reason": reason}
    recorder.channel.send("executed", {"index": number, "execution": execution, "written": {}, "after": {}})


# --- the harness to add -----------------------------------------------------------------------------------------------


def _harness(module: types.ModuleType, call: str) -> str:
    own = "" if "torch" in vars(module) else "    import torch\n"
    return f'if __name__ == "__main__":\n{own}    torch.manual_seed(0)\n    {call}\n'


def _template(module: types.ModuleType, kernels: list[str]) -> str:
    """A line to complete, where no guessed call led to a launch."""
    wrappers = _wrappers(module, kernels)
    if wrappers:
        parameters = inspect.signature(wrappers[0]).parameters.values()
        needed = {p.name: _argument(p, _SHAPES[0], _DTYPES[0]) for p in parameters if p.default is p.empty}
        return _call_text(wrappers[0], needed)
    name = kernels[0] if kernels else "kernel"
    return f'x = torch.randn(1024, device="cuda"); {name}[(1,)](x, x, 1024, BLOCK=1024)  # the arguments it takes'
