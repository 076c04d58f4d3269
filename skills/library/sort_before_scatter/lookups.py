"""Elements of a scatter in the order of an array: which integer arrays are read at the position, what else depends on
it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from skills.facts import Facts
from skills.idioms import ATOMICS, assigned, assignments, base_param, names_in, tl_call
from skills.rank import Ranks
from skills.triton_source import JitFunction, TritonSource, argument, walk

_INTEGERS = frozenset({"int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"})
_WRITES = ("store", "inline_asm_elementwise", *(a for a in ATOMICS if a != "atomic_add"))


@dataclass(frozen=True, slots=True, eq=False)
class Load:
    """One `tl.load(param + base + position)` of one integer."""

    call: cst.Call
    param: str
    base: str
    """Text of what else is added: the same for every array; empty for none."""


@dataclass(frozen=True, slots=True, eq=False)
class Lookups:
    """A kernel that adds a row at the index it loads by position, and works with nothing of the position besides."""

    position: str
    key: str
    """Name of the loaded index."""
    keys: str
    """Parameter that the index is loaded from."""
    base: str
    loads: tuple[Load, ...]
    others: tuple[cst.Name, ...]
    """Reads of the position, besides these loads and tests of bounds: they mean the element, not its place."""

    @property
    def params(self) -> tuple[str, ...]:
        """Arrays to be put in order, the indices first."""
        rest = {load.param for load in self.loads} - {self.keys}
        return (self.keys, *sorted(rest))


def lookups_of(source: TritonSource, function: JitFunction, facts: Facts) -> Lookups | None:
    """The scatter of a kernel as lookups; None where another order might give something else."""
    calls = [n for f in source.callees(function) for n in walk(f.node.body) if isinstance(n, cst.Call)]
    atomics = [c for c in calls if tl_call(source, c, "atomic_add") is not None]
    if not atomics or any(tl_call(source, c, *_WRITES) is not None for c in calls):
        return None
    if any(source.in_jit(c) is not function or not isinstance(source.parent(c), cst.Expr) for c in atomics):
        return None
    known = facts.pairs("launch.pointer_dtypes")
    integers = {p for p, types in known.items() if types and types <= _INTEGERS}
    wanted = _origins(source, function, [p.value for c in atomics if (p := argument(c, "pointer", 0)) is not None])
    found = [
        (target.id, position, load)
        for target, call in _loaded(source, function)
        if target.id in wanted and (read := _position(source, function, call, integers)) is not None
        for position, load in [read]
    ]
    if len({(name, position, load.param, load.base) for name, position, load in found}) != 1:
        return None
    name, position, first = found[0]
    return _collected(source, function, integers, name, position, first)


@dataclass(frozen=True, slots=True)
class _Target:
    id: str


def _loaded(source: TritonSource, function: JitFunction) -> Iterator[tuple[_Target, cst.Call]]:
    """Names that are given a loaded value, cast or not, with the load."""
    for node in walk(function.node.body):
        targets, value = assigned(node)
        if value is None or len(targets) != 1 or not isinstance(targets[0], cst.Name):
            continue
        while isinstance(value, cst.Call) and isinstance(value.func, cst.Attribute) and value.func.attr.value == "to":
            value = value.func.value
        load = tl_call(source, value, "load")
        if load is not None:
            yield _Target(targets[0].value), load


def _origins(source: TritonSource, function: JitFunction, nodes: list[cst.BaseExpression]) -> set[str]:
    """Every name that expressions are computed from; what stands in a load's pointer is no part of its value's name."""
    seen: set[str] = set()
    queue = list(nodes)
    while queue:
        for name in names_in(queue.pop()) - seen:
            seen.add(name)
            queue += [v for v in assignments(source, function.node.body, name) if not _loads(source, v)]
    return seen


def _loads(source: TritonSource, node: cst.CSTNode) -> bool:
    return any(tl_call(source, n, "load") is not None for n in walk(node))


def _position(
    source: TritonSource, function: JitFunction, call: cst.Call, integers: set[str]
) -> tuple[str, Load] | None:
    """(name of the position, the load) of one integer; None for a load of another form."""
    pointer = argument(call, "pointer", 0)
    param = base_param(source, function, pointer.value) if pointer is not None else None
    if pointer is None or param not in integers or Ranks(source, function).of(call) != 0:
        return None
    terms = list(_terms(pointer.value))
    params = {p.name for p in function.params}
    names = [t.value for t in terms if isinstance(t, cst.Name) and t.value not in params]
    rest = [t for t in terms if not (isinstance(t, cst.Name) and t.value in (param, *names))]
    if len(names) != 1 or len(terms) != 2 + len(rest) or any(names[0] in names_in(t) for t in rest):
        return None
    if not {n for t in rest for n in names_in(t)}.isdisjoint(parts_of(source, function, names[0])):
        return None
    return names[0], Load(call, param, " + ".join(source.code(t) for t in rest))


def _terms(node: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Add):
        yield from _terms(node.left)
        yield from _terms(node.right)
    else:
        yield node


def values_of(source: TritonSource, function: JitFunction, name: str) -> list[cst.BaseExpression]:
    """What a name is given: assigned values, and what a loop takes it from."""
    found = list(assignments(source, function.node.body, name))
    loops = (n for n in walk(function.node.body) if isinstance(n, cst.For))
    return [*found, *(loop.iter for loop in loops if name in names_in(loop.target))]


def parts_of(source: TritonSource, function: JitFunction, position: str) -> set[str]:
    """Names that the position is counted with, itself among them: ids of programs and turns of loops."""
    known = {p.name for p in function.params} | source.imports.keys() | {"range"}
    found: set[str] = set()
    queue = [position]
    while queue:
        name = queue.pop()
        if name not in found and name not in known:
            found.add(name)
            queue += [n for v in values_of(source, function, name) for n in names_in(v)]
    return found


def _collected(
    source: TritonSource, function: JitFunction, integers: set[str], name: str, position: str, first: Load
) -> Lookups | None:
    """Every load at the position, and every other use of it."""
    loads: list[Load] = []
    for call in (c for n in walk(function.node.body) if (c := tl_call(source, n, "load")) is not None):
        read = _position(source, function, call, integers)
        if read is not None and read[0] == position and read[1].base == first.base:
            loads.append(read[1])
    inside = {id(n) for load in loads for n in walk(load.call)}
    ordered = {load.param for load in loads}
    others: list[cst.Name] = []
    for node in walk(function.node.body):
        if not isinstance(node, cst.Name) or id(node) in inside:
            continue
        if node.value in ordered and not isinstance(source.parent(node), cst.Attribute):
            return None  # read in another way, too
        if node.value == position and not _is_target(source, node) and not _bounds(source, node):
            others.append(node)
    if _counted_besides(source, function, position):
        return None
    return Lookups(position, name, first.param, first.base, tuple(loads), tuple(others))


def _is_target(source: TritonSource, node: cst.Name) -> bool:
    parent = source.parent(node)
    return isinstance(parent, cst.AssignTarget) or (isinstance(parent, cst.For) and parent.target is node)


def _bounds(source: TritonSource, node: cst.Name) -> bool:
    """Whether a read only asks how many elements there are: `position < n`."""
    comparison = source.parent(node)
    return isinstance(comparison, cst.Comparison) and comparison.left is node


def _counted_besides(source: TritonSource, function: JitFunction, position: str) -> bool:
    """Whether an id or a turn that the position is counted with is loaded, or read for anything else."""
    parts = parts_of(source, function, position)
    values = [v for name in parts for v in values_of(source, function, name)]
    if any(_loads(source, v) for v in values):
        return True
    inside = {id(n) for v in values for n in walk(v)}
    for node in walk(function.node.body):
        counts = isinstance(node, cst.Name) and node.value in parts - {position} and id(node) not in inside
        if counts and isinstance(node, cst.Name) and not _is_target(source, node):
            return True
    calls = [c for n in walk(function.node.body) if (c := tl_call(source, n, "program_id")) is not None]
    own = {source.code(c) for c in calls if id(c) in inside}
    return any(source.code(c) in own and id(c) not in inside for c in calls)


def merges(source: TritonSource, function: JitFunction, key: str) -> bool:
    """Whether the kernel compares an index with the one before: it sums equal neighbours in registers."""
    for node in walk(function.node.body):
        if isinstance(node, cst.Comparison) and len(node.comparisons) == 1:
            [test] = node.comparisons
            sides = [node.left, test.comparator]
            names = [s.value for s in sides if isinstance(s, cst.Name)]
            if len(names) == 2 and key in names and isinstance(test.operator, cst.Equal | cst.NotEqual):
                return True
    return False
