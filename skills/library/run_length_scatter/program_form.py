"""The form for one program per index: the index axis of the grid becomes runs, each walked by one program."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from skills.edit import Edit, append_param, tl_name
from skills.fold import (
    Body,
    ProgramId,
    Statement,
    body_of,
    closure,
    dependent,
    indented,
    program_ids,
    shrink_axis,
    unused,
    varies,
)
from skills.idioms import names_in, program_axis, taken_names, tl_call
from skills.scatter import Scatter, bindings, in_type, loaded_index
from skills.triton_source import JitFunction, TritonSource, walk

RUN = 16
"""Indices per program: enough for long runs to pay, few enough to leave a large grid."""


@dataclass(frozen=True, slots=True, eq=False)
class ProgramScatter:
    """A scatter whose row is loaded for each id of an axis."""

    scatter: Scatter
    body: Body
    program: ProgramId
    index: int
    """Which of the kernel's statements the atomic is."""
    key: str
    varying: frozenset[str]

    @property
    def total(self) -> str:
        """The parameter that holds the number of ids."""
        return f"{self.program.name}_total"


def edits(
    source: TritonSource, function: JitFunction, found: ProgramScatter, dtype: str, run: int = RUN
) -> list[Edit] | None:
    """The first id peeled, the others in a loop; the grid divided; the number of ids passed along.

    None where a launch does not show its grid.
    """
    host = shrink_axis(source, function, found.program.axis, run, found.total)
    if host is None:
        return None
    body = Edit(found.body.start, found.body.end, _folded(source, function, found, dtype, run))
    return [append_param(source, function, found.total), *host, body]


def over_programs(source: TritonSource, function: JitFunction, scatter: Scatter) -> ProgramScatter | None:
    """The scatter as one of a grid axis each of whose ids loads an index; None where there is none to fold."""
    body = body_of(source, function)
    index = _index_of(source, body, scatter) if body is not None else None
    if body is None or index is None:
        return None
    taken = taken_names(function.node)
    for program in program_ids(source, body):
        if f"{program.name}_total" not in taken and _read_once(source, function, program):
            found = _scatter(source, function, body, program, index, scatter)
            if found is not None:
                return found
    return None


def _index_of(source: TritonSource, body: Body, scatter: Scatter) -> int | None:
    """Which of the kernel's statements the atomic is; None where it stands in a loop or branch."""
    line = source.statement(scatter.call)
    return next((i for i, s in enumerate(body.statements) if s.node is line), None)


def _read_once(source: TritonSource, function: JitFunction, program: ProgramId) -> bool:
    """Whether the id is written and read under one name, so that no other part still means the program by it; and the
    number of programs is asked for in the kernel itself alone, where another number takes its place."""
    if len(bindings(function)[program.name]) != 1:
        return False
    calls = [c for f in source.callees(function) for c, _ in source.calls(f.node.body)]
    ids = [c for c in calls if tl_call(source, c, "program_id") and program_axis(c) in (program.axis, None)]
    numbers = [c for c in calls if tl_call(source, c, "num_programs") and program_axis(c) in (program.axis, None)]
    return len(ids) == 1 and all(source.in_jit(c) is function and program_axis(c) is not None for c in numbers)


def _scatter(
    source: TritonSource, function: JitFunction, body: Body, program: ProgramId, index: int, scatter: Scatter
) -> ProgramScatter | None:
    varying = dependent(body, {program.name})
    if scatter.mask is not None and names_in(scatter.mask) & varying:
        return None
    key = _key(source, function, body, varying & closure(body, names_in(scatter.pointer)))
    if key is None or not names_in(scatter.value) & varying:
        return None
    if names_in(scatter.pointer) & dependent(body, {program.name}, frozenset({key})):
        return None
    return ProgramScatter(scatter, body, program, index, key, varying)


def _key(source: TritonSource, function: JitFunction, body: Body, names: frozenset[str]) -> str | None:
    """The one scalar that is loaded for each id and decides the address."""
    loaded: list[str] = []
    for statement in body.statements:
        small = statement.node.body[0] if isinstance(statement.node, cst.SimpleStatementLine) else None
        if isinstance(small, cst.Assign) and statement.writes & names and len(statement.writes) == 1:
            loaded += statement.writes if loaded_index(source, function, small.value) is not None else ()
    return loaded[0] if len(loaded) == 1 else None


def _folded(source: TritonSource, function: JitFunction, found: ProgramScatter, dtype: str, run: int) -> str:
    indent, program, tl, scatter = found.body.indent, found.program, tl_name(source), found.scatter
    wanted = (f"first_{program.name}", "member", f"run_{found.key}", "run_ptrs", "run_sum")
    first, member, run_key, run_ptrs, run_sum = unused(source, function, *wanted)
    before: list[str] = []
    inside: list[str] = []
    for index, statement in enumerate(found.body.statements):
        if index in (found.index, program.index):
            continue
        (inside if varies(statement, found.varying) else before).append(_with_total(source, found, statement))
    value = in_type(source, scatter.value, dtype)
    start = [f"{run_key} = {found.key}", f"{run_ptrs} = {source.code(scatter.pointer)}", f"{run_sum} = {value}"]
    mask = "" if scatter.mask is None else f", mask={source.code(scatter.mask)}"
    send = f"{source.code(scatter.call.func)}({run_ptrs}, {run_sum}{mask}{scatter.order})"
    one, two, three = indent + "    ", indent + "        ", indent + "            "
    lines = [f"{indent}{first} = {tl}.program_id({program.axis}) * {run}\n", *before]
    lines += [f"{indent}{program.name} = {first}\n", *inside, *(f"{indent}{s}\n" for s in start)]
    lines += [f"{indent}for {member} in range(1, {run}):\n", f"{one}{program.name} = {first} + {member}\n"]
    lines += [f"{one}if {program.name} < {found.total}:\n", *(indented(indented(_code_only(t))) for t in inside)]
    lines += [f"{two}if {found.key} == {run_key}:\n", f"{three}{run_sum} += {value}\n"]
    lines += [f"{two}else:\n", f"{three}{send}\n", *(f"{three}{s}\n" for s in start)]
    lines.append(f"{indent}{send}\n")
    return "".join(lines)


def _with_total(source: TritonSource, found: ProgramScatter, statement: Statement) -> str:
    """A statement's lines, with the number of ids for the number of programs along the axis."""
    text = statement.text
    for node in walk(statement.node):
        call = tl_call(source, node, "num_programs")
        if call is not None and program_axis(call) == found.program.axis:
            text = text.replace(source.code(call), found.total)
    return text


def _code_only(text: str) -> str:
    """A statement's lines without the comments and empty lines above it, which stand at the first copy already."""
    lines = text.splitlines(keepends=True)
    while lines and (not lines[0].strip() or lines[0].lstrip().startswith("#")):
        lines.pop(0)
    return "".join(lines)
