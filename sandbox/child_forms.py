"""Child side: the forms a harness can have, and how each is run.

In order: another file given as harness; the file itself, run as `python file.py` runs it (module level and `__main__`);
and where that launched nothing: KernelBench's `Model`, `get_inputs`, `get_init_inputs`; test functions, pytest's
parameters and fixtures honoured; a `main`. A file with none of these is handled without values
(`sandbox.child_static`).
"""

from __future__ import annotations

import ast
import functools
import inspect
import itertools
import sys
import traceback
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sandbox.child_fixtures import call_with_fixtures, can_be_called
from sandbox.child_modules import add_paths, execute, guard, load_module, module_name

_TEST_PREFIXES = ("test", "check", "verify")
_MAIN_NAMES = ("main", "run_tests", "run_test", "demo", "example", "benchmark", "bench", "run_benchmark")
_MAX_PARAMETER_SETS = 4


@dataclass(frozen=True, slots=True)
class FormOutcome:
    """Which form ran, the exception that ended it, and the module that was run."""

    form: str
    error: BaseException | None
    module: types.ModuleType


def run_harness(folder: Path, kernel: str, harness: str | None, launches: Callable[[], int]) -> FormOutcome:
    """Run the harness to its end. `kernel` and `harness` are paths from `folder`; `launches` counts them so far."""
    add_paths(folder / kernel, kernel)
    name = harness if harness is not None else kernel
    main = folder / name
    if harness is not None and main.parent != (folder / kernel).parent:
        add_paths(main, harness)
    sys.argv = [str(main)]
    module = load_module(main, "__main__", module_name(name).rpartition(".")[0])
    if harness is None and not module.__package__:  # a package imports its own copy, as beside `python -m`
        sys.modules.setdefault(module_name(kernel), module)
    error = guard(lambda: execute(module, main))
    form = "other-file" if harness is not None else "main"
    if error is not None and _exited_cleanly(error):
        error = None
    if launches() or (error is not None and not _in_main_block(error, main)):
        return FormOutcome(form, error, module)
    for name, attempt in (("kernelbench", _kernelbench), ("tests", _tests), ("main", _mains)):
        calls = list(attempt(module))
        failures = [failure for call in calls if (failure := guard(call)) is not None]
        if calls and (launches() or name == "kernelbench"):
            return FormOutcome(name, failures[0] if failures else None, module)
        error = error or (failures[0] if failures else None)
    return FormOutcome(form, error, module)


def _exited_cleanly(error: BaseException) -> bool:
    return isinstance(error, SystemExit) and error.code in (None, 0)


def _in_main_block(error: BaseException, path: Path) -> bool:
    """Whether the file was read to its end, and failed only in what it does as a program."""
    block = next((n for n in reversed(ast.parse(path.read_bytes()).body) if _asks_for_main(n)), None)
    frames = [(frame.f_code, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    lines = [line for code, line in frames if (code.co_filename, code.co_name) == (str(path), "<module>")]
    return block is not None and bool(lines) and block.lineno <= lines[0] <= (block.end_lineno or block.lineno)


def _asks_for_main(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and "__name__" in ast.unparse(node.test)


def _kernelbench(module: types.ModuleType) -> Iterator[Callable[[], Any]]:
    """`ModelNew` where there is one, else `Model`; the other is the reference when both exist."""
    names = module.__dict__
    if not callable(names.get("get_inputs")) or not ({"Model", "ModelNew"} & names.keys()):
        return
    yield lambda: run_kernelbench(module)


def run_kernelbench(module: types.ModuleType) -> Any:
    import torch

    names = module.__dict__
    initial: Any = names["get_init_inputs"]() if "get_init_inputs" in names else []
    keywords: dict[str, Any] = {}
    if isinstance(initial, dict):
        initial, keywords = [], initial
    elif len(initial) == 2 and isinstance(initial[0], (list, tuple)) and isinstance(initial[1], dict):
        initial, keywords = initial[0], initial[1]
    state = torch.get_rng_state()
    classes = [names[n] for n in ("ModelNew", "Model") if n in names]
    models = []
    for cls in classes:
        torch.set_rng_state(state)
        models.append(cls(*initial, **keywords).cuda())
    inputs = [x.cuda() if isinstance(x, torch.Tensor) else x for x in names["get_inputs"]()]
    with torch.no_grad():
        output = models[0](*inputs)
        if len(models) > 1:
            models[1].load_state_dict(models[0].state_dict(), strict=False)
            expected = models[1](*inputs)
            torch.testing.assert_close(output, expected, rtol=1e-2, atol=1e-2, check_dtype=False)
    return output


def _tests(module: types.ModuleType) -> Iterator[Callable[[], Any]]:
    """Test functions, and the methods of test classes, with each of a few parameter sets."""
    for name, value in list(module.__dict__.items()):
        if getattr(value, "__module__", None) != module.__name__:
            continue
        if inspect.isfunction(value) and name.startswith(_TEST_PREFIXES):
            yield from _parametrized(module, value)
        elif inspect.isclass(value) and name.startswith("Test"):
            for method in [m for m in vars(value) if m.startswith("test")]:
                yield functools.partial(_method, value, method)


def _method(cls: type, name: str) -> Any:
    case = cls(name) if hasattr(cls, "assertEqual") else cls()
    for step in ("setUp", name):
        if hasattr(case, step):
            getattr(case, step)()


def _parametrized(module: types.ModuleType, function: Callable[..., Any]) -> Iterator[Callable[[], Any]]:
    sets: list[list[list[tuple[str, Any]]]] = []
    for mark in getattr(function, "pytestmark", ()):
        if getattr(mark, "name", "") == "parametrize" and len(mark.args) >= 2:
            sets.append(_parameter_values(mark.args[0], list(mark.args[1])))
    chosen = list(itertools.islice(itertools.product(*sets), _MAX_PARAMETER_SETS)) if sets else [()]
    for values in chosen:
        arguments = dict(pair for part in values for pair in part)
        if can_be_called(module, function, arguments):
            yield functools.partial(call_with_fixtures, module, function, arguments)


def _parameter_values(names: Any, values: list[Any]) -> list[list[tuple[str, Any]]]:
    keys = [n.strip() for n in names.split(",")] if isinstance(names, str) else list(names)
    unwrapped = [getattr(v, "values", v) if type(v).__name__ == "ParameterSet" else v for v in values]
    if len(keys) == 1:
        return [[(keys[0], v[0] if isinstance(v, tuple) and len(v) == 1 else v)] for v in unwrapped]
    return [list(zip(keys, v, strict=False)) for v in unwrapped]


def _mains(module: types.ModuleType) -> Iterator[Callable[[], Any]]:
    for name in _MAIN_NAMES:
        value = module.__dict__.get(name)
        if inspect.isfunction(value) and _callable_with(value, {}):
            yield value
            return


def _callable_with(function: Callable[..., Any], arguments: dict[str, Any]) -> bool:
    try:
        inspect.signature(function).bind(**arguments)
    except (TypeError, ValueError):
        return False
    return True


def describe(error: BaseException | None, files: dict[str, str], tainted: bool) -> dict[str, Any]:
    """The harness's ending as a message: status, exception, and the line of the user's file nearest to it."""
    if error is None:
        return {"status": "unknown" if tainted else "passed"}
    file = line = None
    for frame, number in traceback.walk_tb(error.__traceback__):
        if frame.f_code.co_filename in files:
            file, line = files[frame.f_code.co_filename], number
    text = str(error).strip().splitlines()
    first = text[0] if text else ""
    if isinstance(error, SystemExit):
        first = f"exit status {error.code}"
    # Unknown outputs excuse a failed comparison, not a missing name or module.
    excused = tainted and not isinstance(error, (ImportError, NameError, SyntaxError))
    return {
        "status": "unknown" if excused else "failed",
        "exception": f"{type(error).__name__}: {first}"[:2000],
        "file": file,
        "line": line,
        "traceback": "".join(traceback.format_exception(error))[-8000:],
    }
