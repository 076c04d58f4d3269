"""Child side: a launch at module level, as the file spells it now.

A launch that stands in no function is repeated from its recorded arguments. Its grid, options and compile-time
constants are read from the statement in the file, so that what a candidate changes there counts. What cannot be
evaluated without running the harness stays as recorded.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sandbox import jit_graph

_PLAIN = (int, float, str, bool, type(None))
_PURE_CALLS = frozenset(("cdiv", "next_power_of_2", "min", "max", "len", "int", "abs"))
_PURE_NODES = (
    ast.Constant, ast.Name, ast.Attribute, ast.Tuple, ast.List, ast.Dict, ast.BinOp, ast.UnaryOp, ast.Compare,
    ast.IfExp, ast.BoolOp, ast.Subscript, ast.Lambda, ast.arguments, ast.arg, ast.operator, ast.unaryop, ast.cmpop,
    ast.boolop, ast.expr_context, ast.Call,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Spelled:
    """Constants by parameter, launch options (None: as recorded), the grid: sizes, a function of both, or None."""

    constants: Mapping[str, Any]
    options: Mapping[str, Any] | None
    grid: Any


def repeated_launch(
    module: Any, kernel: Any, name: str, place: tuple[int, int], own: Collection[str], options: Mapping[str, Any],
    grid: Any,
) -> Callable[..., None]:  # fmt: skip
    """Launches the kernel with recorded arguments; grid, options and constants are those of the file's statement.

    `own` are values that an autotuner or heuristic sets; `options` and `grid` are the recorded ones.
    """
    tree = ast.parse(Path(module.__file__).read_bytes())
    parameters = next((layer.arg_names for layer in jit_graph.layers(kernel) if hasattr(layer, "arg_names")), ())
    spelled = spelled_launch(tree, vars(module), name, parameters, place)
    constants: Mapping[str, Any] = {}
    if spelled is not None:
        constants = spelled.constants
        options = options if spelled.options is None else spelled.options
        grid = _whole_grid(spelled.grid) or grid

    def call(**values: Any) -> None:
        given = {k: constants.get(k, v) for k, v in values.items() if k not in own}
        kernel[grid](**given, **{k: v for k, v in options.items() if k not in own})

    return call


def _whole_grid(grid: Any) -> Any:
    """A grid that can be launched, or None."""
    if isinstance(grid, int) and not isinstance(grid, bool):
        return (grid,)
    if isinstance(grid, tuple | list) and grid and all(isinstance(n, int) for n in grid):
        return tuple(grid)
    return grid if callable(grid) else None


def spelled_launch(
    tree: ast.Module, names: Mapping[str, Any], kernel: str, parameters: Sequence[str], place: tuple[int, int]
) -> Spelled | None:
    """The statement of a recorded launch; None where it cannot be told which one that is.

    `names` are the module's; `place` is (which, of how many) statements of the baseline that launch `kernel`.
    """
    calls = [c for c in _module_launches(tree) if isinstance(c.func, ast.Subscript) and _name(c.func.value) == kernel]
    which, count = place
    if len(calls) != count:
        return None
    call = calls[which]
    assert isinstance(call.func, ast.Subscript)
    known = {**_constants(tree, names), **names}
    values = {k.arg: _evaluate(k.value, known) for k in call.keywords if k.arg is not None}
    plain = {name: value[0] for name, value in values.items() if value is not None and isinstance(value[0], _PLAIN)}
    options: Mapping[str, Any] | None = {k: v for k, v in plain.items() if k not in parameters}
    if any(k.arg is None for k in call.keywords) or values.keys() - plain.keys() - set(parameters):
        options = None
    grid = _evaluate(call.func.slice, known)
    return Spelled({k: v for k, v in plain.items() if k in parameters}, options, grid[0] if grid is not None else None)


def is_module_launch(statement: ast.stmt) -> bool:
    """Whether a statement of the module does nothing but launch a kernel."""
    return isinstance(statement, ast.Expr) and _is_launch(statement.value)


def _module_launches(tree: ast.Module) -> Iterator[ast.Call]:
    """Launches outside functions and classes, in the order of the file."""
    pending: list[ast.AST] = list(tree.body)
    found: list[ast.Call] = []
    while pending:
        node = pending.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            continue
        if isinstance(node, ast.Call) and _is_launch(node):
            found.append(node)
        pending += ast.iter_child_nodes(node)
    yield from sorted(found, key=lambda c: (c.lineno, c.col_offset))


def _is_launch(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Subscript) and _name(node.func.value) is not None


def _name(node: ast.AST) -> str | None:
    return node.id if isinstance(node, ast.Name) else None


def _constants(tree: ast.Module, names: Mapping[str, Any]) -> dict[str, Any]:
    """Values of simple assignments at module level and in blocks there, as far as they need no harness to run."""
    found: dict[str, Any] = {}
    statements = [s for top in tree.body for s in (top, *(top.body if isinstance(top, ast.If) else ()))]
    for statement in statements:
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            value = _evaluate(statement.value, {**names, **found})
            if value is not None:
                found |= _bound(statement.targets[0], value[0])
    return found


def _bound(target: ast.expr, value: Any) -> dict[str, Any]:
    if isinstance(target, ast.Name):
        return {target.id: value}
    if isinstance(target, ast.Tuple) and isinstance(value, tuple) and len(target.elts) == len(value):
        return {k: v for t, part in zip(target.elts, value, strict=True) for k, v in _bound(t, part).items()}
    return {}


def _evaluate(node: ast.expr, names: Mapping[str, Any]) -> tuple[Any] | None:
    """The value of an expression of constants, names and arithmetic; None where that is not all."""
    for part in ast.walk(node):
        if not isinstance(part, _PURE_NODES):
            return None
        if isinstance(part, ast.Call) and (_last(part.func) not in _PURE_CALLS):
            return None
    try:
        code = compile(ast.fix_missing_locations(ast.Expression(node)), "<launch>", "eval", dont_inherit=True)
        return (eval(code, dict(names)),)
    except Exception:  # noqa: BLE001 - names and values are the program's own: what fails stays as recorded
        return None


def _last(node: ast.expr) -> str | None:
    return node.attr if isinstance(node, ast.Attribute) else _name(node)
