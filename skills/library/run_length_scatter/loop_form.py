"""The form for a kernel that walks over indices already: the loop carries a row and its sum."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from skills.edit import Edit, indentation, insert_after, insert_before, replace, tl_name
from skills.fold import unused
from skills.idioms import needs_parentheses, tl_call, variables
from skills.scatter import Scatter, bindings, in_type, lanes_of, loaded_index, replaced
from skills.triton_source import JitFunction, TritonSource, walk


@dataclass(frozen=True, slots=True, eq=False)
class LoopScatter:
    """A scatter in a loop that loads one index per turn, of which alone the addresses depend there."""

    scatter: Scatter
    loop: cst.For
    key: str
    key_type: str
    lanes: str
    derived: dict[str, str]
    """What stands in pointer and mask for each variable of the loop, with `{key}` for the index."""


def in_loop(source: TritonSource, function: JitFunction, scatter: Scatter) -> LoopScatter | None:
    """The scatter as one of its innermost loop; None where an address depends on more of the loop than one index."""
    around = [a for a in source.ancestors(scatter.call) if isinstance(a, cst.For | cst.While | cst.FunctionDef)]
    loop = around[0]
    lanes = lanes_of(source, function, scatter.pointer)
    if not isinstance(loop, cst.For) or lanes is None:
        return None
    reader = _Reader(source, function, scatter, loop)
    parts = [scatter.pointer, *([scatter.mask] if scatter.mask is not None else [])]
    if not all(reader.read(part) for part in parts) or len(reader.keys) != 1:
        return None
    [(key, key_type)] = reader.keys.items()
    return LoopScatter(scatter, loop, key, key_type, lanes, reader.derived)


class _Reader:
    """Follows the variables of pointer and mask through a loop to the index and to what the loop leaves alone."""

    def __init__(self, source: TritonSource, function: JitFunction, scatter: Scatter, loop: cst.For) -> None:
        self._source, self._function, self._loop = source, function, loop
        self._before = source.span(scatter.call)[0]
        self._bound = bindings(function)
        self.keys: dict[str, str] = {}
        self.derived: dict[str, str] = {}

    def read(self, node: cst.BaseExpression) -> bool:
        """Whether every variable was followed to its end."""
        return all(self._follow(name.value) for name in variables(node))

    def _follow(self, name: str) -> bool:
        places = self._bound.get(name, [])
        if name in self.derived or not any(self._inside(p) for p in places):
            return True
        assigned = places[0]
        if len(places) != 1 or not isinstance(assigned, cst.Assign) or len(assigned.targets) != 1:
            return False
        if not isinstance(assigned.targets[0].target, cst.Name) or self._source.span(assigned)[0] > self._before:
            return False
        key_type = loaded_index(self._source, self._function, assigned.value)
        if key_type is not None:
            self.keys[name], self.derived[name] = key_type, "{key}"
            return True
        if any(self._impure(n) for n in walk(assigned.value)) or not self.read(assigned.value):
            return False
        text = replaced(self._source, assigned.value, self.derived)
        self.derived[name] = f"({text})" if needs_parentheses(assigned.value) else text
        return True

    def _inside(self, node: cst.CSTNode) -> bool:
        return node is self._loop or self._loop in self._source.ancestors(node)

    def _impure(self, node: cst.CSTNode) -> bool:
        """Whether a call might give something else when it is made again later."""
        if not isinstance(node, cst.Call):
            return False
        pure = ("program_id", "num_programs", "arange", "where", "minimum", "maximum", "cdiv", "full", "zeros")
        cast = isinstance(node.func, cst.Attribute) and node.func.attr.value == "to"
        return tl_call(self._source, node, *pure) is None and not cast


def edits(source: TritonSource, function: JitFunction, found: LoopScatter, dtype: str) -> list[Edit]:
    """A row, its sum and whether there is one yet: set up before the loop, sent where the row changes and after it."""
    tl, scatter = tl_name(source), found.scatter
    row, total, some = unused(source, function, f"run_{found.key}", "run_sum", "run_begun")
    names = {name: text.replace("{key}", row) for name, text in found.derived.items()}
    empty = f"{total} = {tl}.zeros(({found.lanes},), {dtype})"
    send = scatter.sent(source, total, names)
    start = [f"{row} = {tl}.full((), 0, {found.key_type})", empty, f"{some} = False"]
    turn = [
        f"if {some} & ({found.key} != {row}):",
        f"    {send}",
        f"    {empty}",
        f"{row} = {found.key}",
        f"{some} = True",
        f"{total} += {in_type(source, scatter.value, dtype)}",
    ]
    return [
        insert_before(source, found.loop, start),
        replace(source, scatter.call, f"\n{indentation(source, scatter.call)}".join(turn)),
        insert_after(source, found.loop, [f"if {some}:", f"    {send}"]),
    ]
