"""Child side: what pytest would hand to a test function by name: its fixtures.

The usual ones of kernel tests (`request`, `device`, `tmp_path`) and those the file defines itself, generators among
them, whose rest is not run: the process ends with the harness. Where pytest's other fixtures are asked for, the test
is not called.
"""

from __future__ import annotations

import inspect
import tempfile
import types
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

BUILT_IN = frozenset({"request", "device", "tmp_path"})


def call_with_fixtures(module: types.ModuleType, test: Callable[..., Any], given: Mapping[str, Any]) -> Any:
    """Run `test` with `given` (of `parametrize`) and fixtures for the other parameters that have no default.

    Fixtures of the file that say `autouse` run too.
    """
    fixtures = _Fixtures(module, _request(module, test, given))
    for name, (_, marker) in fixtures.defined.items():
        if getattr(marker, "autouse", False):
            fixtures.value(name)
    return test(**given, **{name: fixtures.value(name) for name in needed_by(test) if name not in given})


def can_be_called(module: types.ModuleType, test: Callable[..., Any], given: Mapping[str, Any]) -> bool:
    """Whether the test takes the parameters `given` and asks for no fixture that is not to be had here."""
    defined = dict(_defined(module))
    open_names, seen = [n for n in needed_by(test) if n not in given], set(given)
    while open_names:
        name = open_names.pop()
        if name in seen:
            continue
        seen.add(name)
        if name in defined:
            open_names += needed_by(defined[name][0])
        elif name not in BUILT_IN:
            return False
    parameters = inspect.signature(test).parameters.values()
    anything = any(p.kind is p.VAR_KEYWORD for p in parameters)
    return anything or given.keys() <= {p.name for p in parameters}


def needed_by(function: Callable[..., Any]) -> Iterator[str]:
    """The parameters without a default, in order."""
    for parameter in inspect.signature(function).parameters.values():
        named = parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
        if named and parameter.default is parameter.empty:
            yield parameter.name


class _Fixtures:
    """The fixtures one test can have; each is made once."""

    def __init__(self, module: types.ModuleType, request: types.SimpleNamespace) -> None:
        self.defined = dict(_defined(module))
        self._made: dict[str, Any] = {"request": request, "device": "cuda"}
        self._generators: list[Any] = []  # suspended at their `yield`: collecting one would run its rest

    def value(self, name: str) -> Any:
        if name in self._made and name not in self.defined:
            return self._made[name]
        key = f"fixture {name}" if name in self.defined else name
        if key not in self._made:
            self._made[key] = self._make(name)
        return self._made[key]

    def _make(self, name: str) -> Any:
        if name not in self.defined:
            return Path(tempfile.mkdtemp())  # `tmp_path`: the others are made already
        function, marker = self.defined[name]
        params = list(getattr(marker, "params", None) or ())
        request = types.SimpleNamespace(**{**vars(self._made["request"]), **({"param": params[0]} if params else {})})
        arguments = {n: request if n == "request" else self.value(n) for n in needed_by(function)}
        made = function(**arguments)
        if inspect.isgenerator(made):
            self._generators.append(made)
            return next(made)
        return made


def _defined(module: types.ModuleType) -> Iterator[tuple[str, tuple[Callable[..., Any], Any]]]:
    """The fixtures of the file by name, with pytest's marker (pytest 8.4 made them objects of their own)."""
    for name, value in vars(module).items():
        marker = getattr(value, "_fixture_function_marker", None) or getattr(value, "_pytestfixturefunction", None)
        wrapped = getattr(value, "_fixture_function", None) or getattr(
            getattr(value, "__pytest_wrapped__", None), "obj", None
        )
        if marker is not None and inspect.isfunction(wrapped):
            yield getattr(marker, "name", None) or name, (wrapped, marker)


def _request(module: types.ModuleType, test: Callable[..., Any], given: Mapping[str, Any]) -> types.SimpleNamespace:
    """What tests read of pytest's `request`: names, the parameter set, the file."""
    name = getattr(test, "__name__", "test")
    label = "-".join(map(str, given.values()))
    full = f"{name}[{label}]" if given else name
    callspec = types.SimpleNamespace(params=dict(given), id=label)
    file = Path(module.__file__ or "test.py")
    node = types.SimpleNamespace(
        name=full, originalname=name, nodeid=f"{file.name}::{full}", callspec=callspec, path=file, keywords={name: test}
    )
    return types.SimpleNamespace(node=node, function=test, module=module, path=file, fspath=file, fixturename=None)
