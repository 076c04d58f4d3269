"""Name `bf16x3` at dots that leave their precision to the backend."""

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


def find(kernel: Kernel, facts: Facts, target: Target) -> Iterable[Site | Refusal]:
    """One site per kernel."""
    source = parse_triton(kernel)
    function = source.functions.get(str(facts["kernel.name"]))
    calls = list(_dots(source, function)) if function is not None else []
    if calls and function is not None:
        yield Site(source.line(calls[0]), "bf16x3", function.name)


def transform(kernel: Kernel, site: Site, target: Target) -> Kernel | None:
    """Every such dot of the kernel and the jit functions it calls."""
    source = parse_triton(kernel)
    function = source.functions.get(site.kernel or "")
    calls = _dots(source, function) if function is not None else ()
    return apply_edits(kernel, source, [add_argument(source, c, 'input_precision="bf16x3"') for c in calls])


def _dots(source: TritonSource, function: JitFunction) -> Iterator[cst.Call]:
    for f in source.callees(function):
        for node in walk(f.node.body):
            call = tl_call(source, node, "dot")
            if call is not None and not any(
                argument(call, n, p) for n, p in (("input_precision", 3), ("allow_tf32", 4))
            ):
                yield call
