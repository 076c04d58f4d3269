"""`tl.dot(q, k)` of loads that were cast to fp32 becomes a dot of what was loaded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import libcst as cst

from sandbox.kernel import Kernel
from sandbox.target import Target
from skills.edit import apply_edits, replace
from skills.facts import Facts
from skills.idioms import assignments, base_param, method_call, operand, tl_call
from skills.skill import Refusal, Site
from skills.triton_source import TL, JitFunction, TritonSource, argument, dotted_name, parse_triton, walk

_NARROW = frozenset({"float16", "bfloat16"})
_MOVED = ("trans", "permute", "reshape", "view")
"""Calls that only move elements."""


def find(kernel: Kernel, facts: Facts, target: Target) -> Iterable[Site | Refusal]:
    """One site for all dots of a kernel whose two operands were stored in 16 bits."""
    source = parse_triton(kernel)
    function = source.functions.get(str(facts["kernel.name"]))
    stored = facts.pairs("launch.pointer_dtypes")
    if function is None:
        return
    dots = [
        call for call, first, second in _upcast_dots(source, function)
        if stored.get(first, set()) == stored.get(second, set()) and stored.get(first, set()) & _NARROW
    ]  # fmt: skip
    if dots:
        variant = {"dots": ",".join(str(source.line(call)) for call in dots)}
        yield Site(source.line(dots[0]), "operands as stored", function.name, variant)


def transform(kernel: Kernel, site: Site, target: Target) -> Kernel | None:
    """Each operand cast back to the type of the tensor it was loaded from, which undoes the cast to fp32."""
    source = parse_triton(kernel)
    function = source.functions.get(site.kernel or "")
    lines = str(site.variant["dots"]).split(",")
    edits = []
    for call, *params in _upcast_dots(source, function) if function is not None else ():
        if str(source.line(call)) not in lines:
            continue
        for value, param in zip(_operands(call), params, strict=True):
            edits.append(replace(source, value, f"{operand(source, value)}.to({param}.dtype.element_ty)"))
    return apply_edits(kernel, source, edits)


def _upcast_dots(source: TritonSource, function: JitFunction) -> Iterator[tuple[cst.Call, str, str]]:
    """Dots of two values that were loaded and cast to fp32, each with the parameters they were loaded from."""
    for node in walk(function.node.body):
        call = tl_call(source, node, "dot")
        if call is None:
            continue
        params = [_stored_as(source, function, value, True, frozenset()) for value in _operands(call)]
        if len(params) == 2 and params[0] is not None and params[1] is not None:
            yield call, params[0], params[1]


def _operands(call: cst.Call) -> list[cst.BaseExpression]:
    given = (argument(call, "input", 0), argument(call, "other", 1))
    return [arg.value for arg in given if arg is not None]


def _stored_as(
    source: TritonSource, function: JitFunction, node: cst.BaseExpression, cast: bool, seen: frozenset[str]
) -> str | None:
    """The parameter an operand is loaded from; `cast` where a cast to fp32 has to stand between. None where it may be
    anything else."""
    if isinstance(node, cst.Name):
        return None if node.value in seen else _name_stored_as(source, function, node.value, cast, seen)
    moved = _moved(source, node)
    if moved is not None:
        return _stored_as(source, function, moved, cast, seen)
    narrow = _cast_to_fp32(source, node)
    if narrow is not None or cast:
        return _stored_as(source, function, narrow, False, seen) if narrow is not None and cast else None
    load = tl_call(source, node, "load")
    pointer = argument(load, "pointer", 0) if load is not None else None
    return base_param(source, function, pointer.value) if pointer is not None else None


def _name_stored_as(
    source: TritonSource, function: JitFunction, name: str, cast: bool, seen: frozenset[str]
) -> str | None:
    """The same for everything a name is given; `x = x.to(tl.float32)` is the cast of what `x` was before."""
    values = list(assignments(source, function.node.body, name))
    others = [v for v in values if (c := _cast_to_fp32(source, v)) is None or dotted_name(c) != name]
    if len(others) < len(values):
        if not cast:
            return None
        cast = False
    found = {_stored_as(source, function, value, cast, seen | {name}) for value in others}
    return found.pop() if len(found) == 1 else None


def _cast_to_fp32(source: TritonSource, node: cst.BaseExpression) -> cst.BaseExpression | None:
    """What `x.to(tl.float32)` casts."""
    call = method_call(node, "to") or method_call(node, "cast")
    if call is None or not isinstance(call.func, cst.Attribute) or len(call.args) != 1:
        return None
    return call.func.value if source.qualified(call.args[0].value) == f"{TL}.float32" else None


def _moved(source: TritonSource, node: cst.BaseExpression) -> cst.BaseExpression | None:
    """What an expression moves the elements of: `tl.trans(x)`, `x.T`."""
    if isinstance(node, cst.Attribute) and node.attr.value == "T":
        return node.value
    call = tl_call(source, node, *_MOVED)
    return call.args[0].value if call is not None and call.args else None
