"""Child side: a kernel file as a Python module, also where it is part of a package.

A file of a package is known by its path from the folder that holds the package (`ops/softmax.py` of `mathlib` as
`mathlib/ops/softmax.py`), so that relative imports work and that other files which import it find the same file.
"""

from __future__ import annotations

import ast
import importlib
import importlib.machinery
import sys
import types
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any


def module_name(filename: str) -> str:
    """The dotted name other files import `filename` (a path from the import root) by."""
    parts = PurePosixPath(filename).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


def add_paths(path: Path, filename: str) -> None:
    """Imports are looked for where the file's package lies; for a file in no package that is its own folder.

    The own folder of a file in a package comes last: a `types.py` in it is not Python's.
    """
    depth = len(PurePosixPath(filename).parts)
    sys.path.insert(0, str(path.parents[depth - 1]))
    if depth > 1:
        sys.path.append(str(path.parent))


def load_module(path: Path, name: str, package: str = "") -> types.ModuleType:
    """A module object for the file, not yet run, importable under `name`; relative imports start at `package`."""
    module = types.ModuleType(name)
    module.__file__ = str(path)
    module.__dict__["__builtins__"] = __builtins__
    if package:
        module.__package__ = package
    sys.modules[name] = module
    return module


def execute(module: types.ModuleType, path: Path, tree: Any = None) -> None:
    """Run the file's code (or a syntax tree made from it) in the module."""
    code = compile(tree if tree is not None else path.read_bytes(), str(path), "exec", dont_inherit=True)
    exec(code, module.__dict__)


def guard(call: Callable[[], Any]) -> BaseException | None:
    try:
        call()
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as e:  # noqa: BLE001 - the harness is the user's code: whatever it raises is its outcome
        return e
    return None


def import_file(
    path: Path, filename: str, leave_out: Callable[[ast.stmt], bool] = lambda statement: False
) -> tuple[types.ModuleType, BaseException | None]:
    """The file as a module under its own name, and what its code raised.

    Statements of the module that `leave_out` names are not run. A file that imports from its own package comes after
    the package; one that imports the whole file has made the module.
    """
    add_paths(path, filename)
    name = module_name(filename)
    package = name.rpartition(".")[0]
    tree = ast.parse(path.read_bytes(), str(path))
    needs_package = package and _imports_from(tree, package.partition(".")[0])
    kept = [statement for statement in tree.body if not leave_out(statement)]
    whole, tree.body = len(kept) == len(tree.body), kept
    if needs_package:
        failed = guard(lambda: importlib.import_module(package))  # the file's own import of it says why
        made = sys.modules.get(name) if failed is None and whole else None
        if made is not None:
            return made, None
    module = load_module(path, name, package)
    module.__spec__ = importlib.machinery.ModuleSpec(name, None, origin=str(path))
    return module, guard(lambda: execute(module, path, tree))


def _imports_from(tree: ast.Module, top: str) -> bool:
    """Whether the code imports from the package `top` it lies in, relatively or by name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.level or (node.module or "").split(".")[0] == top):
            return True
        if isinstance(node, ast.Import) and any(alias.name.split(".")[0] == top for alias in node.names):
            return True
    return False
