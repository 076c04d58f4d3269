"""Replace precisions by name, at the dot and wherever a constexpr brings them to it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import libcst as cst

from sandbox.kernel import Kernel
from sandbox.target import Target
from skills.edit import apply_edits, replace
from skills.facts import Facts
from skills.idioms import vendor_guarded
from skills.literals import string_value
from skills.skill import Refusal, Site
from skills.triton_source import TritonSource, parse_triton

_AT_LEAST_AS_EXACT = {
    "tf32": ("bf16x3", "ieee"),
    "tf32x3": ("bf16x6", "ieee"),
    "bf16x3": ("ieee",),
    "bf16x6": ("ieee",),
}


def find(kernel: Kernel, facts: Facts, target: Target) -> Iterable[Site | Refusal]:
    """One site per replacement the target has: first what its matrix units do fastest, then the most exact."""
    source = parse_triton(kernel)
    for name, choices in _AT_LEAST_AS_EXACT.items():
        nodes = list(_named(source, name)) if name not in target.dot_input_precisions else []
        for choice in choices if nodes else ():
            if choice in target.dot_input_precisions:
                yield Site(source.line(nodes[0]), f"{name} -> {choice}", variant={"name": name, "choice": choice})


def transform(kernel: Kernel, site: Site, target: Target) -> Kernel | None:
    """Every place that names the precision."""
    source = parse_triton(kernel)
    choice = str(site.variant["choice"])
    edits = [
        replace(source, node, source.code(node).replace(str(site.variant["name"]), choice))
        for node in _named(source, str(site.variant["name"]))
    ]
    return apply_edits(kernel, source, edits)


def _named(source: TritonSource, name: str) -> Iterator[cst.SimpleString]:
    """String literals that are a value: an argument, a default, an assignment, a choice; not one that is compared."""
    for node in source.nodes:
        if not isinstance(node, cst.SimpleString) or string_value(node) != name or vendor_guarded(source, node):
            continue
        parent = source.parent(node)
        if isinstance(
            parent, cst.Arg | cst.Param | cst.Assign | cst.AnnAssign | cst.IfExp | cst.DictElement | cst.Return
        ):
            yield node
