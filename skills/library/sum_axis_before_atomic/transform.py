"""`tl.atomic_add` of a tile whose address does not depend on an axis becomes `tl.sum` along it and a row of atomics."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import libcst as cst

from sandbox.kernel import Kernel
from sandbox.target import Target
from skills.address import Addresses, alone
from skills.axes import Axes
from skills.edit import Edit, apply_edits, drop_line, insert_before, replace, tl_name
from skills.facts import Facts
from skills.idioms import (
    active_lanes,
    assignments,
    base_param,
    method_call,
    names_in,
    operand,
    order_arguments,
    taken_names,
    tl_call,
)
from skills.names import fresh_name
from skills.skill import Refusal, Site
from skills.triton_source import JitFunction, TritonSource, argument, parse_triton, walk

_HALVES = ("float16", "bfloat16")


@dataclass(frozen=True, slots=True, eq=False)
class _Atomic:
    """An unread `tl.atomic_add` of a tile whose lanes along `axis`, 0 or 1, hit one address."""

    call: cst.Call
    counter: str
    """The kernel parameter that the address starts from."""
    address: str
    """Text of the address without the axis."""
    axis: int
    value: cst.BaseExpression
    mask: cst.BaseExpression | None


def find(kernel: Kernel, facts: Facts, target: Target) -> Iterable[Site | Refusal]:
    """One site per kernel, for all such atomics."""
    source = parse_triton(kernel)
    function = source.functions.get(str(facts["kernel.name"]))
    if function is None:
        return
    atomics = list(_atomics(source, function))
    if atomics:
        dtypes = facts.pairs("launch.pointer_dtypes")
        variant = {a.counter: " ".join(sorted(dtypes.get(a.counter, ()))) for a in atomics}
        yield Site(source.line(atomics[0].call), "one atomic per column", function.name, variant)


def transform(kernel: Kernel, site: Site, target: Target) -> Kernel | None:
    """Every such atomic of the kernel."""
    source = parse_triton(kernel)
    function = source.functions.get(site.kernel or "")
    if function is None:
        return None
    edits: list[Edit] = []
    taken = taken_names(function.node)
    for atomic in _atomics(source, function):
        name = fresh_name("axis_total", taken)
        summed = _summed(source, function, atomic, str(site.variant.get(atomic.counter, "")).split())
        parts = [atomic.address, name, f"mask={name} != 0", *order_arguments(source, atomic.call)]
        edits += [
            insert_before(source, atomic.call, [f"{name} = {summed}"]),
            replace(source, atomic.call, f"{source.code(atomic.call.func)}({', '.join(parts)})"),
            *_left_over(source, function, atomic),
        ]
    return apply_edits(kernel, source, edits)


def _atomics(source: TritonSource, function: JitFunction) -> Iterator[_Atomic]:
    axes, addresses = Axes(source, function), Addresses(source, function)
    for node in walk(function.node.body):
        call = tl_call(source, node, "atomic_add")
        if call is None or not alone(source, call) or any(a.star for a in call.args):
            continue
        pointer, value, active = argument(call, "pointer", 0), argument(call, "val", 1), active_lanes(source, call, 2)
        if pointer is None or value is None or axes.rank(pointer.value) != 2:
            continue
        varying, counter = axes.varying(pointer.value), base_param(source, function, pointer.value)
        if varying is None or len(varying) != 1 or counter is None:
            continue
        (gone,) = {-1, -2} - varying
        operands = [axes.varying(o) for o in (value.value, active) if o is not None]
        if None in operands or not any(gone in o for o in operands if o is not None):
            continue  # The sum would be of one lane.
        address = addresses.without_axis(pointer.value, gone)
        if address is not None:
            yield _Atomic(call, counter, address, gone + 2, value.value, active)


def _left_over(source: TritonSource, function: JitFunction, atomic: _Atomic) -> Iterator[Edit]:
    """The lines of names that only the tile's address was made of."""
    pointer = argument(atomic.call, "pointer", 0)
    for name in sorted(names_in(pointer.value)) if pointer is not None else ():
        uses = [n for n in walk(function.node.body) if isinstance(n, cst.Name) and n.value == name]
        values = list(assignments(source, function.node.body, name))
        if len(uses) == 2 and len(values) == 1 and isinstance(source.parent(values[0]), cst.Assign):
            statement = source.statement(values[0])
            plain = isinstance(statement, cst.SimpleStatementLine) and len(statement.body) == 1
            if plain and not re.search(rf"\b{name}\b", atomic.address):
                yield drop_line(source, statement)


def _summed(source: TritonSource, function: JitFunction, atomic: _Atomic, dtypes: list[str]) -> str:
    """The sum along the axis in the type that the counter has, since every addend was converted to it before; fp16 and
    bf16 are summed as fp32."""
    tl, code = tl_name(source), source.code
    value = operand(source, atomic.value)
    if atomic.mask is not None:
        value = f"{tl}.where({code(atomic.mask)}, {code(atomic.value)}, 0)"
    wide = bool(dtypes) and all(d in (*_HALVES, "float32") for d in dtypes)
    if not wide:
        value += f".to({atomic.counter}.dtype.element_ty)"
    elif not _is_float32(source, function, atomic.value):
        value += f".to({tl}.float32)"
    return f"{tl}.sum({value}, {atomic.axis})"


def _is_float32(source: TritonSource, function: JitFunction, value: cst.BaseExpression) -> bool:
    """Whether a value is converted to fp32 where it is written, or where its name gets each of its values."""
    if isinstance(value, cst.Name):
        given = list(assignments(source, function.node.body, value.value))
        return bool(given) and all(not isinstance(g, cst.Name) and _is_float32(source, function, g) for g in given)
    cast = method_call(value, "to")
    dtype = argument(cast, "dtype", 0) if cast is not None else None
    return dtype is not None and (source.qualified(dtype.value) or "").endswith("language.float32")
