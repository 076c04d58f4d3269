"""What is folded: sums that programs along one axis of the grid add to the same addresses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import libcst as cst

from skills.address import alone
from skills.fold import Body, Statement, block_of, body_of, dependent, program_ids, varies
from skills.idioms import ATOMICS, active_lanes, base_param, names_in, program_axis, tl_call
from skills.shapes import Shapes
from skills.triton_source import JitFunction, TritonSource, argument, dotted_name, walk

SUMS = {"float32": "float32", "float16": "float32", "bfloat16": "float32", "int32": "int32", "int64": "int64"}
"""Types of counters, and of the sums that are added to them."""


@dataclass(frozen=True, slots=True, eq=False)
class Tile:
    """A block whose sum is the atomic's value."""

    statement: Statement
    total: cst.Call
    block: cst.BaseExpression
    shape: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Sum:
    """An atomic addition whose address is the same for every block of the axis, and its mask but for the value."""

    statement: Statement
    call: cst.Call
    pointer: cst.BaseExpression
    value: cst.BaseExpression
    mask: cst.BaseExpression | None
    dtype: str
    tile: Tile | None


@dataclass(frozen=True, slots=True, eq=False)
class Strip:
    """What is written. `branch` is the `if CONSTEXPR:` that the atomic stands in, where it does."""

    body: Body
    name: str
    axis: int
    sums: tuple[Sum, ...]
    branch: cst.If | None
    inner: Body | None
    varying: frozenset[str]


def strip_of(source: TritonSource, function: JitFunction, axis: int, known: Mapping[str, str]) -> Strip | None:
    """The strip along an axis, where it can be walked; `known` holds the types of the counters."""
    body = body_of(source, function)
    ids = [p for p in program_ids(source, body) if p.axis == axis] if body is not None else []
    calls = [c for n in walk(function.node.body) if (c := tl_call(source, n, *ATOMICS)) is not None]
    if body is None or len(ids) != 1 or len(ids_of(source, function, axis)) != 1 or not calls:
        return None
    branch, inner = _branch(source, function, body, calls)
    flat = _flattened(body, branch, inner)
    varying = dependent(flat, {ids[0].name})
    if varying & {p.name for p in function.params} or _carries(flat, ids[0].name, varying):
        return None
    if _reorders(source, flat, varying):
        return None
    chosen = [c for c in calls if branch is None or not _is_under(source, c, branch.orelse)]
    holders = inner if inner is not None else body
    sums = [_sum(source, function, holders, c, varying, known) for c in chosen]
    found = tuple(s for s in sums if s is not None)
    return Strip(body, ids[0].name, axis, found, branch, inner, varying) if len(found) == len(sums) else None


def ids_of(source: TritonSource, function: JitFunction, axis: int) -> list[cst.Call]:
    """The calls of `tl.program_id` for an axis."""
    found = [c for n in walk(function.node.body) if (c := tl_call(source, n, "program_id")) is not None]
    return [c for c in found if program_axis(c) == axis]


def _branch(
    source: TritonSource, function: JitFunction, body: Body, calls: list[cst.Call]
) -> tuple[cst.If | None, Body | None]:
    """The top-level `if` over constexprs that the first atomic stands in, and the statements of its first arm."""
    for statement in body.statements:
        node = statement.node
        fixed = isinstance(node, cst.If) and names_in(node.test) <= set(function.constexprs)
        if isinstance(node, cst.If) and fixed and any(n is calls[0] for n in walk(node.body)):
            return node, block_of(source, node.body)
    return None, None


def _flattened(body: Body, branch: cst.If | None, inner: Body | None) -> Body:
    """The body with the statements of the branch's first arm in its place."""
    if branch is None or inner is None:
        return body
    statements: list[Statement] = []
    for statement in body.statements:
        statements += inner.statements if statement.node is branch else [statement]
    return Body(tuple(statements), body.start, body.end, body.indent)


def _is_under(source: TritonSource, node: cst.CSTNode, place: cst.CSTNode | None) -> bool:
    return place is not None and any(a is place for a in source.ancestors(node))


def _carries(body: Body, name: str, varying: frozenset[str]) -> bool:
    """Whether a statement reads what only an earlier block could have left."""
    written = {name}
    for statement in body.statements:
        simple = isinstance(statement.node, cst.SimpleStatementLine)
        unknown = (statement.reads & varying) - written - (frozenset() if simple else statement.writes)
        if unknown:
            return True
        written |= statement.writes
    return False


def _reorders(source: TritonSource, body: Body, varying: frozenset[str]) -> bool:
    """Whether an access that goes before the loop would change places with a store. The blocks themselves have no order
    in the grid, so that one after the other is one of its orders."""
    stored = False
    for statement in body.statements:
        nodes = list(walk(statement.node))
        stores = any(tl_call(source, n, "store") is not None for n in nodes)
        loads = any(tl_call(source, n, "load") is not None for n in nodes)
        if not varies(statement, varying) and (stores or (loads and stored)):
            return True
        stored = stored or stores
    return False


def _sum(
    source: TritonSource, function: JitFunction, body: Body, call: cst.Call, varying: frozenset[str],
    known: Mapping[str, str],
) -> Sum | None:  # fmt: skip
    """The atomic as a sum over blocks; None where it is none."""
    statement = next((s for s in body.statements if source.statement(call) is s.node), None)
    pointer, value, mask = argument(call, "pointer", 0), argument(call, "val", 1), active_lanes(source, call, 2)
    if statement is None or not alone(source, call) or tl_call(source, call, "atomic_add") is None:
        return None
    if pointer is None or value is None:
        return None
    dtype = SUMS.get(known.get(base_param(source, function, pointer.value) or "", ""))
    own = {value.value.value} if isinstance(value.value, cst.Name) else set()
    if dtype is None or names_in(pointer.value) & varying or not names_in(value.value) & varying:
        return None
    if mask is not None and names_in(mask) & varying - own:
        return None
    tile = _tile(source, function, body, call, value.value) if own else None
    return Sum(statement, call, pointer.value, value.value, mask, dtype, tile)


def _tile(
    source: TritonSource, function: JitFunction, body: Body, call: cst.Call, value: cst.BaseExpression
) -> Tile | None:
    """The block behind `value = tl.sum(block, axis)`, where only the atomic reads the value and the block's shape can
    be told: it is kept instead of its sum, so that lanes meet once, behind the loop."""
    name = dotted_name(value)
    writers = [s for s in body.statements if name in s.writes]
    line = writers[0].node if len(writers) == 1 else None
    small = line.body[0] if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else None
    total = tl_call(source, small.value, "sum") if isinstance(small, cst.Assign) and len(small.targets) == 1 else None
    uses = [n for n in walk(function.node.body) if isinstance(n, cst.Name) and n.value == name]
    read = [n for n in walk(call) if isinstance(n, cst.Name) and n.value == name]
    if total is None or len(uses) != 1 + len(read) or len(total.args) > 2:
        return None
    block = argument(total, "input", 0)
    if block is None or any(a.keyword is not None and a.keyword.value != "axis" for a in total.args[1:]):
        return None
    shape = Shapes(source, function).of(block.value)
    written = shape is not None and all(n.isdigit() or n in function.constexprs for n in shape)
    return Tile(writers[0], total, block.value, shape) if shape and written else None
