"""Halve tiles, those the grid does not depend on first; then fewer stages, then more warps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sandbox.kernel import Kernel
from sandbox.target import Target
from skills.edit import Edit, apply_edits
from skills.facts import Facts
from skills.knobs import (
    changed_config,
    config_values,
    extend_configs,
    grid_tied,
    launch_knobs,
    set_knobs,
    tile_names,
    variant_label,
    variant_values,
)
from skills.skill import Refusal, Site
from skills.triton_source import JitFunction, TritonSource, parse_triton

_SMALLEST_TILE = 16


def find(kernel: Kernel, facts: Facts, target: Target) -> Iterable[Site | Refusal]:
    """One site per variant that can be written consistently."""
    source = parse_triton(kernel)
    function = source.functions.get(str(facts["kernel.name"]))
    if function is None:
        return
    for values in _choices(source, function, target.most_warps):
        if _edits(source, function, values) is not None:
            yield Site(source.line(function.node), variant_label(values), function.name, dict(values))


def transform(kernel: Kernel, site: Site, target: Target) -> Kernel | None:
    """Set the knobs at every launch, or add a config to the autotuner."""
    source = parse_triton(kernel)
    function = source.functions.get(site.kernel or "")
    if function is None:
        return None
    return apply_edits(kernel, source, _edits(source, function, variant_values(site.variant)) or [])


def _edits(source: TritonSource, function: JitFunction, values: dict[str, int]) -> list[Edit] | None:
    if function.autotune is None:
        return set_knobs(source, function, values)
    texts = [changed_config(source, c, values) for c in source.configs_of(function)[:1]]
    return extend_configs(source, function, [t for t in texts if t is not None])


def _choices(source: TritonSource, function: JitFunction, most_warps: int) -> Iterator[dict[str, int]]:
    values = _current(source, function)
    tied = grid_tied(source, function)
    tiles = sorted(tile_names(source, function, values), key=lambda n: (n in tied, -values[n]))
    for name in tiles:
        if values[name] // 2 >= _SMALLEST_TILE:
            yield {name: values[name] // 2}
    for name in tiles[:1]:
        if values[name] // 4 >= _SMALLEST_TILE:
            yield {name: values[name] // 4}
    if values.get("num_stages", 2) > 1:
        yield {"num_stages": 1}
    warps = values.get("num_warps", 4)
    if warps * 2 <= most_warps:
        yield {"num_warps": warps * 2}


def _current(source: TritonSource, function: JitFunction) -> dict[str, int]:
    """Literal values of the first launch, or of the first config."""
    configs = source.configs_of(function)
    if configs:
        return {k: v for k, v in config_values(configs[0]).items() if v is not None}
    launches = source.launches_of(function.name)
    knobs = launch_knobs(source, function, launches[0]) if launches else {}
    return {k: knob.value for k, knob in knobs.items() if knob.value is not None}
