"""Cache modifiers on the loads and stores of a kernel without loops or reuse."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import libcst as cst

from sandbox.kernel import Kernel
from sandbox.target import Target
from skills.edit import add_argument, apply_edits
from skills.facts import Facts
from skills.idioms import tl_call
from skills.skill import Refusal, Site
from skills.triton_source import JitFunction, TritonSource, argument, parse_triton, walk
from skills.uniform import Uniformity


def find(kernel: Kernel, facts: Facts, target: Target) -> Iterable[Site | Refusal]:
    """Stores alone, then loads as well."""
    source = parse_triton(kernel)
    function = source.functions.get(str(facts["kernel.name"]))
    if function is None or any(isinstance(n, cst.For | cst.While) for n in walk(function.node.body)):
        return
    for kinds in ("store", "store,load"):
        calls = list(_calls(source, function, kinds))
        if calls:
            label = "stores" if kinds == "store" else "stores and loads"
            yield Site(source.line(calls[0]), label, function.name, {"kinds": kinds})


def transform(kernel: Kernel, site: Site, target: Target) -> Kernel | None:
    """Every block access that names no modifier."""
    source = parse_triton(kernel)
    function = source.functions.get(site.kernel or "")
    calls = _calls(source, function, str(site.variant["kinds"])) if function is not None else ()
    edits = []
    for call in calls:
        modifier = ".cs" if tl_call(source, call, "store") is not None else ".cg"
        edits.append(add_argument(source, call, f'cache_modifier="{modifier}"'))
    return apply_edits(kernel, source, edits)


def _calls(source: TritonSource, function: JitFunction, kinds: str) -> Iterator[cst.Call]:
    uniform = Uniformity(source, function)
    for node in walk(function.node.body):
        call = tl_call(source, node, *kinds.split(","))
        pointer = argument(call, "pointer", 0) if call is not None else None
        if call is None or pointer is None or not uniform.is_block(pointer.value):
            continue
        named = any(
            a.keyword is not None and a.keyword.value in ("cache_modifier", "eviction_policy") for a in call.args
        )
        if not named and not any(a.star for a in call.args):
            yield call
