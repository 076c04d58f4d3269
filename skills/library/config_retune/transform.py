"""Other launch numbers: for a matrix product the tiles that the analytic model ranks first, then neighbours; for other
kernels tiles and warps that suit lanes, workgroups and grid."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise, zip_longest
from math import prod

from sandbox.kernel import Kernel
from sandbox.target import Target
from skills.edit import apply_edits
from skills.facts import Facts
from skills.gemm_loop import GemmLoop, accumulator_sides, first_tiles, gemm_loop
from skills.knobs import (
    OPTIONS,
    Setting,
    changed_config,
    config_values,
    extend_configs,
    launch_knobs,
    set_knobs,
    tile_names,
    with_knobs,
)
from skills.launch_variants import bounded_tiles, first_variants, launch_sizes
from skills.skill import Refusal, Site
from skills.triton_source import Config, JitFunction, TritonSource, parse_triton

_RANKED = 6
"""Tiles of the analytic model: the best of its first six is within 2% of the best of all (H200, bf16, 22 shapes)."""
_VARIANTS = 6
_CONFIGS = 4
"""Configs that are added to an autotuner whose own ones are computed: each is timed for every key."""
_NVIDIA_STAGES = 3
"""Triton 3.6 on NVIDIA, where a launch names none."""
_SMALL_SIDE = 64
"""Tiles of a matrix product with sides up to this are tried twice as long on both: each operand is then read half as
often."""
_MANY = 40
"""Enough variants to find some that an autotuner does not have."""


def find(kernel: Kernel, facts: Facts, target: Target) -> Iterable[Site | Refusal]:
    """For a fixed launch one site per neighbour; for an autotuned kernel one that extends its list."""
    source = parse_triton(kernel)
    function = source.functions.get(str(facts["kernel.name"]))
    if function is None:
        return
    if function.autotune is not None:
        texts = _further_configs(source, function, facts, target)
        if extend_configs(source, function, texts) is not None:
            variant = {"configs": "\n".join(texts)}
            yield Site(source.line(function.autotune), "more configs", function.name, variant)
        return
    launches = source.launches_of(function.name)
    knobs = launch_knobs(source, function, launches[0]) if launches else {}
    recorded = facts.largest("launch.constants")
    values = {name: knob.value if knob.value is not None else recorded.get(name) for name, knob in knobs.items()}
    current = {name: value for name, value in values.items() if value is not None}
    if not target.is_amd and "num_stages" in knobs and knobs["num_stages"].given is None:
        current["num_stages"] = _NVIDIA_STAGES
    computed = frozenset(name for name, knob in knobs.items() if knob.value is None)
    launch = _Launch(source, function, current, bool(facts["source.has_dot"]), facts, target)
    tried: list[Mapping[str, Setting]] = []
    for wanted in _variants(launch):
        settings = _settings(wanted, launch, computed)
        if settings is None or settings in tried or set_knobs(source, function, settings) is None:
            continue
        tried.append(settings)
        yield Site(source.line(function.node), _label(wanted, current, settings), function.name, settings)


def transform(kernel: Kernel, site: Site, target: Target) -> Kernel | None:
    """Set the knobs, or append configs."""
    if "configs" not in site.variant:
        return with_knobs(kernel, site)
    source = parse_triton(kernel)
    function = source.functions.get(site.kernel or "")
    texts = str(site.variant["configs"]).split("\n")
    edits = extend_configs(source, function, texts) if function is not None else None
    return apply_edits(kernel, source, edits or [])


@dataclass(frozen=True, slots=True)
class _Launch:
    """One kernel with the numbers it is launched with, as far as they are known."""

    source: TritonSource
    function: JitFunction
    current: Mapping[str, int]
    has_dot: bool
    facts: Facts
    target: Target


def _variants(launch: _Launch) -> Iterator[dict[str, int]]:
    source, function, current = launch.source, launch.function, launch.current
    if not launch.has_dot:
        yield from first_variants(launch_sizes(source, function, current, launch.facts), launch.target, _VARIANTS)
        return
    loop = gemm_loop(source, function, current)
    if loop is not None:
        yield from first_tiles(loop, current, launch.facts, launch.target, _RANKED)
    yield from _neighbours(launch, loop)


def _neighbours(launch: _Launch, loop: GemmLoop | None) -> Iterator[dict[str, int]]:
    source, function, current = launch.source, launch.function, launch.current
    stages, warps = current.get("num_stages", 2), current.get("num_warps", 4)
    tiles = tile_names(source, function, current)
    may_grow = loop.masked if loop is not None else bounded_tiles(source, function, tiles)
    sides = accumulator_sides(source, function, set(tiles))
    if stages > 2:
        yield {"num_stages": 2}
    if sides is not None and may_grow.issuperset(sides) and max(current[s] for s in sides) <= _SMALL_SIDE:
        larger_tile = {side: 2 * current[side] for side in sides}
        yield from (
            ({**larger_tile, "num_warps": 2 * warps}, larger_tile) if 2 * warps <= launch.target.most_warps else ()
        )
    if not launch.target.is_amd:
        yield {"num_stages": stages + 1}
    for other in (warps * 2, warps // 2):
        if 1 <= other <= launch.target.most_warps:
            yield {"num_warps": other}
    for name in tiles:
        for size in (current[name] * 2, current[name] // 2):
            if 16 <= size <= 4096 and (size < current[name] or name in may_grow):
                yield {name: size}
    for first, second in pairwise(tiles):
        smaller, larger = sorted((first, second), key=lambda name: current[name])
        if 16 <= current[smaller] < current[larger] and smaller in may_grow:
            yield {first: current[second], second: current[first]}


def _settings(wanted: Mapping[str, int], launch: _Launch, computed: frozenset[str]) -> dict[str, Setting] | None:
    """Numbers where the launch has numbers; of what it computes a multiple or a part. None where that is neither."""
    settings: dict[str, Setting] = {}
    for name, value in wanted.items():
        now = launch.current.get(name)
        if name not in computed:
            settings[name] = value
        elif now is None or now == value or max(now, value) % min(now, value):
            return None
        elif value > now:
            most = launch.target.most_warps if name == "num_warps" else value if name not in OPTIONS else 8
            settings[name] = f"min({most}, {value // now} * {{}})"
        else:
            least = 16 if launch.has_dot and name not in OPTIONS else 1
            settings[name] = f"max({least}, {{}} // {now // value})"
    return settings


def _label(wanted: Mapping[str, int], current: Mapping[str, int], settings: Mapping[str, Setting]) -> str:
    """`BN=64, num_warps/2`: how a report names a variant."""
    parts = []
    for name, value in wanted.items():
        now = current.get(name, value)
        if isinstance(settings[name], int):
            parts.append(f"{name}={value}")
        else:
            parts.append(f"{name}*{value // now}" if value > now else f"{name}/{now // value}")
    return ", ".join(parts)


def _further_configs(source: TritonSource, function: JitFunction, facts: Facts, target: Target) -> list[str]:
    """Two stages for every config that has more, and the first config's neighbours in warps and tiles; where the list
    is computed, what lies beside the configs that were seen."""
    configs = source.configs_of(function)
    computed = [config for config in configs if None in config_values(config).values()]
    if computed:
        return _beside_seen(source, function, computed[0], facts, target)
    has_dot = bool(facts["source.has_dot"])
    texts: list[str] = []
    for config in configs:
        if (config_values(config).get("num_stages") or 2) > 2:
            text = changed_config(source, config, {"num_stages": 2})
            texts += [text] if text is not None else []
    for config in configs[:1]:
        current = {k: v for k, v in config_values(config).items() if v is not None}
        launch = _Launch(source, function, current, has_dot, facts, target)
        loop = gemm_loop(source, function, current) if has_dot else None
        ranked = first_tiles(loop, current, facts, target, _CONFIGS) if loop is not None else []
        stages = {"num_stages": min(2, current.get("num_stages", 2))}
        for values in ranked or ({**n, **stages} for n in _neighbours(launch, loop)):
            text = changed_config(source, config, values)
            texts += [text] if text is not None else []
    return list(dict.fromkeys(texts))


def _beside_seen(
    source: TritonSource, function: JitFunction, config: Config, facts: Facts, target: Target
) -> list[str]:
    """Configs one step beyond those that the autotuner was seen with."""
    seen = [_integers(text.split(",")) for text in facts.names("launch.configs")]
    tiles = [name for name in config.constants if all(name in one for one in seen)]
    by_size = sorted(seen, key=lambda one: prod(one[name] for name in tiles))
    has_dot = bool(facts["source.has_dot"])
    recorded = facts.largest("launch.constants")
    rows: list[list[dict[str, int]]] = []
    for one in dict.fromkeys((len(seen) - 1, 0) if has_dot else (len(seen) // 2,)) if seen else ():
        launch = _Launch(source, function, {**recorded, **by_size[one]}, has_dot, facts, target)
        loop = gemm_loop(source, function, launch.current) if has_dot else None
        sizes = launch_sizes(source, function, launch.current, facts)
        if has_dot:
            away = 1 if one else -1  # the largest config's larger tiles first, the smallest one's smaller
            current = launch.current
            wanted = sorted(
                _neighbours(launch, loop), key=lambda v: -away * sum(v[t] - current[t] for t in tiles if t in v)
            )
        else:
            wanted = first_variants(sizes, target, len(seen) + _MANY)
        beside = [{**by_size[one], **values} for values in wanted if values.keys() <= by_size[one].keys()]
        rows.append([values for values in beside if values not in seen])
    interleaved = [values for some in zip_longest(*rows) for values in some if values is not None]
    fresh = [values for n, values in enumerate(interleaved) if values not in interleaved[:n]]
    return [_config_text(source, config, values) for values in fresh[:_CONFIGS]]


def _integers(pairs: Iterable[str]) -> dict[str, int]:
    return {name: int(value) for name, _, value in (pair.partition("=") for pair in pairs)}


def _config_text(source: TritonSource, config: Config, values: Mapping[str, int]) -> str:
    """A config in the words of another one of the file."""
    constants = ", ".join(f'"{name}": {value}' for name, value in values.items() if name in config.constants)
    named = (*config.options, "num_warps", "num_stages")
    options = [f"{name}={value}" for name, value in values.items() if name in named]
    return f"{source.code(config.call.func)}({', '.join([f'{{{constants}}}', *options])})"
