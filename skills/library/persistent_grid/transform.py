"""Put the kernel's body into a loop over tiles, and launch one program per compute unit."""

from __future__ import annotations

from collections.abc import Iterable

import libcst as cst

from sandbox.kernel import Kernel
from sandbox.target import Target
from skills.edit import Edit, add_argument, append_param, apply_edits, replace, tl_name
from skills.facts import Facts
from skills.fold import (
    Body,
    ProgramId,
    body_of,
    dependent,
    grid_elements,
    grid_is_shared,
    grid_locals,
    indented,
    program_ids,
)
from skills.idioms import bound_argument, names_in, tl_call
from skills.skill import Refusal, Site
from skills.triton_source import JitFunction, TritonSource, dotted_name, parse_triton, walk

_TOTAL = "tiles_total"


def find(kernel: Kernel, facts: Facts, target: Target) -> Iterable[Site | Refusal]:
    """One site per kernel with a one-dimensional grid of tiles."""
    source = parse_triton(kernel)
    function = source.functions.get(str(facts["kernel.name"]))
    if function is not None and _edits(source, function) is not None:
        yield Site(source.line(function.node), "one program per compute unit", function.name)


def transform(kernel: Kernel, site: Site, target: Target) -> Kernel | None:
    """Kernel and launches together."""
    source = parse_triton(kernel)
    function = source.functions.get(site.kernel or "")
    edits = _edits(source, function) if function is not None else None
    return apply_edits(kernel, source, edits or [])


def _edits(source: TritonSource, function: JitFunction) -> list[Edit] | None:
    body = body_of(source, function)
    if body is None or any(p.name == _TOTAL for p in function.params) or function.autotune is not None:
        return None
    ids = program_ids(source, body)
    reads = [n for n in walk(function.node.body) if tl_call(source, n, "program_id", "num_programs") is not None]
    if (
        len(ids) != 1
        or len(reads) != 1
        or ids[0].axis != 0
        or any(p.default and not p.constexpr for p in function.params)
    ):
        return None
    edits = [append_param(source, function, _TOTAL), Edit(body.start, body.end, _looped(source, body, ids[0]))]
    for launch in source.launches_of(function.name):
        elements = grid_elements(source, launch)
        device = _device_of(source, function)
        if elements is None or len(elements) != 1 or device is None or any(a.star for a in launch.call.args):
            return None
        given = bound_argument(function, launch, device)
        tensor = dotted_name(given) if given is not None else None
        if tensor is None or grid_is_shared(source, launch) or names_in(elements[0]) & grid_locals(source, launch):
            return None
        units = f"torch.cuda.get_device_properties({tensor}.device).multi_processor_count"
        edits.append(replace(source, elements[0], f"min({source.code(elements[0])}, {units})"))
        edits.append(add_argument(source, launch.call, f"{_TOTAL}={source.code(elements[0])}"))
    return list(dict.fromkeys(edits)) if len(edits) > 2 and "torch" in source.imports else None


def _device_of(source: TritonSource, function: JitFunction) -> str | None:
    """A pointer parameter: the tensor that tells which device the kernel runs on."""
    return next((p.name for p in function.params if "ptr" in p.name.lower()), None)


def _looped(source: TritonSource, body: Body, program: ProgramId) -> str:
    """What no tile changes stays in front; the rest runs once per tile."""
    tl, indent = tl_name(source), body.indent
    varying = dependent(body, {program.name})
    carried = {w for s in body.statements for w in s.writes if sum(w in o.writes for o in body.statements) > 1}
    before, inside = [], []
    for index, statement in enumerate(body.statements):
        fixed = isinstance(statement.node, cst.SimpleStatementLine) and statement.writes and index != program.index
        if fixed and not statement.writes & (varying | carried):
            before.append(statement.text)
        elif index != program.index:
            inside.append(statement.text)
    loop = f"{indent}for {program.name} in range({tl}.program_id(0), {_TOTAL}, {tl}.num_programs(0)):\n"
    return "".join([*before, loop, *(indented(t) for t in inside)])
