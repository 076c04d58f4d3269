"""`num_warps` from the block's size at every launch that could have more lanes than elements."""

from __future__ import annotations

from collections.abc import Iterable

import libcst as cst

from sandbox.kernel import Kernel
from sandbox.target import Target
from skills.edit import Edit, apply_edits, set_keyword
from skills.facts import Facts
from skills.idioms import bound_argument, tl_call
from skills.knobs import resolve_literal
from skills.literals import int_value
from skills.skill import Refusal, Site
from skills.triton_source import JitFunction, Launch, TritonSource, argument, parse_triton, walk

_DEFAULT_WARPS = 4


def find(kernel: Kernel, facts: Facts, target: Target) -> Iterable[Site | Refusal]:
    """One site per kernel, where every launch says how large its blocks are."""
    source = parse_triton(kernel)
    function = source.functions.get(str(facts["kernel.name"]))
    if function is not None and _edits(source, function, target):
        yield Site(source.line(function.node), "a warp per 64 elements", function.name)


def transform(kernel: Kernel, site: Site, target: Target) -> Kernel | None:
    """All launches of the kernel."""
    source = parse_triton(kernel)
    function = source.functions.get(site.kernel or "")
    return apply_edits(kernel, source, _edits(source, function, target) if function is not None else [])


def _edits(source: TritonSource, function: JitFunction, target: Target) -> list[Edit]:
    blocks = _block_names(source, function)
    edits = []
    for launch in source.launches_of(function.name):
        sizes = [bound_argument(function, launch, name) for name in blocks]
        if not sizes or any(size is None for size in sizes) or any(a.star for a in launch.call.args):
            return []
        warps = _warps(source, launch, [s for s in sizes if s is not None], target.wavefront_size)
        if warps is not None:
            edits.append(set_keyword(source, launch.call, "num_warps", warps))
    return edits


def _block_names(source: TritonSource, function: JitFunction) -> list[str]:
    """Constexprs that bound a `tl.arange`; none where another bound is written out."""
    used: set[str] = set()
    for f in source.callees(function):
        for node in walk(f.node.body):
            call = tl_call(source, node, "arange")
            end = argument(call, "end", 1) if call is not None else None
            if end is not None:
                used |= {source.code(end.value)}
    return [name for name in function.constexprs if name in used] if used <= set(function.constexprs) else []


def _warps(source: TritonSource, launch: Launch, sizes: list[cst.BaseExpression], lanes: int) -> str | None:
    """The new value as text; None where the launch has no more warps than that, or chooses by the block already."""
    given = launch.keyword("num_warps")
    now = source.code(given.value) if given is not None else str(_DEFAULT_WARPS)
    known = [int_value(resolve_literal(source, size, launch.host)[0]) for size in sizes]
    if all(size is not None for size in known):
        elements = 1
        for size in known:
            elements *= size or 1
        literal = int_value(given.value) if given is not None else _DEFAULT_WARPS
        warps = max(1, elements // lanes)
        return str(warps) if literal is not None and warps < literal else None
    if f"// {lanes}" in now:
        return None
    product = " * ".join(_operand(source, size) for size in sizes)
    return f"max(1, min({now}, {product} // {lanes}))"


def _operand(source: TritonSource, size: cst.BaseExpression) -> str:
    text = source.code(size)
    return text if isinstance(size, cst.Name | cst.Attribute | cst.Integer | cst.Call) else f"({text})"
