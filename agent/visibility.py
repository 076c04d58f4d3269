"""Whether the interpreter sees all of a free rewrite. What it ignores (options of a launch) it cannot vouch for.

A skill knows that of its own edit; for text that a model wrote it is read from the two syntax trees, and in doubt the
answer is no: then the emulator or a GPU has to show the results.
"""

from __future__ import annotations

import ast
from collections import Counter

from sandbox.cheats import UNSEEN_WORDS

OPTIONS = UNSEEN_WORDS | {"inline_asm_elementwise"}
"""The validator's own list, and inline assembly."""


def interpreter_sees(before: str, after: str) -> bool:
    """Whether two programs differ only in what the interpreter executes. False when either is no Python."""
    try:
        return _options_of(ast.parse(before)) == _options_of(ast.parse(after))
    except (SyntaxError, ValueError, RecursionError):
        return False


def _options_of(tree: ast.Module) -> Counter[str]:
    """Everything that says which options a launch has: where they are given, and what their values are made of."""
    behind = _names_behind_options(tree)
    said: list[str] = []
    for node in ast.walk(tree):
        match node:
            case ast.Call():
                callee = node.func.value if isinstance(node.func, ast.Subscript) else node.func
                options = [k for k in node.keywords if k.arg is None or k.arg in OPTIONS]
                said += [f"{ast.unparse(callee)} {ast.unparse(k)}" for k in options]
                said += [ast.unparse(node)] if OPTIONS.intersection(_words(node.func)) else []
            case ast.Dict():
                pairs = zip(node.keys, node.values, strict=True)
                given = [(k.value, v) for k, v in pairs if isinstance(k, ast.Constant) and k.value in OPTIONS]
                said += [f"{name}: {ast.unparse(value)}" for name, value in given]
            case ast.FunctionDef():
                names = {a.arg for a in ast.walk(node.args) if isinstance(a, ast.arg)}
                if node.name in behind:
                    said.append(ast.unparse(node))
                elif names & (OPTIONS | behind):
                    said.append(f"{node.name} {ast.unparse(node.args)}")
    said += [f"{sorted(targets)} {ast.unparse(value)}" for targets, value in _assignments(tree) if targets & behind]
    return Counter(said)


def _words(node: ast.expr) -> list[str]:
    """The last name of a callee: `tl.inline_asm_elementwise` is called by the word `inline_asm_elementwise`."""
    return [node.attr] if isinstance(node, ast.Attribute) else [node.id] if isinstance(node, ast.Name) else []


def _names_behind_options(tree: ast.Module) -> frozenset[str]:
    """Names whose values reach an option, through any chain of assignments; `**extra` in a call counts as options."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and (node.arg is None or node.arg in OPTIONS):
            found |= _names(node.value)
        elif isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant) and key.value in OPTIONS:
                    found |= _names(value)
    assigned = list(_assignments(tree))
    while True:
        more = {n for target, value in assigned if target & found for n in _names(value)} - found
        if not more:
            return frozenset(found)
        found |= more


def _assignments(tree: ast.Module) -> list[tuple[set[str], ast.expr]]:
    pairs: list[tuple[set[str], ast.expr]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            pairs.append(({n for t in node.targets for n in _names(t)}, node.value))
        elif isinstance(node, ast.AnnAssign | ast.AugAssign | ast.NamedExpr) and node.value is not None:
            pairs.append((_names(node.target), node.value))
    return pairs


def _names(node: ast.expr) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
