"""Remove NVIDIA-only options wherever they reach a launch: keywords, `triton.Config`, `**dict`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import libcst as cst

from sandbox.kernel import Kernel
from sandbox.target import Target
from skills.edit import Edit, apply_edits, drop_argument, drop_element
from skills.facts import Facts
from skills.idioms import spread_dicts, vendor_guarded
from skills.literals import int_value, string_value
from skills.skill import Refusal, Site
from skills.triton_source import TritonSource, dict_items, parse_triton

UNKNOWN_TO_HIP = frozenset(
    {
        "maxnreg", "launch_pdl", "ptx_version", "ptx_options", "enable_reflect_ftz", "cluster_dims", "ctas_per_cga",
        "enable_warp_specialization", "enable_persistent", "num_consumer_groups", "num_buffers_warp_spec",
        "reg_dec_producer", "reg_inc_consumer", "minRegAutoWS", "maxRegAutoWS", "optimize_epilogue", "opt_level",
    }
)  # fmt: skip


def find(kernel: Kernel, facts: Facts, target: Target) -> Iterable[Site | Refusal]:
    """One site for the whole file: an option left anywhere still raises."""
    source = parse_triton(kernel)
    built = facts["compile.status"] == "ok"
    found = [(name, edit) for name, edit, guarded in _edits(source) if not (built and guarded)]
    if found:
        names = sorted({name for name, _ in found})
        line = source.line_at(min(edit.start for _, edit in found))
        yield Site(line, "without " + ", ".join(names), variant={"names": ",".join(names)})


def transform(kernel: Kernel, site: Site, target: Target) -> Kernel | None:
    """Every option the site names, removed."""
    source = parse_triton(kernel)
    names = str(site.variant["names"]).split(",")
    return apply_edits(kernel, source, [e for name, e, _ in _edits(source) if name in names])


def _edits(source: TritonSource) -> Iterator[tuple[str, Edit, bool]]:
    """(option, edit, guarded): guarded when the code stands under a test of the vendor."""
    parameters = {p.name for f in source.functions.values() for p in f.params}
    calls = [launch.call for launch in source.launches] + [config.call for config in source.configs()]
    for call in calls:
        guarded = vendor_guarded(source, call)
        for arg in call.args:
            name = arg.keyword.value if arg.keyword is not None else ""
            if name not in parameters and _unknown(name, arg.value):
                yield name, drop_argument(source, call, arg), guarded
    for display in _option_dicts(source, calls):
        yield from _in_dict(source, display, parameters)


def _option_dicts(source: TritonSource, calls: list[cst.Call]) -> list[cst.BaseExpression]:
    spread = [d for call in calls for d in spread_dicts(source, call)]
    configs = [c.call.args[0].value for c in source.configs() if c.call.args]
    return list(dict.fromkeys([*spread, *(d for d in configs if isinstance(d, cst.Dict))]))


def _in_dict(
    source: TritonSource, display: cst.BaseExpression, parameters: set[str]
) -> Iterator[tuple[str, Edit, bool]]:
    guarded = vendor_guarded(source, display)
    for name, value in dict_items(display):
        if name in parameters:
            continue
        if _unknown(name, value) and isinstance(display, cst.Dict):
            elements: list[cst.CSTNode] = list(display.elements)
            element = next(
                e for e in display.elements if isinstance(e, cst.DictElement) and string_value(e.key) == name
            )
            yield name, drop_element(source, elements, element), guarded
        elif _unknown(name, value) and isinstance(display, cst.Call):
            arg = next(a for a in display.args if a.keyword is not None and a.keyword.value == name)
            yield name, drop_argument(source, display, arg), guarded


def _unknown(name: str, value: cst.BaseExpression) -> bool:
    return name in UNKNOWN_TO_HIP or (name == "num_ctas" and int_value(value) != 1)
