"""Matrix products as people write them in Triton: which names are sizes and tile, and which tiles to try first."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product

import libcst as cst

from sandbox.analytic import OPERAND_BYTES, Gemm, Tile, predict_us, rank
from sandbox.target import Dtype, Target
from skills.facts import Facts
from skills.idioms import names_in, tl_call
from skills.knobs import tile_names
from skills.triton_source import JitFunction, TritonSource, argument, dotted_name, walk

_DTYPES: Mapping[str, Dtype] = {
    "float32": "fp32",
    "float16": "fp16",
    "bfloat16": "bf16",
    "int8": "int8",
    "float8_e4m3fn": "fp8",
    "float8_e4m3fnuz": "fp8",
    "float8_e5m2": "fp8",
    "float8_e5m2fnuz": "fp8",
}
_ALIKE = 2
"""Candidates of one BM x BN: what the model cannot tell apart (warps, stages) must not crowd out other tiles."""
PROGRAMS_PER_UNIT = 2
"""Workgroups for each compute unit that k is divided for: one loads while the other computes."""
LEAST_STEPS = 4
"""Steps of a part of k; fewer do not outweigh its start and its share of the sum."""
_PARTS = (2, 4, 8, 16)
_SUM_US = 3.0
"""A second launch that adds the parts."""
_NEAR = 1.25
"""Divided tiles within this factor of the best undivided one are worth timing: the model is no closer."""
_SIDES, _DEPTHS = (16, 32, 64, 128, 256), (16, 32, 64, 128, 256)


@dataclass(frozen=True, slots=True)
class GemmLoop:
    """One loop over k with one `tl.dot`, by the names of the kernel's parameters."""

    m: str
    n: str
    k: str
    block_m: str
    block_n: str
    block_k: str
    masked: frozenset[str]
    """Tile names whose axis some mask bounds: only these may grow beyond what the launch had."""


def gemm_loop(source: TritonSource, function: JitFunction, current: Mapping[str, int]) -> GemmLoop | None:
    """The product a kernel computes; None when it is none, or when a size is not the kernel's own parameter."""
    loops = [n for n in walk(function.node.body) if isinstance(n, cst.For) and list(_calls(source, n.body, "dot"))]
    if len(loops) != 1 or len(list(_calls(source, function.node.body, "dot"))) != 1:
        return None
    tiles = set(tile_names(source, function, current))
    sides = accumulator_sides(source, function, tiles)
    depth = names_in(loops[0].iter) & tiles or {n for n in tiles if sides and n not in sides}
    if sides is None or len(depth) != 1 or depth & set(sides):
        return None
    k = next(iter(depth))
    scalars = {p.name for p in function.params if not p.constexpr}
    sizes = [_size_of(source, function, tile, scalars) for tile in (*sides, k)]
    sizes[2] = sizes[2] or next(iter(sorted(names_in(loops[0].iter) & scalars)), None)
    sizes = [given or _by_convention(scalars, letter) for given, letter in zip(sizes, "mnk", strict=True)]
    if None in sizes or len(set(sizes)) != 3:
        return None
    m, n, depth_size = (str(s) for s in sizes)
    bounds = _mask_names(source, function)
    pairs = ((sides[0], m), (sides[1], n), (k, depth_size))
    return GemmLoop(m, n, depth_size, *sides, k, frozenset(tile for tile, size in pairs if size in bounds))


def first_tiles(
    loop: GemmLoop, current: Mapping[str, int], facts: Facts, target: Target, most: int
) -> list[dict[str, int]]:
    """Knobs of the `most` tiles that the analytic model puts first and the target's LDS holds, best first."""
    gemm = _gemm(loop, facts, target)
    if gemm is None:
        return []
    found: list[dict[str, int]] = []
    alike: Counter[tuple[int, int]] = Counter()
    for tile in rank(gemm, _tiles(loop, current, gemm, target), target):
        changed, sides = _changed(loop, tile, current), (tile.block_m, tile.block_n)
        if changed and alike[sides] < _ALIKE:
            alike[sides] += 1
            found.append(changed)
    return found[:most]


def split_tiles(
    loop: GemmLoop, current: Mapping[str, int], facts: Facts, target: Target, most: int, *, fixed: bool = False
) -> list[tuple[dict[str, int], int]]:
    """The `most` tiles and numbers of parts of k that the analytic model puts first, each BM x BN once; none where
    the same model says that no division comes near the best undivided tile. `fixed` keeps the launch's tile."""
    gemm = _gemm(loop, facts, target)
    if gemm is None:
        tiles = []
    elif fixed:
        m, n, k = (current[name] for name in (loop.block_m, loop.block_n, loop.block_k))
        tiles = [Tile(m, n, k, current.get("num_warps", 4), current.get("num_stages", 2))]
    else:
        tiles = list(_tiles(loop, current, gemm, target))
    whole = [us for t in tiles if gemm is not None and (us := predict_us(gemm, t, target)) is not None]
    if gemm is None or not whole:
        return []
    divided = [replace(t, split_k=p) for t in tiles for p in _PARTS if p <= _most_parts(gemm, t, target)]
    found: dict[tuple[int, int], tuple[dict[str, int], int]] = {}
    for tile in rank(gemm, divided, target):
        us = predict_us(gemm, tile, target)
        if us is None or us + _SUM_US > _NEAR * min(whole):
            break
        changed = {} if fixed else _changed(loop, tile, current)
        found.setdefault((tile.block_m, tile.block_n), (changed, tile.split_k))
    return list(found.values())[:most]


def _most_parts(gemm: Gemm, tile: Tile, target: Target) -> int:
    """As many parts of k as give a compute unit two programs, each of `LEAST_STEPS` steps."""
    tiles = -(-gemm.m // tile.block_m) * -(-gemm.n // tile.block_n)
    return min(PROGRAMS_PER_UNIT * target.board.compute_units // tiles, gemm.k // (LEAST_STEPS * tile.block_k))


def _gemm(loop: GemmLoop, facts: Facts, target: Target) -> Gemm | None:
    """The recorded product; None where a size is not known, or the target has no matrix instruction for its type."""
    sizes = facts.largest("launch.integers")
    dtypes = {_DTYPES[d] for d in facts.names("launch.arg_dtypes") if d in _DTYPES}
    if not {loop.m, loop.n, loop.k} <= sizes.keys() or not dtypes:
        return None
    dtype = min(dtypes, key=lambda d: (OPERAND_BYTES[d], d))  # the result is rarely narrower than the operands
    if dtype == "fp32" and not target.is_amd:
        dtype = "tf32"  # what tl.dot makes of fp32 there unless it is told otherwise
    if dtype not in target.board.peak_tflop_per_s:
        return None
    return Gemm(sizes[loop.m], sizes[loop.n], sizes[loop.k], dtype)


def _changed(loop: GemmLoop, tile: Tile, current: Mapping[str, int]) -> dict[str, int]:
    """The knobs of a tile that differ from the launch's."""
    names = (loop.block_m, loop.block_n, loop.block_k, "num_warps", "num_stages")
    values = (tile.block_m, tile.block_n, tile.block_k, tile.num_warps, tile.num_stages)
    return {n: v for n, v in zip(names, values, strict=True) if current.get(n) != v}


def _tiles(loop: GemmLoop, current: Mapping[str, int], gemm: Gemm, target: Target) -> Iterator[Tile]:
    """What an axis without a mask may be: a divisor of what it was, and whatever divides the size of one with.

    On AMD the deepest first, which the model often cannot tell apart, and none that reads part of a cache line.
    """

    def allowed(name: str, choices: tuple[int, ...], size: int) -> list[int]:
        if name in loop.masked:
            return [c for c in choices if c < 2 * size or c == choices[0]]
        return [c for c in choices if current[name] % c == 0]

    sides = (allowed(loop.block_m, _SIDES, gemm.m), allowed(loop.block_n, _SIDES, gemm.n))
    depths = [d for d in allowed(loop.block_k, _DEPTHS, gemm.k) if loop.block_k in loop.masked or gemm.k % d == 0]
    stages = (2, 3, 4)
    if target.is_amd:
        whole_lines = [d for d in depths if d * gemm.operand_bytes >= target.l2_line_bytes]
        depths, stages = sorted(whole_lines or depths, reverse=True), (3, 2, 1)
    for m, n, k, deep in product(*sides, depths, stages):
        buffers = max(1, deep - 1) if target.is_amd else deep
        if (m + n) * k * gemm.operand_bytes * buffers <= target.lds_bytes_per_workgroup:
            yield from (Tile(m, n, k, warps, deep) for warps in _warps(m * n, target))


def _warps(elements: int, target: Target) -> tuple[int, ...]:
    """On AMD, where the model does not see them, as many as keep the accumulators of a lane at 64 and below."""
    return (4,) if target.is_amd and elements < 2 * 64 * 64 * 4 else (8,) if target.is_amd else (4, 8)


def _calls(source: TritonSource, within: cst.CSTNode, *names: str) -> Iterator[cst.Call]:
    for node in walk(within):
        call = tl_call(source, node, *names)
        if call is not None:
            yield call


def accumulator_sides(source: TritonSource, function: JitFunction, tiles: set[str]) -> tuple[str, str] | None:
    """The two tile names of the block that sums are kept in."""
    for call in _calls(source, function.node.body, "zeros", "full"):
        shape = argument(call, "shape", 0)
        if shape is not None and isinstance(shape.value, cst.Tuple | cst.List):
            names = [dotted_name(e.value) for e in shape.value.elements]
            if len(names) == 2 and set(names) <= tiles and names[0] != names[1]:
                return str(names[0]), str(names[1])
    return None


def _size_of(source: TritonSource, function: JitFunction, tile: str, scalars: set[str]) -> str | None:
    """The parameter X of a `tl.cdiv(X, tile)`."""
    for call in _calls(source, function.node.body, "cdiv"):
        size, by = (argument(call, name, place) for place, name in enumerate(("x", "div")))
        if size is not None and by is not None and dotted_name(by.value) == tile:
            name = dotted_name(size.value)
            if name in scalars:
                return name
    return None


def _by_convention(scalars: set[str], letter: str) -> str | None:
    return next((s for s in sorted(scalars) if re.fullmatch(letter, s, re.IGNORECASE)), None)


def _mask_names(source: TritonSource, function: JitFunction) -> set[str]:
    """Every name in a comparison or a modulo of the kernel: what its masks and wrapped rows depend on."""
    found: set[str] = set()
    for node in walk(function.node.body):
        wraps = isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Modulo)
        if isinstance(node, cst.Comparison) or wraps:
            found |= names_in(node)
    return found
