"""A serial kernel's first loop and all that follows it, each in programs of its own along a new grid axis."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import libcst as cst

from sandbox.kernel import Kernel
from sandbox.target import Target
from skills.allocation import allocation
from skills.edit import Edit, apply_edits, replace, tl_name
from skills.facts import Facts
from skills.fold import Body, Statement, body_of, indented
from skills.idioms import ATOMICS, assigned, base_param, names_in, tl_call
from skills.skill import Refusal, Site
from skills.triton_source import JitFunction, Launch, TritonSource, argument, dotted_name, parse_triton, walk

_MOST_AXES = 3
_OUT_OF_REACH = ("num_programs", "inline_asm_elementwise", "debug_barrier", "device_print", *ATOMICS)


@dataclass(frozen=True, slots=True, eq=False)
class _Parts:
    """A kernel's body: what both parts need, and each of them."""

    body: Body
    before: Sequence[Statement]
    first: Sequence[Statement]
    second: Sequence[Statement]
    stored: frozenset[str]
    """Parameters either part stores to."""


def find(kernel: Kernel, facts: Facts, target: Target) -> Iterable[Site | Refusal]:
    """One site where the parts are independent and every launch shows its grid."""
    source = parse_triton(kernel)
    function = source.functions.get(str(facts["kernel.name"]))
    if function is not None and _edits(source, function):
        yield Site(source.line(function.node), "two parts", function.name)


def transform(kernel: Kernel, site: Site, target: Target) -> Kernel | None:
    """The branches in the kernel and the axis in every grid; a launch elsewhere whose grid lacks it still runs both."""
    source = parse_triton(kernel)
    function = source.functions.get(site.kernel or "")
    return apply_edits(kernel, source, _edits(source, function) if function is not None else [])


def _edits(source: TritonSource, function: JitFunction) -> list[Edit]:
    """The edits of kernel and hosts; none where the kernel has to stay in one piece."""
    parts = _parts(source, function)
    grids = [_grid(source, launch) for launch in source.launches_of(function.name)]
    axes = {len(grid.elements) for grid in grids if grid is not None}
    if parts is None or None in grids or len(axes) != 1 or not _apart(source, function, parts.stored):
        return []
    axis = axes.pop()
    if axis >= _MOST_AXES:
        return []
    shown = [grid for grid in grids if grid is not None]
    edits = [replace(source, g, ", ".join([*(source.code(e.value) for e in g.elements), "2"])) for g in shown]
    indent = parts.body.indent
    text = "".join(s.text for s in parts.before)
    part = f"{tl_name(source)}.program_id({axis})"
    text += f"{indent}if {part} == 0:\n" + _moved_in(parts.first)
    text += f"{indent}if {part} == {tl_name(source)}.num_programs({axis}) - 1:\n" + _moved_in(parts.second)
    return [*edits, Edit(parts.body.start, parts.body.end, text)]


def _moved_in(part: Sequence[Statement]) -> str:
    return "".join(indented(s.text) for s in part).lstrip("\n")


def _parts(source: TritonSource, function: JitFunction) -> _Parts | None:
    """The body cut behind its first loop that stores; None where what follows needs anything of that loop, or what goes
    before, and is done twice, stores or reads what is stored."""
    body = body_of(source, function)
    nodes = [n for f in source.callees(function) for n in walk(f.node.body)]
    if body is None or len(source.callees(function)) > 1 or any(tl_call(source, n, *_OUT_OF_REACH) for n in nodes):
        return None
    loops = [i for i, s in enumerate(body.statements) if isinstance(s.node, cst.For) and _stores(source, [s])]
    if len(loops) < 2:
        return None
    cut = loops[0] + 1
    first, second = body.statements[cut - 1 : cut], body.statements[cut:]
    if _exposed([s.node for s in second], set()) & first[0].writes:
        return None
    loaded = [_params(source, function, part, "load") for part in (first, second)]
    stored = [_params(source, function, part, "store") for part in (first, second)]
    if any(None in names for names in (*loaded, *stored)):
        return None
    before = body.statements[: cut - 1]
    shared = _params(source, function, before, "load") & (stored[0] | stored[1])
    if stored[0] & (loaded[1] | stored[1]) or stored[1] & loaded[0] or shared or _stores(source, before):
        return None
    return _Parts(body, before, first, second, frozenset(str(n) for n in stored[0] | stored[1]))


def _stores(source: TritonSource, part: Sequence[Statement]) -> bool:
    return any(_calls(source, s, "store") for s in part)


def _calls(source: TritonSource, statement: Statement, name: str) -> list[cst.Call]:
    return [c for n in walk(statement.node) if (c := tl_call(source, n, name)) is not None]


def _params(source: TritonSource, function: JitFunction, part: Sequence[Statement], kind: str) -> set[str | None]:
    """The parameters that a part loads from, or stores to; None among them where one is not known."""
    pointers = [argument(call, "pointer", 0) for s in part for call in _calls(source, s, kind)]
    return {base_param(source, function, p.value) if p is not None else None for p in pointers}


def _exposed(statements: Iterable[cst.CSTNode], known: set[str]) -> set[str]:
    """Names that are read before they are given a value; what only a loop or a branch gives one stays unknown."""
    found: set[str] = set()
    for node in statements:
        if isinstance(node, cst.SimpleStatementLine):
            for small in node.body:
                targets, value = assigned(small)
                written = {t.value for t in targets if isinstance(t, cst.Name)}
                plain = isinstance(small, cst.Assign) and value is not None and len(written) == len(targets)
                found |= (names_in(value) if plain and value is not None else names_in(small)) - known
                known |= written
        elif isinstance(node, cst.For) and isinstance(node.body, cst.IndentedBlock):
            found |= names_in(node.iter) - known
            found |= _exposed(node.body.body, known | names_in(node.target))
        elif isinstance(node, cst.If) and isinstance(node.body, cst.IndentedBlock) and node.orelse is None:
            found |= names_in(node.test) - known
            found |= _exposed(node.body.body, set(known))
        else:
            found |= names_in(node) - known
    return found


def _grid(source: TritonSource, launch: Launch) -> cst.Tuple | None:
    """The tuple a launch's grid is, at the launch or in the last assignment before it, which no other launch reads."""
    if isinstance(launch.grid, cst.Tuple):
        return launch.grid
    name = dotted_name(launch.grid)
    at = source.span(launch.call)[0]
    block = source.parent(source.statement(launch.call))
    given = [
        n for n in walk(launch.host or block) if isinstance(n, cst.Assign) and name in map(dotted_name, assigned(n)[0])
    ]
    before = [n for n in given if source.span(n)[0] < at]
    if name is None or not before or source.parent(source.statement(before[-1])) is not block:
        return None
    until = min((source.span(n)[0] for n in given if source.span(n)[0] > at), default=len(source.data))
    since = source.span(before[-1])[0]
    readers = [o for o in source.launches if dotted_name(o.grid) == name and since < source.span(o.call)[0] < until]
    value = before[-1].value
    return value if isinstance(value, cst.Tuple) and readers == [launch] else None


def _apart(source: TritonSource, function: JitFunction, stored: frozenset[str]) -> bool:
    """Whether what is stored to is memory of its own at every launch: the host has just allocated it."""
    launches = source.launches_of(function.name)
    return all(allocation(source, function, launch, name) is not None for launch in launches for name in stored)
