"""Remove NVIDIA-only options wherever they reach a launch: keywords, `triton.Config`, `**dict`; cap `num_warps`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import libcst as cst

from sandbox.kernel import Kernel
from sandbox.target import Target
from skills.edit import Edit, apply_edits, drop_argument, drop_element, replace
from skills.facts import Facts
from skills.idioms import spread_dicts, vendor_guarded
from skills.literals import int_value, string_value
from skills.skill import Refusal, Site
from skills.triton_source import TritonSource, dict_items, dotted_name, parse_triton, walk

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
    found = [(name, edit) for name, edit, guarded in _edits(source, target) if not (built and guarded)]
    threads = facts.number("launch.threads_per_workgroup")
    if threads is not None and threads <= target.max_threads_per_workgroup and built:
        found = [f for f in found if f[0] != "num_warps"]
    if found:
        names = sorted({name for name, _ in found})
        line = source.line_at(min(edit.start for _, edit in found))
        yield Site(line, "without " + ", ".join(names), variant={"names": ",".join(names)})


def transform(kernel: Kernel, site: Site, target: Target) -> Kernel | None:
    """Every option the site names, removed or capped."""
    source = parse_triton(kernel)
    names = str(site.variant["names"]).split(",")
    return apply_edits(kernel, source, [e for name, e, _ in _edits(source, target) if name in names])


def _edits(source: TritonSource, target: Target) -> Iterator[tuple[str, Edit, bool]]:
    """(option, edit, guarded): guarded when the code stands under a test of the vendor."""
    parameters = {p.name for f in source.functions.values() for p in f.params}
    calls = [launch.call for launch in source.launches] + [config.call for config in source.configs()]
    for call in calls:
        guarded = vendor_guarded(source, call)
        for arg in call.args:
            name = arg.keyword.value if arg.keyword is not None else ""
            if name in parameters and name != "num_warps":
                continue
            if _unknown(name, arg.value):
                yield name, drop_argument(source, call, arg), guarded
            elif name == "num_warps" and (edit := _capped(source, arg.value, target)) is not None:
                yield name, edit, guarded
    for display in _option_dicts(source, calls):
        yield from _in_dict(source, display, parameters, target)


def _option_dicts(source: TritonSource, calls: list[cst.Call]) -> list[cst.BaseExpression]:
    spread = [d for call in calls for d in spread_dicts(source, call)]
    configs = [c.call.args[0].value for c in source.configs() if c.call.args]
    return list(dict.fromkeys([*spread, *(d for d in configs if isinstance(d, cst.Dict))]))


def _in_dict(
    source: TritonSource, display: cst.BaseExpression, parameters: set[str], target: Target
) -> Iterator[tuple[str, Edit, bool]]:
    guarded = vendor_guarded(source, display)
    for name, value in dict_items(display):
        if name in parameters:
            continue
        if name == "num_warps" and (edit := _capped(source, value, target)) is not None:
            yield name, edit, guarded
        elif _unknown(name, value) and isinstance(display, cst.Dict):
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


def _capped(source: TritonSource, value: cst.BaseExpression, target: Target) -> Edit | None:
    """`num_warps` within the limit: a literal is lowered, an expression that can exceed it is wrapped in `min`."""
    limit = target.max_threads_per_workgroup // target.wavefront_size
    literal = int_value(value)
    if literal is not None:
        return replace(source, value, str(limit)) if literal > limit else None
    text = source.code(value)
    if text.startswith("min(") or not _may_exceed(source, value, limit):
        return None
    return replace(source, value, f"min({limit}, {text})")


def _may_exceed(source: TritonSource, value: cst.BaseExpression, limit: int) -> bool:
    """Whether a literal above the limit and no larger than 64 warps flows into the expression, one step back."""
    holders: list[cst.CSTNode] = [value]
    for node in walk(value):
        name = dotted_name(node)
        if name is None:
            continue
        host = source.enclosing_function(value)
        for other in source.nodes:
            if isinstance(other, cst.FunctionDef) and other.name.value == name and name not in source.functions:
                holders += [r for r in walk(other.body) if isinstance(r, cst.Return)]
            elif _assigns(other, name) and source.enclosing_function(other) in (host, None):
                holders.append(other)
            elif isinstance(other, cst.CompFor) and dotted_name(other.target) == name:
                holders.append(other.iter)
    return any(limit < (int_value(n) or 0) <= 64 for h in holders for n in _outside_tests(h))


def _assigns(node: cst.CSTNode, name: str) -> bool:
    return isinstance(node, cst.Assign) and any(dotted_name(t.target) == name for t in node.targets)


def _outside_tests(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """Nodes whose value may become the result: conditions are left out."""
    yield node
    for child in node.children:
        if isinstance(node, cst.IfExp) and child is node.test:
            continue
        if isinstance(child, cst.Comparison):
            continue
        yield from _outside_tests(child)
