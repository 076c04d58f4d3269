"""Raise the block size the grid is divided by, and num_warps with it, where atomics are one per program."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sandbox.kernel import Kernel
from sandbox.target import Target
from skills.facts import Facts
from skills.idioms import tl_call
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
    if function is None or not _atomic_per_program(source, function) or not every_access_masked(source, function):
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
    """(factor, knobs) for a kernel with one block size that its grid is divided by."""
    for launch in source.launches_of(function.name)[:1]:
        knobs = launch_knobs(source, function, launch)
        divided = grid_tied(source, function)
        tied = [n for n in tile_names(source, function, knobs) if n in divided]
        block = knobs[tied[0]].value if len(tied) == 1 else None
        warps = knobs["num_warps"].value if "num_warps" in knobs else None
        if not block or not warps:
            return
        for factor in _FACTORS:
            larger = block * factor
            if larger <= _LARGEST_BLOCK:
                yield factor, {tied[0]: larger, "num_warps": max(warps, min(_MOST_WARPS, larger // _ELEMENTS_PER_WARP))}


def _atomic_per_program(source: TritonSource, function: JitFunction) -> bool:
    """Whether the kernel has atomics, and the address of each is one for all lanes and not made of lanes."""
    uniformity = Uniformity(source, function)
    calls = [c for n in walk(function.node.body) if (c := tl_call(source, n, *_ATOMICS)) is not None]
    pointers = [argument(c, "pointer", 0) for c in calls]
    return bool(calls) and all(p is not None and uniformity.is_scalar(p.value) for p in pointers)
