"""The JIT functions a Triton kernel can reach, and where their source lines are. Child side: works on live objects."""

from __future__ import annotations

import ast
import inspect
import linecache
import sys
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

_MAX_LAYERS = 16
"""Autotuner, heuristics and a project's own decorators, one around the other."""


@dataclass(frozen=True, slots=True)
class Place:
    """A statement of a source file: `line` is its first line, `text` the whole statement, dedented; its header where
    it is a compound one."""

    file: str
    line: int
    text: str


def is_jit(value: object) -> bool:
    """Whether `value` is a `@triton.jit` function (not an autotuner or heuristics around one)."""
    from triton.runtime.jit import JITFunction

    return isinstance(value, JITFunction)


def layers(value: Any) -> Iterator[Any]:
    """`value`, what it wraps as its `fn`, and so on. Ends, also where an object has every attribute one asks for."""
    for _ in range(_MAX_LAYERS):
        yield value
        if is_jit(value) or getattr(value, "fn", None) is None:
            return
        value = value.fn


def unwrap(value: Any) -> Any:
    """The JIT function inside autotuners and heuristics; else the innermost of what `value` wraps."""
    *_, innermost = layers(value)
    return innermost


def reachable(fn: Any) -> list[Any]:
    """`fn` and every JIT function its source names, directly or through others, each once; callers first."""
    seen: dict[int, Any] = {}
    queue = [fn]
    while queue:
        current = queue.pop(0)
        if id(current) in seen:
            continue
        seen[id(current)] = current
        queue.extend(_named(current))
    return list(seen.values())


def in_triton(fn: Any) -> bool:
    """Whether the function belongs to Triton's own library rather than to the user."""
    return str(getattr(fn, "__module__", "")).split(".")[0] == "triton"


def first_line(fn: Any) -> int:
    """The line of `def` in the file."""
    for index, line in enumerate(fn.raw_src):
        if line.lstrip().startswith("def "):
            return int(fn.starting_line_number) + index
    return int(fn.starting_line_number)


def file_of(fn: Any) -> str:
    return str(fn.fn.__code__.co_filename)


def place_in(fn: Any, node: ast.AST) -> Place:
    """The place of a node of `fn.parse()`."""
    lines = fn.src.split("\n")
    start = getattr(node, "lineno", 1)
    if isinstance(node, ast.FunctionDef):
        end = start
    elif isinstance(node, ast.If | ast.For | ast.While | ast.With):
        end = max(start, node.body[0].lineno - 1)
    else:
        start, end = _statement(fn, start, getattr(node, "end_lineno", start) or start)
    return Place(file_of(fn), first_line(fn) + start - 1, _dedent(lines[start - 1 : end]))


def place_of_attribute(fns: list[Any], name: str) -> Place | None:
    """The first statement of the user's functions that reads an attribute `name`."""
    for fn in fns:
        for node in ast.walk(fn.parse()) if not in_triton(fn) else ():
            if isinstance(node, ast.Attribute) and node.attr == name:
                return place_in(fn, node)
    return None


def place_at(fns: list[Any], file: str, line: int) -> Place:
    """The statement at an absolute line, taken from the JIT function that holds it, else from the file."""
    for fn in fns:
        begin = first_line(fn)
        if file_of(fn) == file and begin <= line < begin + len(fn.src.rstrip("\n").split("\n")):
            start, end = _statement(fn, line - begin + 1, line - begin + 1)
            return Place(file, begin + start - 1, _dedent(fn.src.split("\n")[start - 1 : end]))
    return Place(file, line, linecache.getline(file, line).strip())


def launch_place() -> Place | None:
    """The user's statement that launches the kernel now: the innermost frame outside Triton, torch and ourselves."""
    ours = (str(Path(__file__).parent), str(Path(sys.modules["triton"].__file__ or "").parent))
    torch = sys.modules.get("torch")
    libraries = (*ours, str(Path(torch.__file__ or "").parent)) if torch else ours
    for frame, number in traceback.walk_stack(None):
        file = frame.f_code.co_filename
        if file.startswith(libraries) or not Path(file).is_file():
            continue
        return Place(file, number, _whole_statement(linecache.getlines(file), number))
    return None


def _whole_statement(lines: list[str], number: int) -> str:
    try:
        tree = ast.parse("".join(lines))
    except SyntaxError:
        return lines[number - 1].strip() if number <= len(lines) else ""
    spans = [
        (node.lineno, node.end_lineno or node.lineno)
        for node in ast.walk(tree)
        if isinstance(node, ast.stmt) and not hasattr(node, "body")
    ]
    holding = [span for span in spans if span[0] <= number <= span[1]]
    first, last = min(holding, key=lambda span: span[1] - span[0], default=(number, number))
    return _dedent(lines[first - 1 : last])


def _statement(fn: Any, start: int, end: int) -> tuple[int, int]:
    """First and last line of the innermost simple statement that holds the lines, or the lines themselves."""
    best = (start, end)
    size = 10**9
    for node in ast.walk(fn.parse()):
        if not isinstance(node, ast.stmt) or hasattr(node, "body"):
            continue
        first, last = node.lineno, node.end_lineno or node.lineno
        if first <= start and end <= last and last - first < size:
            best, size = (first, last), last - first
    return best


def _dedent(lines: list[str]) -> str:
    margin = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    return "\n".join(line[margin:].rstrip() for line in lines).strip()


def _named(fn: Any) -> Iterator[Any]:
    names = set(_names(fn.fn.__code__))
    scope = {**fn.fn.__globals__, **inspect.getclosurevars(fn.fn).nonlocals}
    for name in names:
        value = scope.get(name)
        candidate = unwrap(value) if value is not None and not isinstance(value, ModuleType) else None
        if candidate is not None and is_jit(candidate):
            yield candidate
        if isinstance(value, ModuleType):
            for attribute in names:
                member = unwrap(value.__dict__.get(attribute))
                if is_jit(member):
                    yield member


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    yield from code.co_freevars
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
