"""Fewer pipeline stages, then smaller tiles, until the estimated LDS need fits; the compiler has the last word."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from sandbox.kernel import Kernel
from sandbox.target import Target
from skills.edit import Edit, apply_edits, replace
from skills.facts import Facts
from skills.idioms import tl_call
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
from skills.literals import int_value
from skills.skill import Refusal, Site
from skills.triton_source import JitFunction, TritonSource, argument, parse_triton, walk

_DEFAULT_STAGES = 2


def find(kernel: Kernel, facts: Facts, target: Target) -> Iterable[Site | Refusal]:
    """Up to six variants, those that keep most of the original launch first."""
    source = parse_triton(kernel)
    function = source.functions.get(str(facts["kernel.name"]))
    used = facts.number("lds_bytes")
    if function is None or used is None:
        return
    budget = target.lds_bytes_per_workgroup
    if function.autotune is not None:
        if _extended(source, function, budget / used) is not None:
            yield Site(source.line(function.autotune), "configs that fit", function.name, {"share": budget / used})
        return
    inner = _inner_stages(source, function)
    seen = 0
    written = int(facts.number("launch.num_stages") or _DEFAULT_STAGES)
    for values in _choices(source, function, budget / used, inner, written):
        if set_knobs(source, function, values) is not None and seen < 6:
            seen += 1
            yield Site(source.line(function.node), variant_label(values), function.name, dict(values))


def transform(kernel: Kernel, site: Site, target: Target) -> Kernel | None:
    """Set the knobs at every launch, or extend the autotuner."""
    source = parse_triton(kernel)
    function = source.functions.get(site.kernel or "")
    if function is None:
        return None
    if "share" in site.variant:
        edits = _extended(source, function, float(site.variant["share"]))
        return apply_edits(kernel, source, edits or [])
    values = variant_values(site.variant)
    edits = set_knobs(source, function, values)
    if edits is None:
        return None
    for node, stages in _inner_stages(source, function).items():
        if stages > values.get("num_stages", stages):
            edits.append(replace(source, node, str(values["num_stages"])))  # type: ignore[arg-type]
    return apply_edits(kernel, source, edits)


def _choices(
    source: TritonSource, function: JitFunction, share: float, inner: Mapping[object, int], written: int
) -> Iterator[dict[str, int]]:
    """Shallower pipelines, then halved tiles. `written`: the recorded depth, where the source computes it."""
    launches = source.launches_of(function.name)
    if not launches:
        return
    knobs = launch_knobs(source, function, launches[0])
    given = knobs["num_stages"].value if "num_stages" in knobs else None
    stages = max([given if given is not None else written, *inner.values()])
    depth = range(stages - 1, 0, -1)
    # One stage pipelines nothing, so the estimate for deeper loops does not bound it.
    fitting = [s for s in depth if s == 1 or (s - 1) / max(stages - 1, 1) <= share]
    yield from ({"num_stages": s} for s in dict.fromkeys([*(s for s in (2,) if s in fitting), *fitting[:2]]))
    tied = grid_tied(source, function)
    tiles = tile_names(source, function, knobs)
    for name in sorted(tiles, key=lambda n: (n in tied, -(knobs[n].value or 0))):
        half = (knobs[name].value or 0) // 2
        if half >= 16:
            yield {name: half, "num_stages": min(2, stages)}
            yield {name: half, "num_stages": 1}


def _extended(source: TritonSource, function: JitFunction, share: float) -> list[Edit] | None:
    """More configs: each one the autotuner has with two stages, and the first with half the reduction tile."""
    configs = source.configs_of(function)
    texts: list[str] = []
    tied = grid_tied(source, function)
    depths = [config_values(c).get("num_stages") or _DEFAULT_STAGES for c in configs]
    shallower = 2 if max(depths, default=0) > 2 else 1
    for config, depth in zip(configs, depths, strict=True):
        if depth > shallower and (text := changed_config(source, config, {"num_stages": shallower})) is not None:
            texts.append(text)
    for config in configs[:1]:
        for name, value in config_values(config).items():
            if (
                name in function.constexprs
                and name not in tied
                and value is not None
                and value >= 32
                and not value & (value - 1)
            ):
                text = changed_config(source, config, {name: value // 2, "num_stages": 2})
                texts += [text] if text is not None else []
    return extend_configs(source, function, list(dict.fromkeys(texts)))


def _inner_stages(source: TritonSource, function: JitFunction) -> dict[object, int]:
    """Literal depths written at loops, `tl.range(..., num_stages=4)`, by node."""
    found: dict[object, int] = {}
    for node in walk(function.node.body):
        call = tl_call(source, node, "range")
        depth = argument(call, "num_stages", 3) if call is not None else None
        value = int_value(depth.value) if depth is not None else None
        if depth is not None and value is not None:
            found[depth.value] = value
    return found
