"""Knobs: the numbers a launch is tuned by (tile sizes, num_warps, num_stages), where they are written, how to set them.

A tile size often stands in several places: the keyword, the variable behind it, the grid. Setting a knob changes all of
them together or none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

import libcst as cst

from sandbox.kernel import Kernel
from skills.computed import followed, is_scaled, scale_variable
from skills.edit import Edit, add_argument, add_element, apply_edits, replace, set_keyword
from skills.idioms import assignments, bound_argument, operand, program_axis, spread_dicts, tl_call
from skills.literals import int_value, string_value
from skills.skill import Site
from skills.triton_source import (
    Config,
    JitFunction,
    Launch,
    TritonSource,
    argument,
    dict_items,
    dotted_name,
    parse_triton,
    walk,
)

OPTIONS = ("num_warps", "num_stages", "waves_per_eu", "matrix_instr_nonkdim", "kpack")
_OPTION_DEFAULTS = {"num_warps": 4, "num_stages": 2}
"""Triton 3.6 on HIP, where a launch names none."""


@dataclass(frozen=True, slots=True, eq=False)
class Knob:
    """One number of one launch. `value` is None when it is computed; `node` is the literal to replace, if any."""

    name: str
    value: int | None
    node: cst.BaseExpression | None
    variable: str | None = None
    """The host variable that holds it, when it is not written at the launch itself."""
    given: cst.BaseExpression | None = None
    """What the launch gives; None where a default holds."""


def launch_knobs(source: TritonSource, function: JitFunction, launch: Launch) -> dict[str, Knob]:
    """Knobs of a launch that is not autotuned: integer constexprs and options, by name."""
    knobs: dict[str, Knob] = {}
    for name in (*function.constexprs, *OPTIONS):
        given = bound_argument(function, launch, name)
        given = written = given if given is not None else _from_spread(source, launch, name)
        if given is None and name in function.constexprs:
            given = _default_of(function, name)
        if given is not None:
            node, variable = resolve_literal(source, given, launch.host)
            value = int_value(node)
            knobs[name] = Knob(name, value, node if value is not None else None, variable, written)
        elif name in _OPTION_DEFAULTS and not any(a.star == "**" for a in launch.call.args):
            knobs[name] = Knob(name, _OPTION_DEFAULTS[name], None)
    return knobs


def _from_spread(source: TritonSource, launch: Launch, name: str) -> cst.BaseExpression | None:
    for display in spread_dicts(source, launch.call):
        for key, value in dict_items(display):
            if key == name:
                return value
    return None


def _default_of(function: JitFunction, name: str) -> cst.BaseExpression | None:
    for param in (*function.node.params.params, *function.node.params.kwonly_params):
        if param.name.value == name:
            return param.default
    return None


@lru_cache(maxsize=1024)
def resolve_literal(
    source: TritonSource, node: cst.BaseExpression, host: cst.FunctionDef | None
) -> tuple[cst.BaseExpression, str | None]:
    """(literal node, variable) behind an expression: itself, or the only value its variable is ever given."""
    name = dotted_name(node)
    if name is None or int_value(node) is not None:
        return node, None
    scopes: list[cst.CSTNode] = [host.body] if host is not None else []
    found = [v for scope in scopes for v in _values(source, scope, name)]
    if not found and (host is None or name not in {p.name.value for p in host.params.params}):
        found = [
            v for s in source.module.body if isinstance(s, cst.SimpleStatementLine) for v in _values(source, s, name)
        ]
    if not found and "." in name:
        found = list(_class_values(source, name))
    if len(found) == 1:
        return found[0], name
    return node, name


def _class_values(source: TritonSource, name: str) -> Iterator[cst.BaseExpression]:
    """Values of `Class.NAME` in the body of a class of the file."""
    owner, _, attribute = name.rpartition(".")
    for node in source.module.body:
        if isinstance(node, cst.ClassDef) and node.name.value == owner:
            for statement in node.body.body:
                if isinstance(statement, cst.SimpleStatementLine):
                    yield from assignments(source, statement, attribute)


def _values(source: TritonSource, scope: cst.CSTNode, name: str) -> Iterator[cst.BaseExpression]:
    """Values given to a name below a node, tuple assignments taken apart."""
    yield from assignments(source, scope, name)
    for node in walk(scope):
        if not isinstance(node, cst.Assign) or not isinstance(node.value, cst.Tuple):
            continue
        for target in node.targets:
            if isinstance(target.target, cst.Tuple) and len(target.target.elements) == len(node.value.elements):
                for left, right in zip(target.target.elements, node.value.elements, strict=True):
                    if dotted_name(left.value) == name:
                        yield right.value


Setting = int | str
"""What a knob is set to: a number, or for one that is computed an expression of it, such as `max(1, {} // 2)`."""


def set_knobs(source: TritonSource, function: JitFunction, values: Mapping[str, Setting]) -> list[Edit] | None:
    """Edits that give every literal launch of a kernel these values; None when one cannot be set consistently."""
    edits: list[Edit] = []
    launches = source.launches_of(function.name)
    if not launches or function.autotune is not None:
        return None
    tied = grid_tied(source, function)
    for launch in launches:
        place = _Place(source, function, launch, launch_knobs(source, function, launch), tied)
        for name, value in values.items():
            made = _scaled_edits(place, name, value) if isinstance(value, str) else _literal_edits(place, name, value)
            if made is None:
                return None
            edits += made
    return list(dict.fromkeys(edits))


@dataclass(frozen=True, slots=True)
class _Place:
    """One launch and what is known of its knobs."""

    source: TritonSource
    function: JitFunction
    launch: Launch
    knobs: Mapping[str, Knob]
    tied: frozenset[str]


def _literal_edits(place: _Place, name: str, value: int) -> list[Edit] | None:
    """A number at one launch, and in its grid where that is written out there."""
    knob, source = place.knobs.get(name), place.source
    if knob is None or knob.node is None:
        if name not in OPTIONS:
            return None
        given = knob.given if knob is not None else None
        made = replace(source, given, str(value)) if given is not None else None
        return [made if made is not None else set_keyword(source, place.launch.call, name, str(value))]
    edits = [replace(source, knob.node, str(value))]
    if name in place.tied and knob.variable is None:
        grid = _grid_edits(place, knob, value)
        return None if grid is None else edits + grid
    return edits


def _scaled_edits(place: _Place, name: str, template: str) -> list[Edit] | None:
    """An expression of what one launch computes: in the launch, or behind the variable's last assignment where the grid
    or another argument follows it."""
    source, launch, knob = place.source, place.launch, place.knobs.get(name)
    if knob is None or knob.given is None:
        return None
    variable = dotted_name(knob.given)
    if is_scaled(source, launch, knob.given):
        return None
    grid = grid_expression(source, launch)
    by_meta = any(string_value(n) == name for n in walk(grid))
    if name in OPTIONS or not ((name in place.tied and not by_meta) or followed(source, launch, knob.given, OPTIONS)):
        return [replace(source, knob.given, template.format(operand(source, knob.given)))]
    if variable is None or "." in variable:
        return None
    divides = any(dotted_name(n) == variable and _is_divisor(source, n) for n in walk(grid))
    if name in place.tied and not by_meta and not divides:
        return None
    edit = scale_variable(source, launch, variable, template)
    return [edit] if edit is not None else None


def with_knobs(kernel: Kernel, site: Site) -> Kernel | None:
    """The file with the knobs of a site's variant at every launch of its kernel, and in the grid; None where that is
    not possible."""
    source = parse_triton(kernel)
    function = source.functions.get(site.kernel or "")
    edits = set_knobs(source, function, variant_settings(site.variant)) if function is not None else None
    return apply_edits(kernel, source, edits or [])


def _grid_edits(place: _Place, knob: Knob, value: int) -> list[Edit] | None:
    """Edits of the grid for a tile size written as a literal: none when it reads `meta[...]`, else its one literal."""
    source, knobs = place.source, place.knobs
    grid = grid_expression(source, place.launch)
    if any(string_value(n) == knob.name for n in walk(grid)):
        return []
    within: cst.CSTNode = grid
    axis = tied_axes(source, place.function).get(knob.name)
    if isinstance(grid, cst.Tuple) and axis is not None and axis < len(grid.elements):
        within = grid.elements[axis]
    elif sum(1 for name in place.tied if name in knobs and knobs[name].value == knob.value) != 1:
        return None
    literals = [n for n in walk(within) if isinstance(n, cst.Integer) and n.evaluated_value == knob.value]
    divisors = [n for n in literals if _is_divisor(source, n)]
    return [replace(source, divisors[0], str(value))] if len(divisors) == 1 else None


def _is_divisor(source: TritonSource, node: cst.CSTNode) -> bool:
    parent = source.parent(node)
    if isinstance(parent, cst.BinaryOperation) and isinstance(parent.operator, cst.FloorDivide):
        return parent.right is node
    call = source.parent(parent) if isinstance(parent, cst.Arg) else None
    return (
        isinstance(call, cst.Call)
        and (dotted_name(call.func) or "").split(".")[-1] == "cdiv"
        and call.args[-1] is parent
    )


def grid_expression(source: TritonSource, launch: Launch) -> cst.BaseExpression:
    """The grid as written: what the variable in the brackets was assigned, or the expression itself."""
    name = dotted_name(launch.grid)
    if name is not None and launch.host is not None:
        for node in walk(launch.host.body):
            if isinstance(node, cst.FunctionDef) and node.name.value == name:
                returned = [n for n in walk(node.body) if isinstance(n, cst.Return) and n.value is not None]
                if len(returned) == 1 and returned[0].value is not None:
                    return returned[0].value
        found = list(assignments(source, launch.host.body, name))
        if len(found) == 1:
            return found[0]
    return launch.grid


def program_scalars(source: TritonSource, function: JitFunction) -> frozenset[str]:
    """Local names of scalars derived from `tl.program_id`."""
    names: set[str] = set()
    for _ in range(3):
        for node in walk(function.node.body):
            if isinstance(node, cst.Assign):
                parts = list(walk(node.value))
                vector = any(tl_call(source, n, "arange", "load", "zeros", "full") is not None for n in parts)
                derived = any(
                    (isinstance(n, cst.Name) and n.value in names) or tl_call(source, n, "program_id") is not None
                    for n in parts
                )
                if derived and not vector:
                    for target in node.targets:
                        names |= {n.value for n in walk(target.target) if isinstance(n, cst.Name)}
    return frozenset(names)


@lru_cache(maxsize=64)
def grid_tied(source: TritonSource, function: JitFunction) -> frozenset[str]:
    """Constexprs whose value the grid has to agree with: they scale or divide a program id."""
    pids = program_scalars(source, function)
    holders: dict[str, set[str]] = {name: {name} for name in function.constexprs}
    for node in walk(function.node.body):
        if isinstance(node, cst.Assign) and isinstance(node.targets[0].target, cst.Name):
            for name in function.constexprs:
                if any(isinstance(n, cst.Name) and n.value == name for c in _cdivs(node.value) for n in walk(c)):
                    holders[name].add(node.targets[0].target.value)
    tied: set[str] = set()
    for node in walk(function.node.body):
        if isinstance(node, cst.BinaryOperation) and isinstance(
            node.operator, cst.Multiply | cst.FloorDivide | cst.Modulo
        ):
            names = {n.value for n in walk(node) if isinstance(n, cst.Name)}
            direct = any(tl_call(source, n, "program_id") is not None for n in walk(node))
            if direct or names & pids:
                tied |= {name for name, held in holders.items() if held & names}
    return frozenset(tied)


def tied_axes(source: TritonSource, function: JitFunction) -> dict[str, int]:
    """The grid axis whose program id each constexpr scales, where `tl.program_id(AXIS) * NAME` says so."""
    axes: dict[str, int] = {}
    for node in walk(function.node.body):
        if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Multiply):
            for name_side, id_side in ((node.right, node.left), (node.left, node.right)):
                axis = _id_axis(source, function, id_side)
                name = dotted_name(name_side)
                if axis is not None and name in function.constexprs:
                    axes[str(name)] = axis
    return axes


def _id_axis(source: TritonSource, function: JitFunction, node: cst.BaseExpression) -> int | None:
    """The axis of a `tl.program_id(AXIS)`, or of a name that is given nothing else."""
    call = tl_call(source, node, "program_id")
    if call is None and isinstance(node, cst.Name):
        given = list(assignments(source, function.node.body, node.value))
        call = tl_call(source, given[0], "program_id") if len(given) == 1 else None
    return program_axis(call) if call is not None else None


def _cdivs(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    for n in walk(node):
        called = isinstance(n, cst.Call) and (dotted_name(n.func) or "").split(".")[-1] == "cdiv"
        if called or (isinstance(n, cst.BinaryOperation) and isinstance(n.operator, cst.FloorDivide)):
            yield n


def config_values(config: Config) -> dict[str, int | None]:
    """Constants and options of a `triton.Config`; None where they are computed."""
    return {name: int_value(node) for name, node in (*config.constants.items(), *config.options.items())}


def changed_config(source: TritonSource, config: Config, values: Mapping[str, int]) -> str | None:
    """The text of a config with other values; None when one of them is not written as a literal."""
    start, end = source.span(config.call)
    edits: list[Edit] = []
    for name, value in values.items():
        node = config.constants.get(name, config.options.get(name))
        if node is not None:
            if int_value(node) is None:
                return None
            edits.append(replace(source, node, str(value)))
        elif name in ("num_warps", "num_stages"):
            edits.append(add_argument(source, config.call, f"{name}={value}"))
        else:
            display = argument(config.call, "kwargs", 0)
            if display is None or not isinstance(display.value, cst.Dict):
                return None
            edits.append(add_element(source, display.value, f'"{name}": {value}'))
    text = source.data[start:end]
    for edit in sorted(edits, reverse=True):
        text = text[: edit.start - start] + edit.text.encode() + text[edit.end - start :]
    return " ".join(text.decode().split()) if b"\n" in text and b"#" not in text else text.decode()


def extend_configs(source: TritonSource, function: JitFunction, texts: list[str]) -> list[Edit] | None:
    """Append configs to the kernel's autotuner, leaving those it has; None when its list cannot be found."""
    if function.autotune is None or not texts:
        return None
    arg = argument(function.autotune, "configs", 0)
    if arg is None:
        return None
    display = arg.value
    known = " ".join(source.text.split())
    fresh = [t for t in texts if " ".join(t.split()) not in known]
    if not fresh:
        return None
    if isinstance(display, cst.List):
        return _appended(source, display, fresh)
    name = dotted_name(display)
    if name is not None:
        for statement in source.module.body:
            for value in assignments(source, statement, name) if isinstance(statement, cst.SimpleStatementLine) else ():
                if isinstance(value, cst.List):
                    return _appended(source, value, fresh)
    _, end = source.outer_span(display)
    return [Edit(end, end, f" + [{', '.join(fresh)}]")]


def _appended(source: TritonSource, display: cst.List, texts: list[str]) -> list[Edit]:
    first = add_element(source, display, texts[0])
    separator = first.text[: first.text.index(texts[0])] or ", "
    return [Edit(first.start, first.end, first.text + "".join(f"{separator}{t}" for t in texts[1:]))]


def tile_names(
    source: TritonSource, function: JitFunction, known: Mapping[str, object], smallest: int = 2
) -> list[str]:
    """Constexprs that are block sizes: they bound a `tl.arange`, and the launch gives them as powers of two."""
    used: set[str] = set()
    for f in source.callees(function):
        for node in walk(f.node.body):
            call = tl_call(source, node, "arange")
            end = argument(call, "end", 1) if call is not None else None
            if end is not None and isinstance(end.value, cst.Name):
                used.add(end.value.value)
            pointer = tl_call(source, node, "make_block_ptr", "make_tensor_descriptor")
            place = 4 if tl_call(source, node, "make_block_ptr") is not None else 3
            shape = argument(pointer, "block_shape", place) if pointer is not None else None
            used |= {n.value for n in walk(shape.value) if isinstance(n, cst.Name)} if shape is not None else set()
    found = []
    for name in function.constexprs:
        value = known.get(name)
        number = value.value if isinstance(value, Knob) else value
        if name in used and isinstance(number, int) and number >= smallest and number & (number - 1) == 0:
            found.append(name)
    return found


def variant_label(values: Mapping[str, int]) -> str:
    """`BN=64, num_stages=2`: how a report names a variant of knobs."""
    return ", ".join(f"{name}={value}" for name, value in values.items())


def variant_values(variant: Mapping[str, object]) -> dict[str, int]:
    """The knobs of a site's variant."""
    return {name: value for name, value in variant.items() if isinstance(value, int) and not isinstance(value, bool)}


def variant_settings(variant: Mapping[str, object]) -> dict[str, Setting]:
    """The knobs of a site's variant, computed ones included."""
    return {name: value for name, value in variant.items() if isinstance(value, int | str)}
