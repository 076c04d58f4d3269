"""Fold a grid axis into a loop inside the kernel: what belongs before the loop and into it, how the grid shrinks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from skills.edit import Edit, add_argument, replace
from skills.idioms import bound_argument, names_in, needs_parentheses, program_axis, taken_names, tl_call
from skills.knobs import grid_expression
from skills.names import fresh_name
from skills.triton_source import JitFunction, Launch, TritonSource, dotted_name, walk


@dataclass(frozen=True, slots=True, eq=False)
class Statement:
    """A top-level statement of the kernel: its lines with the comments above, the names it reads and writes."""

    node: cst.CSTNode
    text: str
    reads: frozenset[str]
    writes: frozenset[str]


@dataclass(frozen=True, slots=True, eq=False)
class ProgramId:
    """`name = tl.program_id(axis)` at the top level of a kernel."""

    name: str
    axis: int
    index: int
    """Which of the kernel's statements it is."""


@dataclass(frozen=True, slots=True, eq=False)
class Body:
    """A kernel's top-level statements; `start` and `end` are the bytes they occupy."""

    statements: tuple[Statement, ...]
    start: int
    end: int
    indent: str


def body_of(source: TritonSource, function: JitFunction) -> Body | None:
    """The statements of a kernel; None for a one-line body or one that may return early."""
    block = function.node.body
    if any(isinstance(n, cst.Return) for n in walk(block)):
        return None
    return block_of(source, block)


def block_of(source: TritonSource, block: cst.BaseSuite) -> Body | None:
    """The statements of an indented block; None for a one-line one."""
    if not isinstance(block, cst.IndentedBlock) or not block.body:
        return None
    first = source.span(block.body[0])[0]
    start = source.data.rfind(b"\n", 0, first) + 1
    indent = source.data[start:first].decode()
    if indent.strip():
        return None
    statements: list[Statement] = []
    at = start
    for node in block.body:
        stop = source.data.find(b"\n", source.span(node)[1])
        stop = len(source.data) if stop < 0 else stop + 1
        reads, writes = _names(node)
        statements.append(Statement(node, source.data[at:stop].decode(), reads, writes))
        at = stop
    return Body(tuple(statements), start, at, indent)


def _names(node: cst.CSTNode) -> tuple[frozenset[str], frozenset[str]]:
    """(read, written) names below a statement. A name that is only assigned counts as written alone."""
    targets: list[cst.CSTNode] = []
    for n in walk(node):
        if isinstance(n, cst.AssignTarget | cst.AnnAssign | cst.AugAssign | cst.For):
            targets.append(n.target)
    writes = {t.value for target in targets for t in walk(target) if isinstance(t, cst.Name)}
    only_written = {id(t) for n in walk(node) if isinstance(n, cst.AssignTarget) for t in walk(n.target)}
    reads = {n.value for n in walk(node) if isinstance(n, cst.Name) and id(n) not in only_written}
    return frozenset(reads), frozenset(writes)


def program_ids(source: TritonSource, body: Body) -> list[ProgramId]:
    """Every id that a top-level statement of its own reads."""
    found = []
    for index, statement in enumerate(body.statements):
        small = statement.node.body[0] if isinstance(statement.node, cst.SimpleStatementLine) else None
        if not isinstance(small, cst.Assign) or len(small.targets) != 1:
            continue
        call = tl_call(source, small.value, "program_id")
        number = program_axis(call) if call is not None else None
        name = dotted_name(small.targets[0].target)
        if number is not None and name is not None:
            found.append(ProgramId(name, number, index))
    return found


def dependent(body: Body, start: set[str], fixed: frozenset[str] = frozenset()) -> frozenset[str]:
    """Names whose values depend on the start names; one dependent assignment is enough. `fixed` names never do."""
    names = set(start)
    while True:
        more = {w for s in body.statements if s.reads & names for w in s.writes} - names - fixed
        if not more:
            return frozenset(names)
        names |= more


def varies(statement: Statement, varying: frozenset[str]) -> bool:
    """Whether a statement is another for each program: it gives such a name a value, or only reads one."""
    return bool(statement.writes & varying or (statement.reads & varying and not statement.writes))


def closure(body: Body, names: set[str]) -> frozenset[str]:
    """Every name the given ones are computed from, themselves included."""
    found = set(names)
    while True:
        more = {r for s in body.statements if s.writes & found for r in s.reads} - found
        if not more:
            return frozenset(found)
        found |= more


def indented(text: str) -> str:
    """Lines moved one level in."""
    return re.sub(r"^(?=[^\n])", "    ", text, flags=re.MULTILINE)


def range_bounds(source: TritonSource, loop: cst.For) -> tuple[str, str, str] | None:
    """Start, stop and step of a plain `for x in range(...)` as written; None for any other loop."""
    call = loop.iter
    if not isinstance(call, cst.Call) or dotted_name(call.func) != "range" or not isinstance(loop.target, cst.Name):
        return None
    if any(a.keyword is not None or a.star for a in call.args):
        return None
    given = [source.code(a.value) for a in call.args]
    start, stop, step = (["0", *given, "1"] if len(given) == 1 else [*given, "1"])[:3]
    return start, stop, step


def block_text(source: TritonSource, block: cst.IndentedBlock) -> str:
    """The lines of an indented block, comments between them included."""
    first, last = source.span(block.body[0])[0], source.span(block.body[-1])[1]
    start = source.data.rfind(b"\n", 0, first) + 1
    stop = source.data.find(b"\n", last)
    return source.data[start : len(source.data) if stop < 0 else stop + 1].decode()


def grid_elements(source: TritonSource, launch: Launch) -> list[cst.BaseExpression] | None:
    """The axes of the grid as written at the launch; None when it is no tuple or list in sight."""
    grid = grid_expression(source, launch)
    if isinstance(grid, cst.Lambda):
        grid = grid.body
    if isinstance(grid, cst.Tuple | cst.List):
        return [e.value for e in grid.elements]
    return None


def grid_is_shared(source: TritonSource, launch: Launch) -> bool:
    """Whether the grid has a variable that others read than launches of this kernel: its value is not ours to edit."""
    name = dotted_name(launch.grid)
    if name is None or launch.host is None:
        return False
    alike = [o for o in source.launches if o.host is launch.host and o.kernel == launch.kernel]
    own = {id(n) for o in alike for n in walk(o.call.func)}
    named = [n for n in walk(launch.host.body) if isinstance(n, cst.Name) and n.value == name and id(n) not in own]
    return any(not isinstance(source.parent(n), cst.AssignTarget | cst.FunctionDef) for n in named)


def grid_locals(source: TritonSource, launch: Launch) -> set[str]:
    """Names that only the grid's own function knows, as `meta` of a lambda: the launch's arguments cannot name them."""
    grid = grid_expression(source, launch)
    functions: list[cst.Lambda | cst.FunctionDef] = [n for n in walk(grid) if isinstance(n, cst.Lambda)]
    if launch.host is not None:
        inner = [n for n in walk(launch.host.body) if isinstance(n, cst.FunctionDef)]
        functions += [n for n in inner if n.name.value == dotted_name(launch.grid)]
    known: set[str] = set()
    for function in functions:
        known |= {p.name.value for p in (*function.params.params, *function.params.kwonly_params)}
        targets = [n.target for n in walk(function.body) if isinstance(n, cst.AssignTarget)]
        known |= {n.value for t in targets for n in walk(t) if isinstance(n, cst.Name)}
    return known


def divided(source: TritonSource, element: cst.BaseExpression, divisor: str, *, rounded_up: bool) -> Edit:
    """Edit of a grid axis: `E // d`, or `triton.cdiv(E, d)` where a rest may remain."""
    text = source.code(element)
    if rounded_up:
        return replace(source, element, f"triton.cdiv({text}, {divisor})")
    left = f"({text})" if needs_parentheses(element) else text
    return replace(source, element, f"{left} // {divisor}")


def shrink_axis(source: TritonSource, function: JitFunction, axis: int, by: int, total: str) -> list[Edit] | None:
    """Every launch of a kernel with one axis of its grid divided by `by`, rounded up, and the length it had given as
    `total`; None where a launch does not show its grid, or where others read it."""
    edits: list[Edit] = []
    for launch in source.launches_of(function.name):
        elements = grid_elements(source, launch)
        if elements is None or axis >= len(elements) or grid_is_shared(source, launch):
            return None
        element = elements[axis]
        if names_in(element) & grid_locals(source, launch) or any(a.star for a in launch.call.args):
            return None
        edits.append(divided(source, element, str(by), rounded_up=True))
        edits.append(add_argument(source, launch.call, f"{total}={source.code(element)}"))
    return edits or None


def host_text(source: TritonSource, function: JitFunction, launch: Launch, expression: str) -> str | None:
    """A kernel expression over parameters and integers, as the host writes it at this launch; None when it cannot."""
    known: dict[str, str] = {}
    for name in set(re.findall(r"[A-Za-z_]\w*", expression)):
        given = bound_argument(function, launch, name)
        if given is None:
            return None
        text = source.code(given)
        known[name] = f"({text})" if needs_parentheses(given) else text
    text = re.sub(r"[A-Za-z_]\w*", lambda m: known[m[0]], expression)
    return text if re.fullmatch(r"\w+|\([^()]*\)|[\w.]+(\([^()]*\))?", text) else f"({text})"


def zero_like(source: TritonSource, function: JitFunction, value: cst.BaseExpression) -> str | None:
    """`tl.zeros(...)` text with the shape and type of a block, from the accumulator it is computed from; else None."""
    wanted = names_in(value)
    for node in walk(function.node.body):
        if not isinstance(node, cst.Assign):
            continue
        zeros = tl_call(source, node.value, "zeros")
        known = zeros is not None and {n for a in zeros.args for n in names_in(a)} <= {*function.constexprs, "tl"}
        if known and any(dotted_name(t.target) in wanted for t in node.targets):
            return source.code(node.value)
    return None


def unused(source: TritonSource, function: JitFunction, *wanted: str) -> Iterator[str]:
    """Names that the kernel does not use yet, made from the wanted ones."""
    taken = taken_names(function.node)
    for name in wanted:
        yield fresh_name(name, taken)
