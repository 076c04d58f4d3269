"""Raise the block the grid is divided by, or lower num_warps, until the launch fits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sandbox.kernel import Kernel
from sandbox.target import Target
from skills.facts import Facts
from skills.knobs import grid_tied, launch_knobs, set_knobs, tile_names, variant_label, with_knobs
from skills.skill import Refusal, Site
from skills.triton_source import JitFunction, TritonSource, parse_triton

_SAFE_THREADS = 2**31 - 1
_LARGEST_BLOCK = 8192


def find(kernel: Kernel, facts: Facts, target: Target) -> Iterable[Site | Refusal]:
    """Larger blocks first, then fewer warps."""
    source = parse_triton(kernel)
    function = source.functions.get(str(facts["kernel.name"]))
    threads = facts.number("launch.grid_threads")
    if function is None or threads is None:
        return
    for values in _choices(source, function, threads):
        if set_knobs(source, function, values) is not None:
            yield Site(source.line(function.node), variant_label(values), function.name, dict(values))


def transform(kernel: Kernel, site: Site, target: Target) -> Kernel | None:
    """Set the knobs at every launch of the kernel, and in the grid."""
    return with_knobs(kernel, site)


def _choices(source: TritonSource, function: JitFunction, threads: float) -> Iterator[dict[str, int]]:
    factor = 2
    while threads / factor > _SAFE_THREADS:
        factor *= 2
    for launch in source.launches_of(function.name)[:1]:
        knobs = launch_knobs(source, function, launch)
        tied = grid_tied(source, function)
        for name in tile_names(source, function, knobs):
            block = knobs[name].value or 0
            if name in tied:
                yield from ({name: block * f} for f in (2 * factor, factor) if block * f <= _LARGEST_BLOCK)
        warps = knobs["num_warps"].value if "num_warps" in knobs else None
        if warps is not None and warps // factor >= 1:
            yield {"num_warps": warps // factor}
