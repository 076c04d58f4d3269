"""Atomics that one thread sends in a loop: which may come later, and where what replaces them goes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tree_sitter import Node

from sandbox.hip_source import Edit
from skills.cuda_atomics import NotAssuredError, element_type, only_in
from skills.cuda_tree import (
    BARRIERS,
    LOOPS,
    ORDERS,
    CudaFile,
    KernelTree,
    ancestors,
    arguments,
    root_name,
    statement_of,
    walk,
)
from skills.names import fresh_name

MAX_SUMS = 4
"""Of one kernel: each is held in registers, with its address."""


@dataclass(frozen=True)
class Scatter:
    """One atomic in a loop, and the outermost loop around it."""

    call: Node
    loop: Node
    base: str
    type: str


@dataclass(frozen=True)
class Merged:
    """A scatter whose additions a helper object takes: its type, what it is told first, the loop it lives around."""

    scatter: Scatter
    loop: Node
    helper: str
    told: tuple[str, ...] = ()


def scatters(tree: KernelTree) -> list[Scatter]:
    """Raises `NotAssuredError` when there is none whose updates may come later."""
    calls = tree.calls("atomicAdd")
    found = [s for c in calls if (s := _scatter(tree, c)) is not None]
    taken = [s for s in found if _only_added_to(tree, s.base, [o for o in found if o.base == s.base])]
    if not taken:
        raise NotAssuredError("no loop whose atomics could be merged in registers")
    if ORDERS.search(tree.code) or tree.of_type("lambda_expression", "goto_statement"):
        raise NotAssuredError("it orders memory accesses itself, so that a later update could be missed")
    return taken


def _scatter(tree: KernelTree, call: Node) -> Scatter | None:
    given = arguments(call)
    if len(given) != 2 or statement_of(call) is None or tree.is_uniform(given[0]):
        return None
    loops = [n for n in ancestors(call, tree.body) if n.type in LOOPS]
    base, type_ = root_name(tree.file, given[0]), element_type(tree, given[0])
    if not loops or type_ is None or not tree.variables.get(base):
        return None
    loop = loops[-1]
    inside = tree.file.slice(loop)
    leaves = any(n.type == "return_statement" for n in walk(loop))
    if leaves or BARRIERS.search(inside) or loop.parent is None or loop.parent.type != "compound_statement":
        return None
    return Scatter(call, loop, base, type_)


def _only_added_to(tree: KernelTree, base: str, same: Sequence[Scatter]) -> bool:
    """Whether the kernel does nothing else with what `base` points to; a local pointer is traced to its parameter."""
    allowed = [s.call for s in same]
    variable = tree.variables.get(base)
    while variable is not None and not variable.parameter and variable.value is not None:
        if not only_in(tree, base, [*allowed, variable.declared]) or base in _replaced(tree):
            return False
        allowed.append(variable.declared)
        base = root_name(tree.file, variable.value)
        variable = tree.variables.get(base)
    return variable is not None and variable.parameter and only_in(tree, base, allowed)


def _replaced(tree: KernelTree) -> set[str]:
    """Names that are given a value that has nothing to do with the one before."""
    return {change.name for change in tree.changes if change.operator == "="}


def merge_edits(file: CudaFile, merged: Sequence[Merged], helpers: Mapping[str, str], suffix: str) -> list[Edit]:
    """An object in front of each loop, additions to it inside, and its `flush` behind.

    `helpers` are the definitions of the types by name; `suffix` ends the objects' names.
    """
    taken = set(re.findall(r"\w+", file.text))
    edits = list(_definitions(file, merged, helpers))
    loops: dict[int, tuple[Node, list[str], list[str]]] = {}
    for one in merged:
        name = fresh_name(f"{one.scatter.base}_{suffix}", taken, "")
        given = (*one.told, *(file.slice(a) for a in arguments(one.scatter.call)))
        edits.append(file.replace(one.scatter.call, f"{name}.add({', '.join(given)})"))
        _, before, after = loops.setdefault(one.loop.id, (one.loop, [], []))
        before.append(f"{one.helper} {name};")
        after.append(f"{name}.flush();")
    for loop, before, after in loops.values():
        first = _with_pragmas(loop)
        indent = file.indent(loop)
        start, end = file.text.rfind("\n", 0, file.start(first)) + 1, file.end(loop)
        edits.append(Edit(start, start, "".join(f"{indent}{line}\n" for line in before)))
        edits.append(Edit(end, end, "".join(f"\n{indent}{line}" for line in after)))
    return edits


def _definitions(file: CudaFile, merged: Sequence[Merged], helpers: Mapping[str, str]) -> Iterator[Edit]:
    """The helpers that are used and not there yet, as one edit."""
    used = [n for n in helpers if any(m.helper.startswith(f"{n}<") for m in merged)]
    missing = [edit for name in used for edit in file.helper(name, helpers[name])]
    if missing:
        yield Edit(missing[0].start, missing[0].end, "".join(edit.text for edit in missing))


def _with_pragmas(loop: Node) -> Node:
    """The first of the `#pragma` lines right in front of a loop, or the loop."""
    first = loop
    while (before := first.prev_sibling) is not None and before.type == "preproc_call":
        first = before
    return first
