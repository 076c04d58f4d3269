"""Name `bf16x3` at dots that leave their precision to the backend, or allow TF32, which is less exact."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import libcst as cst

from sandbox.kernel import Kernel
from sandbox.target import Target
from skills.edit import Edit, add_argument, apply_edits, replace
from skills.facts import Facts
from skills.idioms import tl_call
from skills.skill import Refusal, Site
from skills.triton_source import JitFunction, TritonSource, argument, parse_triton, walk

_SPLIT = '"bf16x3"'


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
    return apply_edits(kernel, source, [_edit(source, c) for c in calls])


def _edit(source: TritonSource, call: cst.Call) -> Edit:
    allowed = argument(call, "allow_tf32", 4)
    if allowed is None:
        return add_argument(source, call, f"input_precision={_SPLIT}")
    condition = "" if _is_true(allowed) else f' if {source.code(allowed.value)} else "ieee"'
    return replace(source, allowed, f"input_precision={_SPLIT}{condition}")


def _dots(source: TritonSource, function: JitFunction) -> Iterator[cst.Call]:
    for f in source.callees(function):
        for node in walk(f.node.body):
            call = tl_call(source, node, "dot")
            if call is None or argument(call, "input_precision", 3):
                continue
            allowed = argument(call, "allow_tf32", 4)
            if allowed is None or (allowed.keyword is not None and (_is_true(allowed) or _is_constexpr(allowed, f))):
                yield call


def _is_true(arg: cst.Arg) -> bool:
    return isinstance(arg.value, cst.Name) and arg.value.value == "True"


def _is_constexpr(arg: cst.Arg, function: JitFunction) -> bool:
    return isinstance(arg.value, cst.Name) and arg.value.value in function.constexprs
