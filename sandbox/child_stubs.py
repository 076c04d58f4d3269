"""Child side: placeholders for packages that are not here, so that the kernels of a file that needs them still compile.

Only for a file that launched nothing because an import failed. What comes from a missing package is a placeholder:
usable as a decorator, a base class, an attribute; never as a value. Nothing is executed in such a run. `triton`, `tl`
and `torch` asked for from a missing package (as projects re-export them) are the real ones.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
import types
from collections.abc import Callable, Sequence
from typing import Any

PACKAGE = "wavesmith_missing_package"
_REAL = ("torch", "triton", "numpy", "math", "os", "sys", "typing", "functools")


class Placeholder:
    """Anything from a missing package."""

    def __init__(self, name: str) -> None:
        self.__name__ = self.__qualname__ = name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and not kwargs and (callable(args[0]) or hasattr(args[0], "fn")):
            return args[0]
        return self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "fn":  # it is nobody's decorator: `fn` is what one has decorated
            raise AttributeError(name)
        return _named(f"{self.__name__}.{name}", name)

    def __mro_entries__(self, bases: Any) -> tuple[type, ...]:
        return (object,)

    def __bool__(self) -> bool:
        return True

    def __len__(self) -> int:
        return 0

    def __iter__(self) -> Any:
        return iter(())

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *args: Any) -> None:
        pass

    def __getitem__(self, key: Any) -> Any:
        return self

    def __or__(self, other: Any) -> Any:
        return Any

    __ror__ = __or__


class PlaceholderModule(types.ModuleType):
    """A module that has every name."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _named(f"{self.__name__}.{name}", name)


def _named(full: str, name: str) -> Any:
    if name == "tl":
        import triton.language

        return triton.language
    if name in ("triton", "torch"):
        return sys.modules[name]
    if name == "libdevice":
        from triton.language.extra import libdevice

        return libdevice
    return Placeholder(full)


class PlaceholderFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds what nobody else finds, outside torch and Triton. Comes last."""

    def __init__(self, note: Callable[[str], None]) -> None:
        self._note = note

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        top = fullname.split(".")[0]
        gone = fullname.startswith("triton.ops")  # left Triton with version 3.0
        if (top in _REAL and not gone) or top in sys.stdlib_module_names:
            return None
        what = "triton.ops" if gone else "the package this file belongs to" if top == PACKAGE else top
        self._note(f"{what} is not here: names from it are placeholders, and nothing is executed")
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return PlaceholderModule(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        module.__path__ = []


def install(note: Callable[[str], None]) -> None:
    sys.meta_path.append(PlaceholderFinder(note))
