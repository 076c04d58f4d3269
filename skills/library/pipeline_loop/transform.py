"""`for i in range(...)` around loads becomes `for i in tl.range(..., num_stages=2)`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import libcst as cst

from sandbox.kernel import Kernel
from sandbox.target import Target
from skills.edit import add_argument, apply_edits, replace, tl_name
from skills.facts import Facts
from skills.idioms import tl_call
from skills.skill import Refusal, Site
from skills.triton_source import JitFunction, TritonSource, dotted_name, parse_triton, walk


def find(kernel: Kernel, facts: Facts, target: Target) -> Iterable[Site | Refusal]:
    """Two stages, then three."""
    source = parse_triton(kernel)
    function = source.functions.get(str(facts["kernel.name"]))
    if function is None:
        return
    loops = list(_loops(source, function))
    for stages in (2, 3) if loops else ():
        yield Site(source.line(loops[0]), f"num_stages={stages}", function.name, {"stages": stages})


def transform(kernel: Kernel, site: Site, target: Target) -> Kernel | None:
    """Every innermost loop of the kernel that loads."""
    source = parse_triton(kernel)
    function = source.functions.get(site.kernel or "")
    edits = []
    for loop in _loops(source, function) if function is not None else ():
        edits.append(replace(source, loop.func, f"{tl_name(source)}.range"))
        edits.append(add_argument(source, loop, f"num_stages={site.variant['stages']}"))
    return apply_edits(kernel, source, edits)


def _loops(source: TritonSource, function: JitFunction) -> Iterator[cst.Call]:
    """The `range(...)` calls of innermost loops with a block load, no dot, and no early exit."""
    for node in walk(function.node.body):
        if not (
            isinstance(node, cst.For) and isinstance(node.iter, cst.Call) and dotted_name(node.iter.func) == "range"
        ):
            continue
        inside = list(walk(node.body))
        if any(isinstance(n, cst.For | cst.While | cst.Break | cst.Continue) for n in inside):
            continue
        loads = any(tl_call(source, n, "load") is not None for n in inside)
        blocked = any(
            tl_call(source, n, "dot", "dot_scaled", "debug_barrier", "atomic_cas") is not None for n in inside
        )
        if loads and not blocked:
            yield node.iter
