"""Other launch configurations: for a matrix product the tiles that the analytic model ranks first, then neighbours."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

from sandbox.kernel import Kernel
from sandbox.target import Target
from skills.edit import Edit, apply_edits
from skills.facts import Facts
from skills.gemm_loop import GemmLoop, first_tiles, gemm_loop
from skills.knobs import (
    changed_config,
    config_values,
    extend_configs,
    launch_knobs,
    set_knobs,
    tile_names,
    variant_label,
    with_knobs,
)
from skills.skill import Refusal, Site
from skills.triton_source import JitFunction, TritonSource, parse_triton
from skills.uniform import every_access_masked


def find(kernel: Kernel, facts: Facts, target: Target) -> Iterable[Site | Refusal]:
    """For a fixed launch one site per neighbour; for an autotuned kernel one that extends its list."""
    source = parse_triton(kernel)
    function = source.functions.get(str(facts["kernel.name"]))
    if function is None:
        return
    most = target.max_threads_per_workgroup // target.wavefront_size
    if function.autotune is not None:
        if _extended(source, function, most) is not None:
            yield Site(source.line(function.autotune), "more configs", function.name, {"most_warps": most})
        return
    launches = source.launches_of(function.name)
    knobs = launch_knobs(source, function, launches[0]) if launches else {}
    current = {k: v.value for k, v in knobs.items() if v.value is not None}
    computed = {k for k, v in knobs.items() if v.value is None}  # neighbours of an unknown number are unknown, too
    loop = gemm_loop(source, function, current)
    ranked = first_tiles(loop, current, facts, target, _RANKED) if loop is not None else []
    tried: list[dict[str, int]] = []
    for values in (*ranked, *_neighbours(source, function, current, most, loop)):
        if values in tried or computed & set(values) or set_knobs(source, function, values) is None:
            continue
        tried.append(values)
        yield Site(source.line(function.node), variant_label(values), function.name, dict(values))


def transform(kernel: Kernel, site: Site, target: Target) -> Kernel | None:
    """Set the knobs, or append configs."""
    if "most_warps" not in site.variant:
        return with_knobs(kernel, site)
    source = parse_triton(kernel)
    function = source.functions.get(site.kernel or "")
    edits = _extended(source, function, int(site.variant["most_warps"])) if function is not None else None
    return apply_edits(kernel, source, edits or [])


_RANKED = 6
"""Tiles of the analytic model: the best of its first six is within 2% of the best of all (H200, bf16, 22 shapes)."""


def _neighbours(
    source: TritonSource, function: JitFunction, current: dict[str, int], most_warps: int, loop: GemmLoop | None
) -> Iterator[dict[str, int]]:
    stages, warps = current.get("num_stages", 2), current.get("num_warps", 4)
    if stages > 2:
        yield {"num_stages": 2}
    for other in (warps * 2, warps // 2):
        if 1 <= other <= most_warps:
            yield {"num_warps": other}
    tiles = tile_names(source, function, current)
    may_grow = loop.masked if loop is not None else set(tiles) if every_access_masked(source, function) else set()
    for name in tiles:
        for size in (current[name] * 2, current[name] // 2):
            if 16 <= size <= 4096 and (size < current[name] or name in may_grow):
                yield {name: size}
    for first, second in pairwise(tiles):
        smaller, larger = sorted((first, second), key=lambda name: current[name])
        if 16 <= current[smaller] < current[larger] and smaller in may_grow:
            yield {first: current[second], second: current[first]}


def _extended(source: TritonSource, function: JitFunction, most_warps: int) -> list[Edit] | None:
    """Two stages for every config that has more, and the first config's neighbours in warps and tiles."""
    configs = source.configs_of(function)
    texts: list[str] = []
    for config in configs:
        if (config_values(config).get("num_stages") or 2) > 2:
            text = changed_config(source, config, {"num_stages": 2})
            texts += [text] if text is not None else []
    for config in configs[:1]:
        current = {k: v for k, v in config_values(config).items() if v is not None}
        loop = gemm_loop(source, function, current)
        for values in _neighbours(source, function, current, most_warps, loop):
            text = changed_config(source, config, {**values, "num_stages": min(2, current.get("num_stages", 2))})
            texts += [text] if text is not None else []
    return extend_configs(source, function, list(dict.fromkeys(texts)))
