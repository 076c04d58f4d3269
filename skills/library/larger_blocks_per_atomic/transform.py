"""Raise the block size the grid is divided by, and num_warps with it, where atomics are one per program."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import libcst as cst

from sandbox.kernel import Kernel
from sandbox.target import Target
from skills.facts import Facts
from skills.idioms import assignments, names_in, program_axis, tl_call
from skills.knobs import grid_tied, launch_knobs, set_knobs, tile_names, variant_label, with_knobs
from skills.skill import Refusal, Site
from skills.triton_source import JitFunction, TritonSource, argument, parse_triton, walk
from skills.uniform import Uniformity, every_access_masked

_ATOMICS = ("atomic_add", "atomic_max", "atomic_min", "atomic_or", "atomic_and", "atomic_xor")
_SCANS = ("cumsum", "cumprod", "associative_scan")
_FACTORS = (4, 8)
_LARGEST_BLOCK = 8192
_ELEMENTS_PER_WARP = 512
"""Eight for each of 64 lanes: wide loads, and enough warps to hide their latency."""
_MOST_WARPS = 16


def find(kernel: Kernel, facts: Facts, target: Target) -> Iterable[Site | Refusal]:
    """Four times the block; eight times where a clock can tell, and any where the block is scanned."""
    source = parse_triton(kernel)
    function = source.functions.get(str(facts["kernel.name"]))
    if function is None or not every_access_masked(source, function):
        return
    scanned = any(tl_call(source, n, *_SCANS) is not None for n in walk(function.node.body))
    for factor, values in _choices(source, function):
        if set_knobs(source, function, values) is not None:
            line = source.line(function.node)
            timed = scanned or factor > _FACTORS[0]
            yield Site(line, variant_label(values), function.name, dict(values), needs_timing=timed)


def transform(kernel: Kernel, site: Site, target: Target) -> Kernel | None:
    """Set the knobs at every launch of the kernel, and in the grid."""
    return with_knobs(kernel, site)


def _choices(source: TritonSource, function: JitFunction) -> Iterator[tuple[int, dict[str, int]]]:
    """(factor, knobs) for a kernel with one block size that its grid is divided by and its atomics' addresses are not
    made of."""
    for launch in source.launches_of(function.name)[:1]:
        knobs = launch_knobs(source, function, launch)
        divided = grid_tied(source, function)
        tiles = {n: knobs[n].value or 0 for n in tile_names(source, function, knobs)}
        tied = [n for n in tiles if n in divided and _atomics_per_block(source, function, n)]
        warps = knobs["num_warps"].value if "num_warps" in knobs else None
        if len(tied) != 1 or not warps:
            return
        for factor in _FACTORS:
            elements = math.prod(tiles.values()) * factor
            if elements <= _LARGEST_BLOCK:
                more = max(warps, min(_MOST_WARPS, elements // _ELEMENTS_PER_WARP))
                yield factor, {tied[0]: tiles[tied[0]] * factor, "num_warps": more}


def _atomics_per_block(source: TritonSource, function: JitFunction, name: str) -> bool:
    """Whether the addresses of all atomics are as many, and the same, for a block of another size along this axis; in
    the branch of an `if`, where there is another."""
    uniformity = Uniformity(source, function)
    calls = [c for n in walk(function.node.body) if (c := tl_call(source, n, *_ATOMICS)) is not None]
    chosen = [c for c in calls if not any(isinstance(a, cst.Else) for a in source.ancestors(c))]
    pointers = [p.value for c in chosen if (p := argument(c, "pointer", 0)) is not None]
    scaled = [n for n in walk(function.node.body) if isinstance(n, cst.BinaryOperation) and name in names_in(n)]
    products = [n for n in scaled if isinstance(n.operator, cst.Multiply | cst.FloorDivide | cst.Modulo)]
    programs = {axis for n in products for axis in _made_of(source, function, n)[1]}
    for pointer in pointers:
        names, axes = _made_of(source, function, pointer)
        if axes & programs or not (name not in names or uniformity.is_scalar(pointer)):
            return False
    return 0 < len(pointers) == len(chosen)


def _made_of(source: TritonSource, function: JitFunction, node: cst.BaseExpression) -> tuple[set[str], set[int | None]]:
    """The names that an expression is computed from, and the grid axes whose program ids it is."""
    names: set[str] = set()
    axes: set[int | None] = set()
    queue: list[cst.BaseExpression] = [node]
    while queue:
        current = queue.pop()
        for call in (c for n in walk(current) if (c := tl_call(source, n, "program_id")) is not None):
            axes.add(program_axis(call))
        for name in names_in(current) - names:
            names.add(name)
            queue += assignments(source, function.node.body, name)
    return names, axes
