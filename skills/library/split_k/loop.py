"""The kernel's side of a divided k: which steps a program takes, where its pointers start, where its sum goes."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from skills.edit import Edit, append_param, insert_before, replace, tl_name
from skills.fold import Body, body_of, unused
from skills.gemm_loop import GemmLoop
from skills.idioms import (
    assignments,
    base_param,
    is_docstring,
    method_call,
    names_in,
    operand,
    program_axis,
    tl_call,
)
from skills.knobs import grid_expression
from skills.triton_source import JitFunction, TritonSource, argument, dotted_name, walk


@dataclass(frozen=True, slots=True, eq=False)
class DividedLoop:
    """Edits of a kernel whose loop over k takes a part of the steps, and what its launches must give."""

    edits: tuple[Edit, ...]
    axis: int
    """The grid axis that counts parts."""
    output: str
    """The parameter that points to the result, and to the buffer of parts from now on."""
    stride: str
    """The new parameter: elements of one part."""


@dataclass(frozen=True, slots=True, eq=False)
class _Steps:
    """`for target in range(0, K, BK)` or `for target in range(0, steps)`: `count` steps of `by` each."""

    call: cst.Call
    count: str
    stop: str
    by: str


def divided_loop(source: TritonSource, function: JitFunction, gemm: GemmLoop) -> DividedLoop | None:
    """None where the kernel holds more than one loop that sums products from zero and one store of the sum."""
    body = body_of(source, function)
    axis = _free_axis(source, function)
    loops = [s.node for s in body.statements if isinstance(s.node, cst.For)] if body is not None else []
    if body is None or axis is None or len(loops) != 1 or not isinstance(loops[0], cst.For):
        return None
    loop, steps = loops[0], _steps(source, loops[0], gemm)
    store = _only_store(source, function)
    pointer = argument(store, "pointer", 0) if store is not None else None
    output = base_param(source, function, pointer.value) if pointer is not None else None
    sums = _sums(source, loop)
    if steps is None or store is None or output is None or sums is None:
        return None
    total, moves = sums
    if not _starts_at_zero(source, body, total) or not _addresses_alone(source, function, output, store):
        return None
    rounded = _rounding(source, function, body, loop, total, store)
    if rounded is None:
        return None
    part, share, stride = unused(source, function, "part", "part_steps", "partial_elements")
    tl, first = tl_name(source), next(s.node for s in body.statements if not is_docstring(s.node))
    start = [f"{part} = {tl}.program_id({axis})", f"{output} += {part}.to({tl}.int64) * {stride}"]
    before = [f"{share} = {tl}.cdiv({steps.count}, {tl}.num_programs({axis}))"]
    before += [f"{name} += ({part} * {share}).to({tl}.int64) * {by}" for name, by in moves]
    scale = f" * {steps.by}" if steps.by != "1" else ""
    bounds = f"{part} * {share}{scale}, {tl}.minimum({steps.stop}, ({part} + 1) * {share}{scale})"
    positional = [a for a in steps.call.args if a.keyword is None]
    begin, end = source.span(positional[0].value)[0], source.span(positional[min(1, len(positional) - 1)].value)[1]
    edits = (
        insert_before(source, first, start),
        insert_before(source, loop, before),
        Edit(begin, end, bounds),
        append_param(source, function, stride),
        *rounded,
    )
    return DividedLoop(edits, axis, output, stride)


def _free_axis(source: TritonSource, function: JitFunction) -> int | None:
    """The axis behind those of the grid that every launch gives and the kernel reads."""
    lengths = set()
    for launch in source.launches_of(function.name):
        grid = grid_expression(source, launch)
        grid = grid.body if isinstance(grid, cst.Lambda) else grid
        lengths.add(len(grid.elements) if isinstance(grid, cst.Tuple) else None)
    reads = [c for n in walk(function.node.body) if (c := tl_call(source, n, "program_id", "num_programs")) is not None]
    axes = {program_axis(c) for c in reads}
    axis = lengths.pop() if len(lengths) == 1 else None
    known = all(a is not None and axis is not None and a < axis for a in axes)
    return axis if axis in (1, 2) and axes and known else None


def _steps(source: TritonSource, loop: cst.For, gemm: GemmLoop) -> _Steps | None:
    """The loop's steps where it begins at 0; None for any other loop."""
    call = loop.iter
    if not isinstance(call, cst.Call) or not isinstance(loop.target, cst.Name):
        return None
    if dotted_name(call.func) != "range" and tl_call(source, call, "range") is None:
        return None
    given = [source.code(a.value) for a in call.args if a.keyword is None]
    if any(a.star for a in call.args) or not 1 <= len(given) <= 3 or (len(given) > 1 and given[0] != "0"):
        return None
    if len(given) < 3:
        return _Steps(call, given[-1], given[-1], "1")
    if given[2] != gemm.block_k:
        return None
    return _Steps(call, f"{tl_name(source)}.cdiv({given[1]}, {given[2]})", given[1], given[2])


def _only_store(source: TritonSource, function: JitFunction) -> cst.Call | None:
    """The kernel's one store, a statement of its own at the top level."""
    found = [c for f in source.callees(function) for n in walk(f.node.body) if (c := tl_call(source, n, "store"))]
    if len(found) != 1 or not isinstance(source.parent(found[0]), cst.Expr):
        return None
    return found[0] if source.parent(source.statement(found[0])) is function.node.body else None


def _sums(source: TritonSource, loop: cst.For) -> tuple[str, list[tuple[str, str]]] | None:
    """The one sum that a loop carries, and the names it moves by the same amount in every step, as (name, amount);
    None where it carries anything else."""
    written: set[str] = {n.value for n in walk(loop.target) if isinstance(n, cst.Name)}
    for node in walk(loop.body):
        if isinstance(node, cst.If | cst.While | cst.For):
            return None
        if isinstance(node, cst.AssignTarget | cst.AugAssign | cst.AnnAssign):
            written |= {n.value for n in walk(node.target) if isinstance(n, cst.Name)}
    sums: list[str] = []
    moves: list[tuple[str, str]] = []
    fresh: set[str] = set()
    for statement in loop.body.body:
        small = statement.body[0] if isinstance(statement, cst.SimpleStatementLine) else None
        if isinstance(small, cst.AugAssign) and isinstance(small.operator, cst.AddAssign):
            name, value, added = dotted_name(small.target), small.value, True
        elif isinstance(small, cst.Assign) and len(small.targets) == 1:
            name, value = dotted_name(small.targets[0].target), small.value
            added = name is not None and _added_to(source, name, value)
        else:
            return None
        if name is None or (name in fresh and added):
            return None
        if not added:
            fresh |= {name}
        elif names_in(value) & written:
            sums.append(name)
        else:
            moves.append((name, operand(source, value)))
    carried = [*sums, *(n for n, _ in moves)]
    if len(sums) != 1 or len(set(carried)) != len(carried) or _reads(loop, sums[0]) != 1:
        return None
    return (sums[0], moves) if not fresh & set(carried) and not _read_first(loop, fresh) else None


def _added_to(source: TritonSource, name: str, value: cst.BaseExpression) -> bool:
    """Whether a value is `tl.dot(a, b, NAME)` or `NAME + anything`."""
    dot = tl_call(source, value, "dot")
    acc = argument(dot, "acc", 2) if dot is not None else None
    if acc is not None:
        return dotted_name(acc.value) == name
    if isinstance(value, cst.BinaryOperation) and isinstance(value.operator, cst.Add):
        return name in (dotted_name(value.left), dotted_name(value.right))
    return False


def _reads(loop: cst.For, total: str) -> int:
    """Places in a loop where the sum stands, but for the target of an assignment."""
    targets = {id(n) for t in walk(loop.body) if isinstance(t, cst.AssignTarget) for n in walk(t)}
    return sum(isinstance(n, cst.Name) and n.value == total and id(n) not in targets for n in walk(loop.body))


def _read_first(loop: cst.For, names: set[str]) -> bool:
    """Whether a step reads one of these before it gives it a value, so that the step before decides it."""
    given: set[str] = set()
    for statement in loop.body.body:
        assign = statement.body[0] if isinstance(statement, cst.SimpleStatementLine) else statement
        value = assign.value if isinstance(assign, cst.Assign | cst.AugAssign) else None
        if value is not None and names_in(value) & (names - given):
            return True
        if isinstance(assign, cst.Assign):
            given |= names_in(assign.targets[0].target)
    return False


def _starts_at_zero(source: TritonSource, body: Body, total: str) -> bool:
    """Whether the sum is given `tl.zeros` of fp32 in front of the loop, and nothing else."""
    found = [
        value
        for s in body.statements
        if isinstance(s.node, cst.SimpleStatementLine)
        for value in assignments(source, s.node, total)
    ]
    zeros = tl_call(source, found[0], "zeros") if len(found) == 1 else None
    dtype = argument(zeros, "dtype", 1) if zeros is not None else None
    return dtype is not None and (source.qualified(dtype.value) or "").endswith(".float32")


def _addresses_alone(source: TritonSource, function: JitFunction, output: str, store: cst.Call) -> bool:
    """Whether the result's pointer makes the store's addresses and nothing that is read."""
    loads = [c for n in walk(function.node.body) if (c := tl_call(source, n, "load")) is not None]
    pointers = [p.value for c in loads if (p := argument(c, "pointer", 0)) is not None]
    read = any(base_param(source, function, p) in (output, None) for p in pointers)
    blocks = any(tl_call(source, n, "make_block_ptr", "make_tensor_descriptor") for n in walk(function.node.body))
    return bool(pointers) and not read and not blocks


def _rounding(
    source: TritonSource, function: JitFunction, body: Body, loop: cst.For, total: str, store: cst.Call
) -> list[Edit] | None:
    """Edits that leave the stored sum unrounded; None where the sum is anything else than stored behind the loop."""
    value = argument(store, "value", 1)
    if value is None:
        return None
    at = next(n for n, s in enumerate(body.statements) if s.node is loop)
    places = [v for s in body.statements[at + 1 :] for v in _values(s.node)]
    readers = [v for v in places if total in names_in(v)]
    stored, seen = value.value, [value.value]
    if isinstance(stored, cst.Name) and stored.value != total:
        given = list(assignments(source, function.node.body, stored.value))
        uses = sum(isinstance(n, cst.Name) and n.value == stored.value for n in walk(function.node.body))
        if len(given) != 1 or uses != 2:
            return None
        stored, seen = given[0], [given[0], value.value]
    if any(id(v) not in {id(s) for s in seen} and v is not source.parent(value) for v in readers):
        return None
    cast = method_call(stored, "to")
    inner = cast.func.value if cast is not None and isinstance(cast.func, cst.Attribute) else stored
    if dotted_name(inner) != total:
        return None
    return [replace(source, stored, total)] if cast is not None else []


def _values(node: cst.CSTNode) -> list[cst.BaseExpression]:
    """What a statement computes: the value of an assignment, or the expression it is."""
    small = node.body[0] if isinstance(node, cst.SimpleStatementLine) else None
    if isinstance(small, cst.Assign | cst.AugAssign | cst.Expr):
        return [small.value]
    return [n for n in walk(node) if isinstance(n, cst.BaseExpression)]
