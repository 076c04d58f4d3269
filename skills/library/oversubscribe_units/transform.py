"""`sms = properties.multi_processor_count` behind a grid becomes two or four times that."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import libcst as cst

from sandbox.kernel import Kernel
from sandbox.target import Target
from skills.edit import apply_edits, replace
from skills.facts import Facts
from skills.idioms import ATOMICS, assigned, names_in, tl_call
from skills.knobs import grid_expression
from skills.literals import string_value
from skills.skill import Refusal, Site
from skills.triton_source import JitFunction, Launch, TritonSource, dotted_name, parse_triton, walk

_COUNTS = ("multi_processor_count", "multiprocessor_count")
_FACTORS = (2, 4, 8)
_WAITS = ("debug_barrier", *ATOMICS)


def find(kernel: Kernel, facts: Facts, target: Target) -> Iterable[Site | Refusal]:
    """Two programs for each that the author took, then four and eight."""
    source = parse_triton(kernel)
    function = source.functions.get(str(facts["kernel.name"]))
    if function is None or _waits(source, function):
        return
    counts = list(_counts(source, function))
    for factor in _FACTORS if counts else ():
        yield Site(source.line(counts[0]), f"{factor} times the programs", function.name, {"factor": factor})


def transform(kernel: Kernel, site: Site, target: Target) -> Kernel | None:
    """The device's number of units multiplied where the host reads it."""
    source = parse_triton(kernel)
    function = source.functions.get(site.kernel or "")
    counts = _counts(source, function) if function is not None else ()
    return apply_edits(
        kernel, source, [replace(source, c, f"{site.variant['factor']} * {source.code(c)}") for c in counts]
    )


def _waits(source: TritonSource, function: JitFunction) -> bool:
    """Whether programs may wait for each other, for which all of them must be resident at once."""
    nodes = [n for f in source.callees(function) for n in walk(f.node.body)]
    return any(isinstance(n, cst.While) or tl_call(source, n, *_WAITS) is not None for n in nodes)


def _counts(source: TritonSource, function: JitFunction) -> Iterator[cst.BaseExpression]:
    """Where the hosts of a kernel's launches read the number of units that their grids follow; none that is scaled
    by a literal before anything else."""
    found: list[cst.CSTNode] = []
    for launch in source.launches_of(function.name):
        behind = _behind_grid(source, launch)
        for node in walk(launch.host.body) if launch.host is not None else ():
            targets, value = assigned(node)
            if value is not None and any(dotted_name(t) in behind for t in targets):
                found += [n for n in walk(value) if _is_count(n)]
        found += [n for n in walk(grid_expression(source, launch)) if _is_count(n)]
    for node in dict.fromkeys(found):
        parent = source.parent(node)
        scaled = isinstance(parent, cst.BinaryOperation) and isinstance(parent.left, cst.Integer)
        if isinstance(node, cst.BaseExpression) and not scaled:
            yield node


def _behind_grid(source: TritonSource, launch: Launch) -> set[str]:
    """Host variables that a launch's grid is computed from."""
    names = names_in(grid_expression(source, launch))
    before = -1
    while launch.host is not None and len(names) != before:
        before = len(names)
        for node in walk(launch.host.body):
            targets, value = assigned(node)
            if value is not None and any(dotted_name(t) in names for t in targets):
                names |= names_in(value)
    return names


def _is_count(node: cst.CSTNode) -> bool:
    """Whether an expression reads the number of units, as an attribute or as an item of the device's properties."""
    if isinstance(node, cst.Attribute):
        return node.attr.value in _COUNTS
    if not isinstance(node, cst.Subscript) or len(node.slice) != 1 or not isinstance(node.slice[0].slice, cst.Index):
        return False
    return string_value(node.slice[0].slice.value) in _COUNTS
