"""Lower `num_stages` at every launch, or add configs with fewer."""

from __future__ import annotations

from collections.abc import Iterable

from sandbox.kernel import Kernel
from sandbox.target import Target
from skills.edit import Edit, apply_edits
from skills.facts import Facts
from skills.knobs import changed_config, config_values, extend_configs, launch_knobs, set_knobs
from skills.skill import Refusal, Site
from skills.triton_source import JitFunction, TritonSource, parse_triton

_DEFAULT_STAGES = 2


def find(kernel: Kernel, facts: Facts, target: Target) -> Iterable[Site | Refusal]:
    """Two stages, then one."""
    source = parse_triton(kernel)
    function = source.functions.get(str(facts["kernel.name"]))
    for stages in (2, 1) if function is not None else ():
        if function is not None and _edits(source, function, stages):
            yield Site(source.line(function.node), f"num_stages={stages}", function.name, {"num_stages": stages})


def transform(kernel: Kernel, site: Site, target: Target) -> Kernel | None:
    """The launches of the site's kernel."""
    source = parse_triton(kernel)
    function = source.functions.get(site.kernel or "")
    edits = _edits(source, function, int(site.variant["num_stages"])) if function is not None else []
    return apply_edits(kernel, source, edits)


def _edits(source: TritonSource, function: JitFunction, stages: int) -> list[Edit]:
    if function.autotune is not None:
        deeper = [c for c in source.configs_of(function) if (config_values(c).get("num_stages") or 2) > stages]
        texts = [changed_config(source, c, {"num_stages": stages}) for c in deeper]
        return extend_configs(source, function, [t for t in texts if t is not None]) or []
    depths = [launch_knobs(source, function, launch).get("num_stages") for launch in source.launches_of(function.name)]
    known = [d.value if d is not None and d.value is not None else _DEFAULT_STAGES for d in depths]
    if not known or max(known) <= stages:
        return []
    return set_knobs(source, function, {"num_stages": stages}) or []
