"""Replace precisions by name, at the dot and wherever a constexpr brings them to it.

A dot that names tf32 itself keeps it where there is such an instruction: the kernel then asks what it is compiled for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import libcst as cst

from sandbox.kernel import Kernel
from sandbox.target import Target
from skills.edit import Edit, apply_edits, drop_argument, insert_before, replace, tl_name
from skills.facts import Facts
from skills.idioms import taken_names, tl_call, vendor_guarded
from skills.literals import string_value
from skills.names import fresh_name
from skills.skill import Refusal, Site
from skills.triton_source import JitFunction, TritonSource, parse_triton

_UNNAMED = "unnamed"
"""No precision by name: tf32 on NVIDIA as before, ieee on AMD."""
_WHERE_ABSENT = "bf16x3 where AMD has none"
"""bf16x3 on the AMD architectures without tf32 alone."""
_CHOSEN = (
    '{name}: {tl}.constexpr = "bf16x3" if {tl}.target_info.is_hip() and not {tl}.target_info.is_hip_cdna3() else "tf32"'
)
_AT_LEAST_AS_EXACT = {
    "tf32": (_WHERE_ABSENT, "bf16x3", _UNNAMED, "ieee"),
    "tf32x3": ("bf16x6", "ieee"),
    "bf16x3": ("ieee",),
    "bf16x6": ("ieee",),
}


def find(kernel: Kernel, facts: Facts, target: Target) -> Iterable[Site | Refusal]:
    """One site per replacement the target has: first what its matrix units do fastest, then the most exact."""
    source = parse_triton(kernel)
    for name, choices in _AT_LEAST_AS_EXACT.items():
        nodes = list(_named(source, name)) if name not in target.dot_input_precisions else []
        at_dots = all(_at_dot(source, node) is not None for node in nodes)
        for choice in choices if nodes else ():
            possible = choice in target.dot_input_precisions or (choice == _UNNAMED and at_dots)
            if choice == _WHERE_ABSENT:
                possible = at_dots and all(_first_statement(source, node) is not None for node in nodes)
            if possible:
                yield Site(source.line(nodes[0]), f"{name} -> {choice}", variant={"name": name, "choice": choice})


def transform(kernel: Kernel, site: Site, target: Target) -> Kernel | None:
    """Every place that names the precision."""
    source = parse_triton(kernel)
    name, choice = str(site.variant["name"]), str(site.variant["choice"])
    if choice == _WHERE_ABSENT:
        return apply_edits(kernel, source, _chosen_edits(source, name))
    edits: list[Edit] = []
    for node in _named(source, name):
        at = _at_dot(source, node)
        if choice != _UNNAMED:
            edits.append(replace(source, node, source.code(node).replace(name, choice)))
        elif at is not None:
            edits.append(drop_argument(source, *at))
    return apply_edits(kernel, source, edits)


def _chosen_edits(source: TritonSource, name: str) -> list[Edit]:
    """A constexpr at the start of each function, which its dots name."""
    edits: list[Edit] = []
    for node in _named(source, name):
        found = _first_statement(source, node)
        if found is not None:
            function, first = found
            local = fresh_name("dot_precision", taken_names(function.node))
            text = _CHOSEN.format(name=local, tl=tl_name(source))
            edits += [insert_before(source, first, [text]), replace(source, node, local)]
    return list(dict.fromkeys(edits))


def _first_statement(source: TritonSource, node: cst.CSTNode) -> tuple[JitFunction, cst.CSTNode] | None:
    """The jit function around `node` and its first statement behind the docstring; None for a one-line body."""
    around = source.enclosing_function(node)
    function = next((f for f in source.functions.values() if f.node is around), None)
    if function is None or not isinstance(function.node.body, cst.IndentedBlock):
        return None
    body = function.node.body.body
    first = body[1:] if function.node.get_docstring() is not None else body
    return (function, first[0]) if first else None


def _at_dot(source: TritonSource, node: cst.SimpleString) -> tuple[cst.Call, cst.Arg] | None:
    """The `tl.dot` that is given the name, and the keyword argument that it is."""
    arg = source.parent(node)
    call = tl_call(source, source.parent(arg), "dot")
    named = isinstance(arg, cst.Arg) and arg.keyword is not None and arg.keyword.value == "input_precision"
    return (call, arg) if call is not None and isinstance(arg, cst.Arg) and named else None


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
