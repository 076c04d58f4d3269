"""A tile of rows where a program handled one: the kernel's body, its parameters, the grid and arguments of launches."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import libcst as cst

from sandbox.kernel import Kernel
from sandbox.target import Target
from skills.edit import Edit, add_argument, add_constexpr_param, apply_edits, insert_before, replace
from skills.facts import Facts
from skills.fold import body_of, grid_elements, host_text, unused
from skills.idioms import assignments, base_param, names_in, program_axis, taken_names, tl_call
from skills.knobs import grid_expression, launch_knobs, resolve_literal
from skills.literals import int_value
from skills.names import fresh_name
from skills.row_ranks import Names, Packed, pack
from skills.skill import Refusal, Site
from skills.triton_source import JitFunction, Launch, TritonSource, dotted_name, parse_triton, walk

_DEFAULT_WARPS = 4
_ACCESS_BYTES = 16
"""The widest access of a lane."""
_MOST_ELEMENTS = 2048
_PROGRAMS_PER_UNIT = 4
"""A grid that keeps this many programs for each compute unit is not starved by larger ones."""
_UNKNOWN_SIZE = 1024
"""Stands for a size that no launch was seen with, where strides are compared."""


def find(kernel: Kernel, facts: Facts, target: Target) -> Iterable[Site | Refusal]:
    """As many rows as fill the lanes with wide accesses; where that starves the grid, as fill the lanes at all, and the
    wide form for a clock to rank."""
    source = parse_triton(kernel)
    function = source.functions.get(str(facts["kernel.name"]))
    packed = _best_axis(source, function, facts) if function is not None else None
    columns = facts.number("block_elements")
    if function is None or packed is None or not columns:
        return
    lanes = int(facts.number("launch.num_warps") or _DEFAULT_WARPS) * target.wavefront_size
    wide = max(lanes, min(_MOST_ELEMENTS, lanes * _ACCESS_BYTES // _element_bytes(source, function, packed, facts)))
    programs = facts.number("launch.grid_programs")
    fits = wide
    while fits > lanes and (packed.loops or programs is None or _starved(programs, columns, fits, target)):
        fits //= 2
    for elements in dict.fromkeys((fits, wide)):
        variant = {"axis": packed.axis, "elements": elements}
        site = Site(
            source.line(function.node),
            f"{elements} elements per program",
            function.name,
            variant,
            needs_timing=elements > fits,
        )
        if elements >= 2 * columns and _edits(source, function, site) is not None:
            yield site


def transform(kernel: Kernel, site: Site, target: Target) -> Kernel | None:
    """Kernel and launches together."""
    source = parse_triton(kernel)
    function = source.functions.get(site.kernel or "")
    edits = _edits(source, function, site) if function is not None else None
    return apply_edits(kernel, source, edits or [])


def _starved(programs: float, columns: float, elements: int, target: Target) -> bool:
    return programs * columns / elements < _PROGRAMS_PER_UNIT * target.board.compute_units


def _names(source: TritonSource, function: JitFunction) -> Names:
    return Names(*unused(source, function, "ROWS", "n_rows", "rows", "in_rows"))


def _axes(source: TritonSource, function: JitFunction) -> Iterator[Packed]:
    """Every axis of the grid whose programs can be taken several at a time."""
    if body_of(source, function) is None or function.heuristics is not None:
        return
    for axis in range(3):
        packed = pack(source, function, axis, _names(source, function))
        if isinstance(packed, Packed):
            yield packed


def _best_axis(source: TritonSource, function: JitFunction, facts: Facts) -> Packed | None:
    """The axis whose neighbouring programs touch neighbouring memory."""
    sizes = _sizes(source, function, facts)
    return min(_axes(source, function), key=lambda p: _stride(source, function, p, sizes), default=None)


def _sizes(source: TritonSource, function: JitFunction, facts: Facts) -> dict[str, int]:
    """Integer parameters as launches were seen to give them; pointers are 0."""
    sizes = {p.name: _UNKNOWN_SIZE for p in function.params}
    for launch in source.launches_of(function.name):
        sizes |= {n: k.value for n, k in launch_knobs(source, function, launch).items() if k.value is not None}
    for pair in facts.names("launch.integers"):
        name, _, value = pair.partition("=")
        sizes[name] = int(value)
    for pair in facts.names("launch.pointer_dtypes"):
        sizes[pair.partition("=")[0]] = 0
    return sizes


def _stride(source: TritonSource, function: JitFunction, packed: Packed, sizes: Mapping[str, int]) -> int:
    """How far apart two neighbours of the axis are at most, in elements of the tiles they access."""

    def at(tile: cst.BaseExpression, index: int) -> int:
        return _value(source, function, tile, {**sizes, _axis_key(packed.axis): index})

    return max(abs(at(tile, 1) - at(tile, 0)) for tile in packed.tiles)


def _axis_key(axis: int) -> str:
    return f"program_id({axis})"


def _value(source: TritonSource, function: JitFunction, node: cst.BaseExpression, sizes: Mapping[str, int]) -> int:
    """An address from the sizes known; every id, column and loaded value that is not among them is 0."""
    if isinstance(node, cst.Name):
        given = list(assignments(source, function.node.body, node.value))
        if not given or node.value in sizes:
            return sizes.get(node.value, 0)
        return _value(source, function, given[0], {**sizes, node.value: 0})
    if isinstance(node, cst.BinaryOperation):
        left, right = (_value(source, function, side, sizes) for side in (node.left, node.right))
        operator = node.operator
        if isinstance(operator, cst.Add | cst.Subtract):
            return left + right if isinstance(operator, cst.Add) else left - right
        if isinstance(operator, cst.Multiply):
            return left * right
        if isinstance(operator, cst.FloorDivide | cst.Modulo) and right:
            return left // right if isinstance(operator, cst.FloorDivide) else left % right
        return 0
    program = tl_call(source, node, "program_id")
    if program is not None:
        number = program_axis(program)
        return sizes.get(_axis_key(number), 0) if number is not None else 0
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value == "to":
        return _value(source, function, node.func.value, sizes)
    return int_value(node) or 0


def _element_bytes(source: TritonSource, function: JitFunction, packed: Packed, facts: Facts) -> int:
    """The smallest element among the tiles, bytes; four where no launch was seen."""
    dtypes = dict(pair.split("=", 1) for pair in facts.names("launch.pointer_dtypes"))
    bases = {base_param(source, function, tile) for tile in packed.tiles}
    found = [_bytes_of(dtypes[b]) for b in bases if b is not None and b in dtypes]
    return min(found, default=4)


def _bytes_of(dtype: str) -> int:
    bits = re.search(r"\d+", dtype)
    return max(1, int(bits[0]) // 8) if bits else 1


@dataclass(frozen=True, slots=True)
class _Share:
    """Rows of a program as a launch writes them: a number, or a host variable and the value it is given."""

    text: str
    value: cst.BaseExpression | None


def _edits(source: TritonSource, function: JitFunction, site: Site) -> list[Edit] | None:
    names = _names(source, function)
    axis, elements = int(site.variant["axis"]), int(site.variant["elements"])
    packed = pack(source, function, axis, names)
    launches = source.launches_of(function.name)
    if not isinstance(packed, Packed) or not launches or "triton" not in source.imports:
        return None
    # Another jit function that calls this one would have to give what the launches give.
    others = (f for f in source.functions.values() if f is not function)
    if function.autotune is not None or any(function in source.callees(f) for f in others):
        return None
    if function.name in source.sharing:
        return None
    edits = [*packed.edits, _param_edit(source, function, names)]
    for launch in launches:
        host = _launch_edits(source, function, launch, packed, names, elements)
        if host is None:
            return None
        edits += host
    return list(dict.fromkeys(edits))


def _param_edit(source: TritonSource, function: JitFunction, names: Names) -> Edit:
    """`n_rows` and `ROWS` behind the parameters that are there; launches give both by keyword."""
    constant = add_constexpr_param(source, function, {names.rows: 1})
    joint = constant.text[: constant.text.index(names.rows)]
    params = [*function.node.params.params, *function.node.params.kwonly_params]
    zero = "=0" if any(p.default is not None for p in params) else ""
    text = constant.text if zero else constant.text.replace(" = 1", "")
    return Edit(constant.start, constant.end, f"{joint}{names.extent}{zero}{text}")


def _launch_edits(
    source: TritonSource, function: JitFunction, launch: Launch, packed: Packed, names: Names, elements: int
) -> list[Edit] | None:
    """The grid divided and both arguments given; None where the grid or the width of a row is not in sight."""
    grid = grid_elements(source, launch)
    if grid is None or packed.axis >= len(grid) or any(a.star for a in launch.call.args):
        return None
    written = grid_expression(source, launch)
    meta = {p.name.value for p in written.params.params} if isinstance(written, cst.Lambda) else set()
    if any(names_in(e) & meta for e in grid) or any(isinstance(n, cst.NamedExpr) for n in walk(written)):
        return None
    axis = grid[packed.axis]
    if _of_blocks(source, launch, axis):
        return None
    extent = source.code(axis)
    several = any(int_value(e) != 1 for e in grid if e is not axis)
    share = _share(source, function, launch, packed, elements, extent if several else None)
    if share is None or (dotted_name(launch.grid) is not None and not _settled(source, launch, axis, axis)):
        return None
    divided = f"triton.cdiv({extent}, {share.text})"
    in_place = _own_grid(source, launch) and (share.value is None or _settled(source, launch, axis, share.value))
    edits = [add_argument(source, launch.call, f"{names.extent}={extent}, {names.rows}={share.text}")]
    if in_place:
        edits.append(replace(source, axis, divided))
    else:
        others = [divided if e is axis else source.code(e) for e in grid]
        edits.append(replace(source, launch.grid, f"({', '.join(others)}{',' if len(others) == 1 else ''})"))
    if share.value is not None:
        line = f"{share.text} = {_text_of(share.value)}"
        edits.append(insert_before(source, axis if in_place else launch.call, [line]))
    return edits


def _of_blocks(source: TritonSource, launch: Launch, extent: cst.BaseExpression) -> bool:
    """Whether an axis of the grid was divided: its programs take blocks already, whose size is there to be raised."""
    written = resolve_literal(source, extent, launch.host)[0]
    divisions = (n for n in walk(written) if isinstance(n, cst.BinaryOperation | cst.Call))
    return any(
        isinstance(n.operator, cst.FloorDivide | cst.Divide)
        if isinstance(n, cst.BinaryOperation)
        else (dotted_name(n.func) or "").split(".")[-1] == "cdiv"
        for n in divisions
    )


def _text_of(node: cst.BaseExpression) -> str:
    """The text of an expression that is not in the file yet."""
    return cst.Module([]).code_for_node(node)


def _share(
    source: TritonSource, function: JitFunction, launch: Launch, packed: Packed, elements: int, extent: str | None
) -> _Share | None:
    """Rows of a program; of an axis that is one of several no more than it has."""
    knob = launch_knobs(source, function, launch).get(packed.block)
    known = knob.value if knob is not None else int_value(cst.parse_expression(packed.block))
    block = host_text(source, function, launch, packed.block) if known is None else None
    if known is None and block is None:
        return None
    text = str(max(1, elements // known)) if known is not None else f"max(1, {elements} // {block})"
    if extent is not None and text != "1":
        text = f"min({text}, triton.next_power_of_2({extent}))"
    if text.isdigit():
        return _Share(text, None)
    scope = launch.host if launch.host is not None else source.module
    variable = fresh_name("rows_per_program", taken_names(scope))
    return _Share(variable, cst.parse_expression(text))


def _own_grid(source: TritonSource, launch: Launch) -> bool:
    """Whether the grid can be edited where it is written: nothing else reads it."""
    name = dotted_name(launch.grid)
    if name is None or launch.host is None:
        return name is None
    return sum(isinstance(n, cst.Name) and n.value == name for n in walk(launch.host.body)) == 2


def _settled(source: TritonSource, launch: Launch, place: cst.CSTNode, expression: cst.BaseExpression) -> bool:
    """Whether what an expression names keeps its value from a place in the host's code up to the launch."""
    at = source.span(place)[0]
    scope = launch.host.body if launch.host is not None else source.module
    return not any(
        isinstance(n, cst.Name) and n.value in names_in(expression) and source.span(n)[0] > at
        for node in walk(scope)
        if isinstance(node, cst.AssignTarget | cst.AugAssign | cst.AnnAssign | cst.For)
        for n in walk(node.target)
    )
