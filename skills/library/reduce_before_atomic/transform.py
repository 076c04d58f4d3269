"""`tl.atomic_add` of a block to one address becomes `tl.sum` and one scalar atomic."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import libcst as cst

from sandbox.kernel import Kernel
from sandbox.target import Target
from skills.edit import Edit, apply_edits, insert_after, insert_before, replace, tl_name
from skills.facts import Facts
from skills.idioms import (
    active_lanes,
    assignments,
    base_param,
    operand,
    order_arguments,
    result_unread,
    taken_names,
    tl_call,
)
from skills.literals import float_value, int_value
from skills.names import fresh_name
from skills.rank import Ranks
from skills.skill import Refusal, Site
from skills.triton_source import JitFunction, TritonSource, argument, parse_triton, walk
from skills.uniform import Uniformity


@dataclass(frozen=True, slots=True, eq=False)
class _Atomic:
    """An unused `tl.atomic_add` whose lanes all hit `address`."""

    call: cst.Call
    counter: str | None
    """The kernel parameter that `address` starts from."""
    address: str
    value: cst.BaseExpression
    mask: str | None
    loop: cst.For | None
    """The innermost loop it stands in directly, when the address does not change there."""


def find(kernel: Kernel, facts: Facts, target: Target) -> Iterable[Site | Refusal]:
    """Per kernel: once after the loop where that is possible, and once per block."""
    source = parse_triton(kernel)
    function = source.functions.get(str(facts["kernel.name"]))
    if function is None:
        return
    atomics = list(_atomics(source, function))
    if not atomics:
        return
    line = source.line(atomics[0].call)
    dtypes = facts.pairs("launch.pointer_dtypes")
    counters = {a.counter for a in atomics if a.counter in dtypes}
    wide = " ".join(sorted(c for c in counters if c is not None and dtypes[c] <= {"int64", "uint64"}))
    if any(_carried_zero(source, a) is not None for a in atomics):
        yield Site(line, "one atomic per program", function.name, {"mode": "program", "wide": wide})
    yield Site(line, "one atomic per block", function.name, {"mode": "block", "wide": wide})


def transform(kernel: Kernel, site: Site, target: Target) -> Kernel | None:
    """Every such atomic of the kernel."""
    source = parse_triton(kernel)
    function = source.functions.get(site.kernel or "")
    if function is None:
        return None
    edits: list[Edit] = []
    taken = taken_names(function.node)
    for atomic in _atomics(source, function):
        name = fresh_name("block_total" if site.variant["mode"] == "block" else "total", taken)
        zero = _carried_zero(source, atomic) if site.variant["mode"] == "program" else None
        total = _summed(source, atomic, wide=atomic.counter in str(site.variant.get("wide", "")).split())
        if zero is None:
            edits += _once_per_block(source, atomic, name, total)
        else:
            edits += _after_loop(source, atomic, name, total, zero)
    return apply_edits(kernel, source, edits)


def _atomics(source: TritonSource, function: JitFunction) -> Iterator[_Atomic]:
    uniformity, ranks = Uniformity(source, function), Ranks(source, function)
    for node in walk(function.node.body):
        call = tl_call(source, node, "atomic_add")
        if call is None or not result_unread(source, function, call):
            continue
        pointer, value, active = argument(call, "pointer", 0), argument(call, "val", 1), active_lanes(source, call, 2)
        if pointer is None or value is None:
            continue
        address = uniformity.scalar_of(pointer.value)
        if address is None or not uniformity.is_block(pointer.value):
            continue
        if not uniformity.is_block(value.value) and (active is None or ranks.of(active) == 0):
            continue  # The sum would be of one lane.
        yield _Atomic(
            call,
            base_param(source, function, pointer.value),
            address,
            value.value,
            None if active is None else source.code(active),
            _loop_of(source, call, address),
        )


def _loop_of(source: TritonSource, call: cst.Call, address: str) -> cst.For | None:
    """The loop whose body holds the statement directly, if nothing in the address is assigned there."""
    block = source.parent(source.statement(call))
    loop = source.parent(block)
    if not isinstance(loop, cst.For):
        return None
    used = set(re.findall(r"[A-Za-z_]\w*", address))
    assigned = {n.value for n in walk(loop.target) if isinstance(n, cst.Name)}
    for node in walk(loop.body):
        if isinstance(node, cst.AssignTarget | cst.AugAssign | cst.AnnAssign):
            assigned |= {n.value for n in walk(node.target) if isinstance(n, cst.Name)}
    return None if used & assigned else loop


def _summed(source: TritonSource, atomic: _Atomic, *, wide: bool) -> str:
    """The sum over the block; with `wide` in 64 bits, as the counter has, unless a literal is counted."""
    tl = tl_name(source)
    value = source.code(atomic.value)
    if atomic.mask is not None:
        value = f"{tl}.where({atomic.mask}, {value}, 0)"
    if wide and int_value(atomic.value) is None:
        value = f"{value if atomic.mask is not None else operand(source, atomic.value)}.to({tl}.int64)"
    return f"{tl}.sum({value})"


def _once_per_block(source: TritonSource, atomic: _Atomic, name: str, total: str) -> list[Edit]:
    statement = source.statement(atomic.call)
    return [
        insert_before(source, statement, [f"{name} = {total}"]),
        replace(source, atomic.call, _scalar_atomic(source, atomic, name)),
    ]


def _scalar_atomic(source: TritonSource, atomic: _Atomic, name: str) -> str:
    """The atomic with a scalar address; nothing is sent when there is nothing to add. Other arguments stay."""
    parts = [atomic.address, name, f"mask={name} != 0", *order_arguments(source, atomic.call)]
    return f"{source.code(atomic.call.func)}({', '.join(parts)})"


def _carried_zero(source: TritonSource, atomic: _Atomic) -> str | None:
    """The start value of a loop-carried sum, when its type is known: counts are int32, fp32 values say so."""
    if atomic.loop is None:
        return None
    if int_value(atomic.value) is not None:
        return "0"
    text = source.code(atomic.value)
    if float_value(atomic.value) is not None or re.search(r"\.to\((\w+\.)?float32\)$", text):
        return "0.0"
    if isinstance(atomic.value, cst.Name):
        given = [source.code(v) for v in assignments(source, atomic.loop.body, atomic.value.value)]
        if any(re.search(r"\.to\((\w+\.)?float32\)$", g) for g in given):
            return "0.0"
    return None


def _after_loop(source: TritonSource, atomic: _Atomic, name: str, total: str, zero: str) -> list[Edit]:
    assert atomic.loop is not None
    return [
        insert_before(source, atomic.loop, [f"{name} = {zero}"]),
        replace(source, atomic.call, f"{name} += {total}"),
        insert_after(source, atomic.loop, [_scalar_atomic(source, atomic, name)]),
    ]
