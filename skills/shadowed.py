"""Edits that say `max` or `min` in host code where the file means something of its own by these names."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from skills.triton_source import TritonSource

if TYPE_CHECKING:
    from skills.edit import Edit

_PLACES = {"max": "[-1]", "min": "[0]"}
"""Where in the sorted arguments the answer of each stands."""
_Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


def in_builtin_terms(source: TritonSource, edits: Iterable[Edit]) -> list[Edit] | None:
    """The edits, where `max(a, b)` and `min(a, b)` that would call the file's own `max` or `min` become
    `sorted((a, b))[-1]` and `[0]`; None where the file has its own `sorted` too, or calls its own in what is replaced.

    Code inside jit functions, and definitions that an edit adds, stay as they are: there the names are the language's.
    """
    jit = [source.span(f.node) for f in source.functions.values()]
    found: list[Edit] = []
    for edit in edits:
        text = edit.text
        if "def " not in text and not any(start <= edit.start < end for start, end in jit):
            names = [n for n in _PLACES if _calls(n, text) and _bound(source, n, edit.start)]
            replaced = source.data[edit.start : edit.end].decode()
            if names and (_bound(source, "sorted", edit.start) or any(_calls(n, replaced) for n in names)):
                return None
            for name in names:
                text = _sorted(text, name)
        found.append(replace(edit, text=text))
    return found


def _calls(name: str, text: str) -> re.Match[str] | None:
    return re.search(rf"(?<![\w.]){name}\(", text)


def _sorted(text: str, name: str) -> str:
    """Every call of `name` in `text` as an item of its sorted arguments."""
    while call := _calls(name, text):
        depth, end = 1, call.end()
        while depth and end < len(text):
            depth += {"(": 1, ")": -1}.get(text[end], 0)
            end += 1
        text = f"{text[: call.start()]}sorted(({text[call.end() : end - 1]})){_PLACES[name]}{text[end:]}"
    return text


def _bound(source: TritonSource, name: str, at: int) -> bool:
    """Whether the module or a function around byte `at` gives `name` a value."""
    tree = ast.parse(source.text)
    line = source.data[:at].count(b"\n") + 1
    inner = [n for n in ast.walk(tree) if isinstance(n, _Function) and n.lineno <= line <= (n.end_lineno or 0)]
    scopes: list[ast.Module | _Function] = [tree, *inner]
    return any(name in _names(scope) for scope in scopes)


def _names(scope: ast.Module | _Function) -> Iterator[str]:
    """What a scope binds itself: parameters, definitions, assignments, imports."""
    if not isinstance(scope, ast.Module):
        yield from (n.arg for n in ast.walk(scope.args) if isinstance(n, ast.arg))
    rest: list[ast.AST] = list(scope.body) if isinstance(scope.body, list) else [scope.body]
    while rest:
        node = rest.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield from ((a.asname or a.name).split(".")[0] for a in node.names)
        rest += [] if isinstance(node, ast.Lambda) else ast.iter_child_nodes(node)
