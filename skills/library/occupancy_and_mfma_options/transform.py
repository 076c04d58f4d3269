"""Declare AMD's options as constexpr parameters with neutral defaults; give them at launches or in further configs."""

from __future__ import annotations

from collections.abc import Iterable

from sandbox.kernel import Kernel
from sandbox.target import Target
from skills.edit import Edit, add_argument, add_constexpr_param, apply_edits
from skills.facts import Facts
from skills.knobs import changed_config, extend_configs, variant_label, variant_values
from skills.skill import Refusal, Site
from skills.triton_source import parse_triton

NEUTRAL = {"waves_per_eu": 0, "matrix_instr_nonkdim": 0, "kpack": 1}
_VARIANTS: tuple[dict[str, int], ...] = (
    {"matrix_instr_nonkdim": 16},
    {"waves_per_eu": 2},
    {"waves_per_eu": 3},
    {"waves_per_eu": 2, "matrix_instr_nonkdim": 16},
    {"waves_per_eu": 1},
    {"kpack": 2},
    {"matrix_instr_nonkdim": 16, "kpack": 2},
    {"waves_per_eu": 4},
)


def find(kernel: Kernel, facts: Facts, target: Target) -> Iterable[Site | Refusal]:
    """One site per variant that the target has."""
    source = parse_triton(kernel)
    function = source.functions.get(str(facts["kernel.name"]))
    if function is None or function.node.params.star_kwarg is not None or not source.launches_of(function.name):
        return
    if any(p.name in NEUTRAL for p in function.params):
        return
    for values in _VARIANTS:
        shape = values.get("matrix_instr_nonkdim")
        if (shape is not None and shape not in target.mfma_shapes) or ("kpack" in values and target.arch == "gfx950"):
            continue
        yield Site(source.line(function.node), variant_label(values), function.name, dict(values))


def transform(kernel: Kernel, site: Site, target: Target) -> Kernel | None:
    """Parameters with neutral defaults; values by keyword, or in one more config for an autotuned kernel."""
    source = parse_triton(kernel)
    function = source.functions.get(site.kernel or "")
    values = variant_values(site.variant)
    if function is None or any(p.name in values for p in function.params):
        return None
    edits: list[Edit] = [add_constexpr_param(source, function, {n: NEUTRAL[n] for n in values})]
    if function.autotune is not None:
        texts = [changed_config(source, c, values) for c in source.configs_of(function)]
        more = extend_configs(source, function, [t for t in texts if t is not None])
        if more is None:
            return None
        return apply_edits(kernel, source, edits + more)
    text = ", ".join(f"{name}={value}" for name, value in values.items())
    edits += [add_argument(source, launch.call, text) for launch in source.launches_of(function.name)]
    return apply_edits(kernel, source, edits)
