"""Fold the index axis of the grid into runs, and send an atomic only where the row changes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import libcst as cst

from sandbox.kernel import Kernel
from sandbox.target import Target
from skills.edit import Edit, add_argument, append_param, apply_edits, tl_name
from skills.facts import Facts
from skills.fold import (
    Body,
    ProgramId,
    body_of,
    closure,
    dependent,
    divided,
    grid_elements,
    indented,
    program_ids,
    unused,
)
from skills.idioms import names_in, tl_call
from skills.skill import Refusal, Site
from skills.triton_source import JitFunction, TritonSource, argument, parse_triton, walk
from skills.uniform import Uniformity

_RUN = 16
_FLOATS = ("float", "fp", "bf16", "bfloat")


@dataclass(frozen=True, slots=True, eq=False)
class _Scatter:
    """One atomic addition whose row is loaded for each id of an axis."""

    body: Body
    program: ProgramId
    index: int
    key: str
    pointer: str
    value: str
    rest: str
    """`mask=...`, `sem=...` as written, each with a comma before it."""
    function: str
    varying: frozenset[str]


def find(kernel: Kernel, facts: Facts, target: Target) -> Iterable[Site | Refusal]:
    """One site per kernel with such a scatter, for floating-point values."""
    source = parse_triton(kernel)
    function = source.functions.get(str(facts["kernel.name"]))
    dtypes = facts.names("launch.arg_dtypes")
    if function is None or (dtypes and not any(d.startswith(_FLOATS) for d in dtypes)):
        return
    scatter = next(_scatters(source, function), None)
    if scatter is not None and _host_edits(source, function, scatter) is not None:
        line = source.line(scatter.body.statements[scatter.index].node)
        yield Site(line, f"runs of {_RUN}", function.name)


def transform(kernel: Kernel, site: Site, target: Target) -> Kernel | None:
    """The first id peeled, the others in a loop; the grid divided; the number of ids passed along."""
    source = parse_triton(kernel)
    function = source.functions.get(site.kernel or "")
    scatter = next(_scatters(source, function), None) if function is not None else None
    host = _host_edits(source, function, scatter) if function is not None and scatter is not None else None
    if function is None or scatter is None or host is None:
        return None
    total = _total_name(scatter)
    edits = [append_param(source, function, total), *host]
    edits.append(Edit(scatter.body.start, scatter.body.end, _folded(source, function, scatter, total)))
    return apply_edits(kernel, source, edits)


def _total_name(scatter: _Scatter) -> str:
    return f"{scatter.program.name}_total"


def _scatters(source: TritonSource, function: JitFunction) -> Iterator[_Scatter]:
    body = body_of(source, function)
    if body is None or any(p.name.endswith("_total") for p in function.params):
        return
    atomics = [i for i, s in enumerate(body.statements) if _has_atomic(source, s.node)]
    for program in program_ids(source, body) if len(atomics) == 1 else ():
        if f"{program.name}_total" in {n for s in body.statements for n in (*s.reads, *s.writes)}:
            continue
        found = _scatter(source, function, body, program, atomics[0])
        if found is not None:
            yield found


def _has_atomic(source: TritonSource, node: cst.CSTNode) -> bool:
    kinds = ("atomic_add", "atomic_max", "atomic_min", "atomic_cas", "atomic_xchg", "atomic_and", "atomic_or")
    return any(tl_call(source, n, *kinds) is not None for n in walk(node))


def _scatter(
    source: TritonSource, function: JitFunction, body: Body, program: ProgramId, index: int
) -> _Scatter | None:
    node = body.statements[index].node
    small = node.body[0] if isinstance(node, cst.SimpleStatementLine) else None
    call = tl_call(source, small.value, "atomic_add") if isinstance(small, cst.Expr) else None
    if call is None:
        return None
    pointer, value, mask = argument(call, "pointer", 0), argument(call, "val", 1), argument(call, "mask", 2)
    varying = dependent(body, {program.name})
    if pointer is None or value is None or (mask is not None and names_in(mask.value) & varying):
        return None
    key = _key(source, function, body, varying & closure(body, names_in(pointer.value)))
    if key is None or not names_in(value.value) & varying:
        return None
    if names_in(pointer.value) & dependent(body, {program.name}, frozenset({key})):
        return None
    rest = "".join(f", mask={source.code(a.value)}" for a in (mask,) if a is not None)
    rest += "".join(
        f", {a.keyword.value}={source.code(a.value)}"
        for a in call.args
        if a.keyword is not None and a.keyword.value in ("sem", "scope")
    )
    return _Scatter(
        body=body,
        program=program,
        index=index,
        key=key,
        pointer=source.code(pointer.value),
        value=source.code(value.value),
        rest=rest,
        function=source.code(call.func),
        varying=varying,
    )


def _key(source: TritonSource, function: JitFunction, body: Body, names: frozenset[str]) -> str | None:
    """The one scalar that is loaded for each id and decides the address."""
    uniform = Uniformity(source, function)
    loaded: list[str] = []
    for statement in body.statements:
        small = statement.node.body[0] if isinstance(statement.node, cst.SimpleStatementLine) else None
        single = isinstance(small, cst.Assign) and bool(statement.writes & names) and len(statement.writes) == 1
        if not single or not isinstance(small, cst.Assign) or tl_call(source, small.value, "load") is None:
            continue
        if not uniform.is_block(small.value):
            loaded += statement.writes
    return loaded[0] if len(loaded) == 1 else None


def _folded(source: TritonSource, function: JitFunction, scatter: _Scatter, total: str) -> str:
    indent, program, tl = scatter.body.indent, scatter.program, tl_name(source)
    wanted = (f"first_{program.name}", "member", f"run_{scatter.key}", "run_ptrs", "run_sum")
    first, member, run_key, run_ptrs, run_sum = unused(source, function, *wanted)
    before: list[str] = []
    inside: list[str] = []
    for index, statement in enumerate(scatter.body.statements):
        if index in (scatter.index, program.index):
            continue
        varies = bool(
            statement.writes & scatter.varying or (statement.reads & scatter.varying and not statement.writes)
        )
        (inside if varies else before).append(statement.text)
    value = scatter.value if re.fullmatch(r"[\w.]+(\([^()]*\))?", scatter.value) else f"({scatter.value})"
    start = [f"{run_key} = {scatter.key}", f"{run_ptrs} = {scatter.pointer}", f"{run_sum} = {value}.to({tl}.float32)"]
    send = f"{scatter.function}({run_ptrs}, {run_sum}{scatter.rest})"
    one, two, three = indent + "    ", indent + "        ", indent + "            "
    lines = [f"{indent}{first} = {tl}.program_id({program.axis}) * {_RUN}\n", *before]
    lines += [f"{indent}{program.name} = {first}\n", *inside, *(f"{indent}{s}\n" for s in start)]
    lines += [f"{indent}for {member} in range(1, {_RUN}):\n", f"{one}{program.name} = {first} + {member}\n"]
    lines += [f"{one}if {program.name} < {total}:\n", *(indented(indented(_code_only(t))) for t in inside)]
    lines += [f"{two}if {scatter.key} == {run_key}:\n", f"{three}{run_sum} += {value}.to({tl}.float32)\n"]
    lines += [f"{two}else:\n", f"{three}{send}\n", *(f"{three}{s}\n" for s in start)]
    lines.append(f"{indent}{send}\n")
    return "".join(lines)


def _code_only(text: str) -> str:
    """A statement's lines without the comments and empty lines above it, which stand at the first copy already."""
    lines = text.splitlines(keepends=True)
    while lines and (not lines[0].strip() or lines[0].lstrip().startswith("#")):
        lines.pop(0)
    return "".join(lines)


def _host_edits(source: TritonSource, function: JitFunction, scatter: _Scatter) -> list[Edit] | None:
    edits: list[Edit] = []
    for launch in source.launches_of(function.name):
        elements = grid_elements(source, launch)
        if elements is None or scatter.program.axis >= len(elements):
            return None
        element = elements[scatter.program.axis]
        if "meta" in names_in(element) or any(a.star for a in launch.call.args):
            return None
        edits.append(divided(source, element, str(_RUN), rounded_up=True))
        edits.append(add_argument(source, launch.call, f"{_total_name(scatter)}={source.code(element)}"))
    return list(dict.fromkeys(edits)) or None
