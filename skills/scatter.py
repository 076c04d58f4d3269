"""Additions of a row of lanes to the place that one loaded index names: what may be merged in registers, and how."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import libcst as cst

from skills.address import alone, targets_of
from skills.edit import tl_name
from skills.facts import Facts
from skills.idioms import (
    ATOMICS,
    active_lanes,
    assignments,
    base_param,
    method_call,
    names_in,
    needs_parentheses,
    order_arguments,
    tl_call,
    variables,
)
from skills.rank import Ranks
from skills.triton_source import JitFunction, TritonSource, argument, walk

_NARROW = frozenset({"float32", "float16", "bfloat16"})
_EXACT = frozenset({"float64", "int32", "int64", "uint32", "uint64"})


@dataclass(frozen=True, slots=True, eq=False)
class Scatter:
    """The one atomic of a kernel, an addition whose result nobody reads, to a buffer reached by nothing else."""

    call: cst.Call
    buffer: str
    """The kernel parameter that the pointer starts from."""
    pointer: cst.BaseExpression
    value: cst.BaseExpression
    mask: cst.BaseExpression | None
    order: str
    """Ordering and scope as written, each with a comma before it."""

    def sent(self, source: TritonSource, value: str, names: Mapping[str, str]) -> str:
        """The atomic as a statement that adds `value`; what `names` holds is replaced in pointer and mask."""
        mask = "" if self.mask is None else f", mask={replaced(source, self.mask, names)}"
        return f"{source.code(self.call.func)}({replaced(source, self.pointer, names)}, {value}{mask}{self.order})"


def scatter_of(source: TritonSource, function: JitFunction) -> Scatter | None:
    """The kernel's scatter; None where it has another atomic, or reads or writes the buffer in another way."""
    calls = [n for f in source.callees(function) for n in walk(f.node.body) if isinstance(n, cst.Call)]
    atomics = [c for c in calls if tl_call(source, c, *ATOMICS) is not None]
    if len(atomics) != 1 or tl_call(source, atomics[0], "atomic_add") is None:
        return None
    call = atomics[0]
    pointer, value = argument(call, "pointer", 0), argument(call, "val", 1)
    if pointer is None or value is None or not alone(source, call):
        return None
    buffer = base_param(source, function, pointer.value)
    if buffer is None or any(a.star for a in call.args) or source.in_jit(call) is not function:
        return None
    if any(c is not call and _reaches(source, function, c, buffer) for c in calls):
        return None
    order = "".join(f", {given}" for given in order_arguments(source, call))
    return Scatter(call, buffer, pointer.value, value.value, active_lanes(source, call, 2), order)


def _reaches(source: TritonSource, function: JitFunction, call: cst.Call, buffer: str) -> bool:
    """Whether a call may read or write the buffer: an access that starts from it or from something unknown, or a
    function that is handed it."""
    pointer = argument(call, "pointer", 0)
    if tl_call(source, call, "load", "store") is not None and pointer is not None:
        inside = source.in_jit(call) is function
        return inside and base_param(source, function, pointer.value) in (buffer, None)
    return any(buffer in names_in(a.value) for a in call.args)


def sum_type(source: TritonSource, scatter: Scatter, facts: Facts) -> str | None:
    """The type a sum of addends is kept in: fp32 for what is no wider, the buffer's own for fp64 and integers.

    None where the launches do not say, or say several: a sum must lose nothing that the single additions keep.
    """
    known = facts.pairs("launch.pointer_dtypes").get(scatter.buffer, set())
    if known and known <= _NARROW:
        return f"{tl_name(source)}.float32"
    return f"{scatter.buffer}.dtype.element_ty" if len(known) == 1 and known <= _EXACT else None


def in_type(source: TritonSource, value: cst.BaseExpression, dtype: str) -> str:
    """The text of a value converted to a type."""
    text = source.code(value)
    return f"({text}).to({dtype})" if needs_parentheses(value) else f"{text}.to({dtype})"


def replaced(source: TritonSource, node: cst.BaseExpression, names: Mapping[str, str]) -> str:
    """The expression's text with other text for some of the variables it reads."""
    start, end = source.span(node)
    pieces, at = [], start
    for name in variables(node):
        if name.value in names:
            first, last = source.span(name)
            pieces += [source.data[at:first].decode(), names[name.value]]
            at = last
    return "".join([*pieces, source.data[at:end].decode()])


def loaded_index(source: TritonSource, function: JitFunction, value: cst.BaseExpression) -> str | None:
    """The type of a scalar that is loaded, as an expression of the kernel; None for anything else."""
    cast = method_call(value, "to")
    if cast is not None and isinstance(cast.func, cst.Attribute):
        given = argument(cast, "dtype", 0)
        inner = loaded_index(source, function, cast.func.value)
        return source.code(given.value) if given is not None and inner is not None else None
    load = tl_call(source, value, "load")
    pointer = argument(load, "pointer", 0) if load is not None else None
    if load is None or pointer is None or Ranks(source, function).of(load) != 0:
        return None
    param = base_param(source, function, pointer.value)
    return f"{param}.dtype.element_ty" if param is not None else None


def lanes_of(source: TritonSource, function: JitFunction, node: cst.BaseExpression) -> str | None:
    """The length of a row of lanes, from the one `tl.arange(0, N)` it is made of; None for a scalar or a tile."""
    if Ranks(source, function).of(node) != 1:
        return None
    local = bindings(function)
    ends: set[str] = set()
    seen: set[str] = set()
    queue: list[cst.BaseExpression] = [node]
    while queue:
        current = queue.pop()
        for call in (c for n in walk(current) if (c := tl_call(source, n, "arange")) is not None):
            end = argument(call, "end", 1)
            ends.add(source.code(end.value) if end is not None and not names_in(end.value) & local.keys() else "")
        for name in names_in(current) - seen:
            seen.add(name)
            queue += assignments(source, function.node.body, name)
    text = next(iter(ends)) if len(ends) == 1 else ""
    return text if re.fullmatch(r"\w+", text) else None


def bindings(function: JitFunction) -> dict[str, list[cst.CSTNode]]:
    """Every variable of a kernel with the statements that give it a value, in source order."""
    found: dict[str, list[cst.CSTNode]] = {}
    for node in walk(function.node.body):
        for name in (n for target in targets_of(node) for n in walk(target) if isinstance(n, cst.Name)):
            found.setdefault(name.value, []).append(node)
    return found
