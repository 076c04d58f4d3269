"""Fold a grid axis that an atomic's address does not depend on: a loop over its blocks, one atomic behind it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import libcst as cst

from sandbox.kernel import Kernel
from sandbox.target import Target
from skills.edit import Edit, add_argument, append_param, apply_edits, insert_before, replace, tl_name
from skills.facts import Facts
from skills.fold import (
    Body,
    Statement,
    block_of,
    body_of,
    dependent,
    divided,
    grid_elements,
    indented,
    program_ids,
)
from skills.idioms import active_lanes, assignments, base_param, names_in, order_arguments, taken_names, tl_call
from skills.literals import int_value
from skills.names import fresh_name
from skills.skill import Refusal, Site
from skills.triton_source import JitFunction, TritonSource, argument, dotted_name, parse_triton, walk

_BLOCKS = (8, 32)
_TOTAL = "n_blocks"
_ATOMICS = (
    "atomic_add",
    "atomic_max",
    "atomic_min",
    "atomic_and",
    "atomic_or",
    "atomic_xor",
    "atomic_xchg",
    "atomic_cas",
)
_SUMS = {"float32": "float32", "float16": "float32", "bfloat16": "float32", "int32": "int32", "int64": "int64"}
"""Types of counters, and of the sums that are added to them."""


@dataclass(frozen=True, slots=True, eq=False)
class _Sum:
    """An atomic addition whose address is the same for every block of the axis, and its mask but for the value."""

    statement: Statement
    call: cst.Call
    pointer: cst.BaseExpression
    value: cst.BaseExpression
    mask: cst.BaseExpression | None
    dtype: str


@dataclass(frozen=True, slots=True, eq=False)
class _Strip:
    """What `_emit` writes. `branch` is the `if CONSTEXPR:` that the atomic stands in, where it does."""

    body: Body
    name: str
    axis: int
    sums: tuple[_Sum, ...]
    branch: cst.If | None
    inner: Body | None
    varying: frozenset[str]


def find(kernel: Kernel, facts: Facts, target: Target) -> Iterable[Site | Refusal]:
    """Strips of eight blocks; longer ones, and of blocks that are summed to one number, where a clock can tell."""
    source = parse_triton(kernel)
    name = str(facts["kernel.name"])
    function = source.functions.get(name)
    if function is None or _is_out_of_reach(source, function):
        return
    reduced = _is_one_sum(source, function)
    known = {p: next(iter(d)) for p, d in facts.pairs("launch.pointer_dtypes").items() if len(d) == 1}
    for axis in _axes(source, function):
        for blocks in _BLOCKS:
            variant: dict[str, bool | int | float | str] = {"axis": axis, "blocks": blocks}
            if _edited(kernel, name, axis, blocks, known) is not None:
                counters = {p: d for p, d in known.items() if d in _SUMS}
                label = f"{blocks} blocks of grid axis {axis}"
                timed = reduced or blocks > _BLOCKS[0]
                yield Site(source.line(function.node), label, name, variant | counters, needs_timing=timed)


def transform(kernel: Kernel, site: Site, target: Target) -> Kernel | None:
    """The loop, the grid divided, and the number of blocks passed along."""
    known = {name: str(value) for name, value in site.variant.items() if name not in ("axis", "blocks")}
    return _edited(kernel, site.kernel or "", int(site.variant["axis"]), int(site.variant["blocks"]), known)


def _is_out_of_reach(source: TritonSource, function: JitFunction) -> bool:
    """Whether blocks are walked already, the grid's size is read, a helper does what only the kernel may, or a counter
    is read besides."""
    nodes = list(walk(function.node.body))
    if any(p.name.startswith(_TOTAL) for p in function.params):
        return True
    if any(tl_call(source, n, "num_programs", "inline_asm_elementwise") is not None for n in nodes):
        return True
    for helper in source.callees(function)[1:]:
        if any(tl_call(source, n, "program_id", "num_programs", "store", *_ATOMICS) for n in walk(helper.node.body)):
            return True
    counters, others = (
        {base_param(source, function, p.value) for n in nodes if (c := tl_call(source, n, *kinds)) is not None
         if (p := argument(c, "pointer", 0)) is not None}
        for kinds in (_ATOMICS, ("load", "store"))
    )  # fmt: skip
    return None in counters or None in others or bool(counters & others)


def _is_one_sum(source: TritonSource, function: JitFunction) -> bool:
    """Whether an atomic adds the sum of a whole block to one address: every turn of the loop would end in a barrier,
    and a larger block may be the better way."""
    params = {p.name for p in function.params}
    for call in (c for n in walk(function.node.body) if (c := tl_call(source, n, "atomic_add")) is not None):
        pointer, value = argument(call, "pointer", 0), argument(call, "val", 1)
        single = pointer is not None and isinstance(pointer.value, cst.Name) and pointer.value.value in params
        given = [value.value] if value is not None else []
        if given and isinstance(given[0], cst.Name):
            given = list(assignments(source, function.node.body, given[0].value))
        if single and any(tl_call(source, g, "sum") is not None for g in given):
            return True
    return False


def _axes(source: TritonSource, function: JitFunction) -> list[int]:
    """Axes of the grid; only those whose ids count tiles where there are any, since they are the long ones."""
    found: dict[int, bool] = {}
    scaled = _tiled_ids(source, function)
    for call in (c for n in walk(function.node.body) if (c := tl_call(source, n, "program_id")) is not None):
        given = argument(call, "axis", 0)
        axis = int_value(given.value) if given is not None else None
        if axis is None:
            return []
        found[axis] = found.get(axis, False) or call in scaled
    tiled = sorted(a for a, counts in found.items() if counts)
    return tiled or sorted(found)


def _tiled_ids(source: TritonSource, function: JitFunction) -> list[cst.Call]:
    """The calls of `tl.program_id` whose value, itself or by the name it is given, is multiplied by a constexpr."""
    calls = [c for n in walk(function.node.body) if (c := tl_call(source, n, "program_id")) is not None]
    products = [
        n for n in walk(function.node.body)
        if isinstance(n, cst.BinaryOperation) and isinstance(n.operator, cst.Multiply)
        and names_in(n) & set(function.constexprs)
    ]  # fmt: skip
    found = []
    for call in calls:
        parent = source.parent(call)
        names = {dotted_name(t.target) for t in parent.targets} if isinstance(parent, cst.Assign) else set()
        if any(call in list(walk(p)) or names_in(p) & names for p in products):
            found.append(call)
    return found


def _edited(kernel: Kernel, name: str, axis: int, blocks: int, known: Mapping[str, str]) -> Kernel | None:
    kernel = _with_named_id(kernel, name, axis)
    source = parse_triton(kernel)
    function = source.functions[name]
    strip = _strip(source, function, axis, known)
    if strip is None:
        return None
    taken = taken_names(function.node)
    total = fresh_name(_TOTAL, taken)
    edits = [append_param(source, function, total)]
    for launch in source.launches_of(name):
        elements = grid_elements(source, launch)
        if elements is None or axis >= len(elements) or "meta" in names_in(elements[axis]):
            return None
        if any(a.star for a in launch.call.args):
            return None
        edits.append(divided(source, elements[axis], str(blocks), rounded_up=True))
        edits.append(add_argument(source, launch.call, f"{total}={source.code(elements[axis])}"))
    if len(edits) == 1:
        return None
    text = "".join(_emit(source, strip, blocks, total, taken))
    return apply_edits(kernel, source, [*edits, Edit(strip.body.start, strip.body.end, text)])


def _with_named_id(kernel: Kernel, name: str, axis: int) -> Kernel:
    """The kernel with a statement of its own for the id of an axis, where it stands inside of expressions."""
    source = parse_triton(kernel)
    function = source.functions[name]
    body = body_of(source, function)
    if body is None or any(p.axis == axis for p in program_ids(source, body)):
        return kernel
    calls = [c for n in walk(function.node.body) if (c := tl_call(source, n, "program_id")) is not None]
    calls = [c for c in calls if (a := argument(c, "axis", 0)) is not None and int_value(a.value) == axis]
    block = fresh_name("block", taken_names(function.node))
    first = next((s.node for s in body.statements if not _is_docstring(s.node)), None)
    if first is None or not calls:
        return kernel
    edits = [replace(source, c, block) for c in calls]
    edits.append(insert_before(source, first, [f"{block} = {source.code(calls[0])}"]))
    return apply_edits(kernel, source, edits) or kernel


def _is_docstring(node: cst.CSTNode) -> bool:
    small = node.body[0] if isinstance(node, cst.SimpleStatementLine) else None
    return isinstance(small, cst.Expr) and isinstance(small.value, cst.SimpleString | cst.ConcatenatedString)


def _strip(source: TritonSource, function: JitFunction, axis: int, known: Mapping[str, str]) -> _Strip | None:
    body = body_of(source, function)
    ids = [p for p in program_ids(source, body) if p.axis == axis] if body is not None else []
    calls = [c for n in walk(function.node.body) if (c := tl_call(source, n, *_ATOMICS)) is not None]
    if body is None or len(ids) != 1 or not calls:
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
    return _Strip(body, ids[0].name, axis, found, branch, inner, varying) if len(found) == len(sums) else None


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
        if not _changes(statement, varying) and (stores or (loads and stored)):
            return True
        stored = stored or stores
    return False


def _changes(statement: Statement, varying: frozenset[str]) -> bool:
    """Whether a statement is another for each block."""
    return bool(statement.writes & varying or (statement.reads & varying and not statement.writes))


def _sum(
    source: TritonSource, function: JitFunction, body: Body, call: cst.Call, varying: frozenset[str],
    known: Mapping[str, str],
) -> _Sum | None:  # fmt: skip
    """The atomic as a sum over blocks; None where it is none."""
    statement = next((s for s in body.statements if source.statement(call) is s.node), None)
    alone = isinstance(source.parent(call), cst.Expr) and tl_call(source, call, "atomic_add") is not None
    pointer, value, mask = argument(call, "pointer", 0), argument(call, "val", 1), active_lanes(source, call, 2)
    if (
        not alone
        or statement is None
        or tl_call(source, call, "atomic_add") is None
        or pointer is None
        or value is None
    ):
        return None
    dtype = _SUMS.get(known.get(base_param(source, function, pointer.value) or "", ""))
    own = {value.value.value} if isinstance(value.value, cst.Name) else set()
    if dtype is None or names_in(pointer.value) & varying or not names_in(value.value) & varying:
        return None
    if mask is not None and names_in(mask) & varying - own:
        return None
    return _Sum(statement, call, pointer.value, value.value, mask, dtype)


def _emit(source: TritonSource, strip: _Strip, blocks: int, total: str, taken: set[str]) -> Iterator[str]:
    """The lines of the new body."""
    tl, indent, name = tl_name(source), strip.body.indent, strip.name
    first = fresh_name(f"first_{name}", taken)
    kept = {s: (_targets(s, taken), fresh_name("strip_total", taken)) for s in strip.sums}
    starts, ends = _around(source, strip, kept, tl)
    statements = [s for s in strip.body.statements if _id_of(source, s) != (name, strip.axis)]
    inside = [s for s in statements if _is_inside(s, strip)]
    yield from (s.text for s in statements if s not in inside)
    yield f"{indent}{first} = {tl}.program_id({strip.axis}) * {blocks}\n"
    yield from _guarded(source, strip, starts)
    yield f"{indent}for {name} in range({first}, {tl}.minimum({first} + {blocks}, {total})):\n"
    for statement in inside:
        yield indented(_looped(source, strip, statement, kept))
    yield from _guarded(source, strip, ends)


def _targets(item: _Sum, taken: set[str]) -> str:
    """The name of the address: its own where it is one."""
    return item.pointer.value if isinstance(item.pointer, cst.Name) else fresh_name("targets", taken)


def _id_of(source: TritonSource, statement: Statement) -> tuple[str | None, int | None] | None:
    """(name, axis) of a statement `name = tl.program_id(axis)`, else None."""
    found = program_ids(source, Body((statement,), 0, 0, ""))
    return (found[0].name, found[0].axis) if found else None


def _is_inside(statement: Statement, strip: _Strip) -> bool:
    holds = statement.node is strip.branch or any(s.statement is statement for s in strip.sums)
    return holds or _changes(statement, strip.varying)


def _around(
    source: TritonSource, strip: _Strip, kept: Mapping[_Sum, tuple[str, str]], tl: str
) -> tuple[list[str], list[str]]:
    """The lines before the loop and behind it, without their indentation."""
    starts: list[str] = []
    ends: list[str] = []
    if strip.inner is not None:
        fixed = [s for s in strip.inner.statements if s.writes and not s.writes & strip.varying]
        starts += [line.removeprefix(strip.inner.indent) for s in fixed for line in s.text.splitlines()]
    for item, (targets, sum_name) in kept.items():
        starts += [f"{targets} = {_one_line(source, item.pointer)}"] if not isinstance(item.pointer, cst.Name) else []
        starts.append(f"{sum_name} = {tl}.zeros({targets}.shape, {tl}.{item.dtype})")
        parts = [targets, sum_name]
        if item.mask is not None:
            own = item.value.value if isinstance(item.value, cst.Name) else ""
            text = _one_line(source, item.mask)
            parts.append("mask=" + (re.sub(rf"\b{own}\b", sum_name, text) if own else text))
        parts += order_arguments(source, item.call)
        ends.append(f"{source.code(item.call.func)}({', '.join(parts)})")
    return starts, ends


def _one_line(source: TritonSource, node: cst.CSTNode) -> str:
    """An argument's text where no parentheses are around it."""
    return re.sub(r"\s*\n\s*", " ", source.code(node))


def _guarded(source: TritonSource, strip: _Strip, lines: list[str]) -> Iterator[str]:
    """Lines at the level of the body, under the branch's condition where there is one."""
    indent = strip.body.indent
    if strip.branch is not None:
        yield f"{indent}if {source.code(strip.branch.test)}:\n"
        indent += "    "
    yield from (f"{indent}{line}\n" for line in lines)


def _looped(source: TritonSource, strip: _Strip, statement: Statement, kept: Mapping[_Sum, tuple[str, str]]) -> str:
    """A statement as it stands in the loop: the atomic adds to the sum, what does not change has gone before."""
    text = statement.text
    for item, (_, sum_name) in kept.items():
        text = text.replace(source.code(item.call), f"{sum_name} += {_one_line(source, item.value)}")
    if statement.node is strip.branch and strip.inner is not None:
        for part in strip.inner.statements:
            if part.writes and not part.writes & strip.varying:
                text = text.replace(part.text, "")
    return text
