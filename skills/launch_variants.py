"""Launch numbers to try first for kernels without a matrix product: tile sizes and num_warps that belong together.

A lane should hold about 32 bytes of the largest block (two accesses of 16), a workgroup have a few hundred lanes, and
the grid more programs than the device has compute units. This orders candidates; what they are worth a clock tells.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations

import libcst as cst

from sandbox.target import Target
from skills.facts import Facts
from skills.idioms import assigned, names_in, tl_call
from skills.knobs import grid_tied, tile_names
from skills.triton_source import JitFunction, TritonSource, argument, dotted_name, walk

_LANE_BYTES = 32
_LANES = 256
_PROGRAMS_PER_UNIT = 2
_MOST_ELEMENTS_PER_LANE = 128
_SMALLEST = 16
"""Tiles are not shrunk below this."""
_ALIKE = 2
"""Candidates of one tile, which differ in num_warps alone."""
_MASK_POSITION = {"load": 1, "store": 2}


@dataclass(frozen=True, slots=True)
class LaunchSizes:
    """What a launch works on. `extents` bounds tiles that step through a known length; `tied` ones divide the grid."""

    tiles: Mapping[str, int]
    movable: tuple[str, ...]
    may_grow: frozenset[str]
    tied: frozenset[str]
    extents: Mapping[str, int]
    elements: int
    element_bytes: int
    programs: float | None
    warps: int


def launch_sizes(source: TritonSource, function: JitFunction, current: Mapping[str, int], facts: Facts) -> LaunchSizes:
    """`current` holds the launch's numbers by name; what was recorded of it comes from `facts`."""
    names = tile_names(source, function, current, smallest=1)
    tied = grid_tied(source, function) & set(names)
    steps = loop_steps(source, function, names)
    product = math.prod(current[n] for n in names)
    widths = [bits for pair in facts.names("launch.pointer_dtypes") for bits in re.findall(r"=\D+(\d+)", pair)]
    sizes = {**facts.largest("launch.constants"), **facts.largest("launch.integers"), **current}
    return LaunchSizes(
        tiles={n: current[n] for n in names},
        movable=tuple(n for n in names if n in tied or n in steps),
        may_grow=frozenset(bounded_tiles(source, function, names)),
        tied=frozenset(tied),
        extents={n: sizes[end] for n, end in steps.items() if end in sizes and n not in tied},
        elements=max(1, int(facts.number("block_elements") or product)),
        element_bytes=max(1, min((int(w) // 8 for w in widths), default=4)),
        programs=facts.number("launch.grid_programs"),
        warps=current.get("num_warps", 4),
    )


def first_variants(sizes: LaunchSizes, target: Target, most: int) -> list[dict[str, int]]:
    """The `most` changes of tiles and num_warps that suit the launch best, best first; none is the launch itself."""
    ranked: list[tuple[float, int, dict[str, int]]] = []
    for factors in _tile_factors(sizes):
        for warps in dict.fromkeys(
            w for w in (sizes.warps * f // 4 for f in (4, 2, 8, 1, 16)) if 1 <= w <= target.most_warps
        ):
            values = {name: int(sizes.tiles[name] * factor) for name, factor in factors.items()}
            if warps != sizes.warps:
                values["num_warps"] = warps
            cost = _cost(sizes, factors, warps, target)
            if values and cost is not None:
                ranked.append((cost, len(ranked), values))
    found: list[dict[str, int]] = []
    alike: Counter[tuple[tuple[str, int], ...]] = Counter()
    for _, _, values in sorted(ranked, key=lambda r: r[:2]):
        tile = tuple((n, v) for n, v in values.items() if n != "num_warps")
        alike[tile] += 1
        if alike[tile] <= _ALIKE or not sizes.movable:
            found.append(values)
    return found[:most]


def _tile_factors(sizes: LaunchSizes) -> Iterator[dict[str, float]]:
    """No tile, one tile, and two tiles together."""
    yield {}
    for name in sizes.movable:
        yield from ({name: f} for f in (2.0, 0.5, 4.0, 0.25, 8.0) if _allowed(sizes, name, f))
    for first, second in combinations(sizes.movable, 2):
        for f, g in ((2.0, 2.0), (0.5, 0.5), (2.0, 0.5), (0.5, 2.0), (4.0, 0.5), (0.5, 4.0), (4.0, 2.0), (2.0, 4.0)):
            if _allowed(sizes, first, f) and _allowed(sizes, second, g):
                yield {first: f, second: g}


def _allowed(sizes: LaunchSizes, name: str, factor: float) -> bool:
    size = sizes.tiles[name] * factor
    if factor < 1:
        return size >= _SMALLEST
    return name in sizes.may_grow and size < 2 * sizes.extents.get(name, 2**16)


def _cost(sizes: LaunchSizes, factors: Mapping[str, float], warps: int, target: Target) -> float | None:
    """Octaves away from what lanes, workgroup and grid should be, and from what the author chose."""
    lanes = warps * target.wavefront_size
    per_lane = sizes.elements * math.prod(factors.values()) / lanes
    if per_lane > _MOST_ELEMENTS_PER_LANE:
        return None
    off = math.log2(per_lane * sizes.element_bytes / _LANE_BYTES)
    cost = off if off > 0 else -off / 2
    cost += abs(math.log2(lanes / _LANES)) / 4
    cost += (sum(abs(math.log2(f)) for f in factors.values()) + abs(math.log2(warps / sizes.warps))) / 4
    if sizes.programs is not None:
        fewer = math.prod(f for n, f in factors.items() if n in sizes.tied)
        short = math.log2(_PROGRAMS_PER_UNIT * target.board.compute_units * fewer / sizes.programs)
        if short > 0 and fewer > 1:
            return None
        cost += max(0.0, short) / 2
    return cost


def loop_steps(source: TritonSource, function: JitFunction, tiles: list[str]) -> dict[str, str | None]:
    """Tiles that are the step of a loop, each with the name of the loop's end where that is one."""
    steps: dict[str, str | None] = {}
    for node in walk(function.node.body):
        if isinstance(node, cst.For):
            ends = [a.value for a in node.iter.args[1:2]] if isinstance(node.iter, cst.Call) else []
            end = dotted_name(ends[0]) if ends else None
            steps |= {name: end for name in tiles if name in names_in(node.iter)}
    return steps


def bounded_tiles(source: TritonSource, function: JitFunction, tiles: list[str]) -> set[str]:
    """Tiles whose every access is masked along them, so that a larger one cannot run past an end."""
    calls = [c for f in source.callees(function) for c in walk(f.node.body)]
    if any(tl_call(source, c, "make_block_ptr", "make_tensor_descriptor") is not None for c in calls):
        return set()
    own = set(walk(function.node.body))
    if any(tl_call(source, c, "load", "store") is not None for c in calls if c not in own):
        return set()
    return {tile for tile in tiles if _bounded(source, function, tile)}


def _bounded(source: TritonSource, function: JitFunction, tile: str) -> bool:
    along = _names_along(source, function, tile)
    for node in walk(function.node.body):
        if not isinstance(node, cst.Call):
            continue
        name = (source.qualified(node.func) or "").rpartition(".")[2]
        if tl_call(source, node, "load", "store") is None and not name.startswith("atomic_"):
            continue
        pointer, mask = argument(node, "pointer", 0), argument(node, "mask", _MASK_POSITION.get(name, 2))
        masked = mask is not None and _along(source, mask.value, tile, along)
        if not masked and pointer is not None and _along(source, pointer.value, tile, along):
            return False
    return True


def _names_along(source: TritonSource, function: JitFunction, tile: str) -> set[str]:
    """Names whose value differs along the tile."""
    along: set[str] = set()
    before = -1
    while len(along) != before:
        before = len(along)
        for node in walk(function.node.body):
            targets, value = assigned(node)
            if value is not None and _along(source, value, tile, along):
                along |= {n.value for t in targets for n in walk(t) if isinstance(n, cst.Name)}
    return along


def _along(source: TritonSource, node: cst.CSTNode, tile: str, along: set[str]) -> bool:
    for n in walk(node):
        if isinstance(n, cst.Name) and n.value in along:
            return True
        call = tl_call(source, n, "arange")
        end = argument(call, "end", 1) if call is not None else None
        if end is not None and dotted_name(end.value) == tile:
            return True
    return False
