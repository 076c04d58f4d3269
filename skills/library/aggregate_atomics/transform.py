"""A block's `tl.atomic_add` on one integer becomes one scalar atomic; each lane's old value follows by a prefix sum."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

import libcst as cst

from sandbox.kernel import Kernel
from sandbox.target import Target
from skills.edit import Edit, apply_edits, insert_before, replace, tl_name
from skills.facts import Facts
from skills.idioms import (
    ATOMICS,
    active_lanes,
    base_param,
    operand,
    order_arguments,
    result_unread,
    taken_names,
    tl_call,
)
from skills.literals import int_value, string_value
from skills.names import fresh_name
from skills.rank import Ranks
from skills.skill import Refusal, Site
from skills.triton_source import TL, JitFunction, TritonSource, argument, parse_triton, walk
from skills.uniform import Uniformity

_SIGNED = ("int32", "int64")
_INTEGERS = (*_SIGNED, "uint32", "uint64")
_ACCESSES = ("load", "store", *ATOMICS)
_BUILTINS = ("range", "min", "max", "abs", "len", "int", "float", "bool", "print")
_LARGEST_LITERAL = 1024
"""A block has at most 2^20 lanes: their sum of a literal up to here is 0 only where no lane is active, in 32 bits."""


@dataclass(frozen=True, slots=True, eq=False)
class _Atomic:
    """A `tl.atomic_add` of a row of lanes to one integer, `address`, whose old values are read."""

    call: cst.Call
    address: str
    counter: str
    """The kernel parameter that `address` starts from."""
    value: cst.BaseExpression
    mask: cst.BaseExpression | None

    @property
    def relaxed(self) -> bool:
        sem = argument(self.call, "sem", 3)
        return sem is not None and string_value(sem.value) == "relaxed"


def find(kernel: Kernel, facts: Facts, target: Target) -> Iterable[Site | Refusal]:
    """One site per kernel, for all such atomics on counters known to be integers."""
    source = parse_triton(kernel)
    function = source.functions.get(str(facts["kernel.name"]))
    if function is None:
        return
    dtypes = facts.pairs("launch.pointer_dtypes")
    integers = {
        a.counter
        for a in _atomics(source, function)
        if (dtypes[a.counter] <= set(_INTEGERS) if a.counter in dtypes else _indexes(source, function, a.call))
    }
    atomics = _independent(source, function, integers)
    if atomics:
        counters = dict.fromkeys(a.counter for a in atomics)
        signed = [c for c in counters if c in dtypes and dtypes[c] <= set(_SIGNED)]
        variant = {"counters": " ".join(counters), "signed": " ".join(signed)}
        yield Site(source.line(atomics[0].call), "one atomic per block", function.name, variant)


def transform(kernel: Kernel, site: Site, target: Target) -> Kernel | None:
    """Every such atomic of the kernel on the site's counters."""
    source = parse_triton(kernel)
    function = source.functions.get(site.kernel or "")
    if function is None:
        return None
    taken = taken_names(function.node)
    signed = str(site.variant["signed"]).split()
    edits: list[Edit] = []
    for atomic in _independent(source, function, str(site.variant["counters"]).split()):
        compared = _compared_with(source, function, atomic) if atomic.counter in signed else None
        edits += _aggregated(source, atomic, taken, compared)
    return apply_edits(kernel, source, edits)


def _atomics(source: TritonSource, function: JitFunction) -> Iterator[_Atomic]:
    uniformity, ranks = Uniformity(source, function), Ranks(source, function)
    for node in walk(function.node.body):
        call = tl_call(source, node, "atomic_add")
        if call is None or result_unread(source, function, call) or any(a.star for a in call.args):
            continue
        pointer, value, active = argument(call, "pointer", 0), argument(call, "val", 1), active_lanes(source, call, 2)
        if pointer is None or value is None or ranks.of(pointer.value) != 1:
            continue
        operands = [value.value, *([active] if active is not None else [])]
        address, counter = uniformity.scalar_of(pointer.value), base_param(source, function, pointer.value)
        if address is None or counter is None or _largest([ranks.of(o) for o in operands]) != 1:
            continue
        if _movable(source, call, operands):
            yield _Atomic(call, address, counter, value.value, active)


def _largest(ranks: list[int | None]) -> int | None:
    known = [r for r in ranks if r is not None]
    return max(known) if len(known) == len(ranks) else None


def _movable(source: TritonSource, call: cst.Call, operands: list[cst.BaseExpression]) -> bool:
    """Whether the operands may be computed in lines before the statement that holds the call.

    They always run with it, and nothing that the statement does before them can change them.
    """
    statement = source.statement(call)
    if not isinstance(statement, cst.SimpleStatementLine) or len(statement.body) != 1:
        return False
    for ancestor in source.ancestors(call):
        if isinstance(ancestor, cst.IfExp | cst.BooleanOperation | cst.Lambda | cst.BaseComp):
            return False
        if ancestor is statement:
            break
    whole = isinstance(source.parent(call), cst.Assign | cst.AnnAssign)
    memory = ATOMICS if whole else ("load", *ATOMICS)
    inside = [n for o in operands for n in walk(o) if isinstance(n, cst.Call)]
    return not any(tl_call(source, n, *memory) or (not whole and _unknown(source, n)) for n in inside)


def _unknown(source: TritonSource, call: cst.Call) -> bool:
    """Whether a call might reach memory in a way that is not read here: descriptors, assembly, functions with accesses
    of their own or of other files."""
    name = source.qualified(call.func) or ""
    if isinstance(call.func, cst.Attribute) and not name.startswith(("triton.", f"{TL}.")):
        method = call.func.attr.value
        return method in ("load", "store", "gather", "scatter", *ATOMICS) or name.partition(".")[0] in source.imports
    own = source.functions.get(name)
    if own is not None:
        return any(tl_call(source, n, *_ACCESSES) is not None for f in source.callees(own) for n in walk(f.node.body))
    if name.startswith("triton."):
        return "descriptor" in name or "inline_asm" in name
    return name not in _BUILTINS


def _independent(source: TritonSource, function: JitFunction, counters: Collection[str]) -> list[_Atomic]:
    """The atomics on these counters whose order beside other accesses means nothing.

    What is read after an atomic could be what another program wrote before its own, and one lane does not order the
    writes of the others. Where no later read is of a buffer that the kernel writes, programs tell each other nothing
    but counts, and those of several counters keep their order.
    """
    found = [a for a in _atomics(source, function) if a.counter in counters]
    calls = [n for n in walk(function.node.body) if isinstance(n, cst.Call)]
    unknown = any(_unknown(source, c) or tl_call(source, c, "atomic_xchg", "atomic_cas") is not None for c in calls)
    accesses = [c for c in calls if tl_call(source, c, *_ACCESSES) is not None]
    written = {_place(source, function, c) for c in accesses if tl_call(source, c, "load") is None}
    counted = {id(a.call) for a in found}
    reads = [
        c
        for c in accesses
        if id(c) not in counted and tl_call(source, c, "store") is None and not result_unread(source, function, c)
    ]

    def waits(atomic: _Atomic) -> bool:
        loops = [a for a in source.ancestors(atomic.call) if isinstance(a, cst.For | cst.While)]
        start = source.span(loops[-1] if loops else source.statement(atomic.call))[0]
        read = {_place(source, function, c) for c in reads if source.span(c)[0] >= start}
        return bool(read & written) or None in read or (None in written and bool(read))

    return [a for a in found if a.relaxed or not (unknown or waits(a))]


def _place(source: TritonSource, function: JitFunction, access: cst.Call) -> str | None:
    """The kernel parameter that an access reaches; None when unclear."""
    pointer = argument(access, "pointer", 0)
    return base_param(source, function, pointer.value) if pointer is not None else None


def _indexes(source: TritonSource, function: JitFunction, call: cst.Call) -> bool:
    """Whether the old value is added to a pointer, which no floating-point number can be."""
    parent = source.parent(call)
    target = parent.targets[0].target if isinstance(parent, cst.Assign) else None
    name = target.value if isinstance(target, cst.Name) else None

    def offset(node: cst.CSTNode) -> bool:
        if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Add | cst.Subtract | cst.Multiply):
            return offset(node.left) or offset(node.right)
        return node is call or (isinstance(node, cst.Name) and node.value == name)

    accesses = [c for n in walk(function.node.body) if (c := tl_call(source, n, "load", "store")) is not None]
    pointers = [p for c in accesses if (p := argument(c, "pointer", 0)) is not None]
    return any(offset(p.value) for p in pointers)


def _compared_with(source: TritonSource, function: JitFunction, atomic: _Atomic) -> int | None:
    """The largest number that the old value is ever asked to equal; None where it is read in another way.

    Where the block's old value is larger than that, so is every lane's: addends are positive, and a sum past the end of
    a signed type is negative.
    """
    statement, addend = source.parent(atomic.call), int_value(atomic.value)
    target = statement.targets[0].target if isinstance(statement, cst.Assign) and len(statement.targets) == 1 else None
    if not isinstance(target, cst.Name) or atomic.mask is None or addend is None or not 0 < addend <= _LARGEST_LITERAL:
        return None
    found: list[int] = []
    for node in walk(function.node.body):
        if not isinstance(node, cst.Name) or node.value != target.value or node is target:
            continue
        comparison = source.parent(node)
        if (
            not isinstance(comparison, cst.Comparison)
            or comparison.left is not node
            or len(comparison.comparisons) != 1
        ):
            return None
        number = int_value(comparison.comparisons[0].comparator)
        if not isinstance(comparison.comparisons[0].operator, cst.Equal | cst.NotEqual) or number is None or number < 0:
            return None
        found.append(number)
    return max(found, default=None)


def _aggregated(source: TritonSource, atomic: _Atomic, taken: set[str], compared: int | None) -> list[Edit]:
    """Addends, their sum and prefixes in lines before the statement, and in it one atomic plus each lane's prefix.

    Where the old value is only compared, the atomic comes first, and the prefixes are left out where none could matter.
    """
    tl, code = tl_name(source), source.code
    addend, total, before = (fresh_name(stem, taken) for stem in ("addend", "total", "before"))
    lines, some = _addends(source, atomic, addend, total, taken)
    parts = [atomic.address, total, *([f"mask={some}"] if some else []), *order_arguments(source, atomic.call)]
    text = f"{code(atomic.call.func)}({', '.join(parts)})"
    prefixes = f"{before} = {tl}.cumsum({addend}, 0) - {addend}"
    lines.append(f"{total} = {tl}.sum({addend}, 0)")
    if compared is None:
        lines.append(prefixes)
    else:
        counted = fresh_name("counted", taken)
        lines += [f"{counted} = {text}", f"{before} = {tl}.zeros_like({addend})"]
        lines += [f"if ({total} != 0) & ({counted} <= {compared}):", f"    {prefixes}"]
        text = counted
    alone = isinstance(source.parent(atomic.call), cst.Assign | cst.AnnAssign | cst.Arg)
    return [
        insert_before(source, atomic.call, lines),
        replace(source, atomic.call, f"{text} + {before}" if alone else f"({text} + {before})"),
    ]


def _addends(
    source: TritonSource, atomic: _Atomic, addend: str, total: str, taken: set[str]
) -> tuple[list[str], str | None]:
    """Lines that compute the addends, 0 where a lane is inactive, and what tells that one is active; None: all are."""
    tl, code, mask = tl_name(source), source.code, atomic.mask
    literal = int_value(atomic.value)
    if literal is not None and 0 < abs(literal) <= _LARGEST_LITERAL and mask is not None:
        return [f"{addend} = {tl}.where({code(mask)}, {code(atomic.value)}, 0)"], f"{total} != 0"
    dtype = f"{atomic.counter}.dtype.element_ty"
    if mask is None:
        return [f"{addend} = {operand(source, atomic.value)}.to({dtype})"], None
    lines, active, some = [], code(mask), fresh_name("some", taken)
    if not isinstance(mask, cst.Name):
        active = fresh_name("active", taken)
        lines.append(f"{active} = {code(mask)}")
    lines.append(f"{addend} = {tl}.where({active}, {code(atomic.value)}, 0).to({dtype})")
    return [*lines, f"{some} = {tl}.max({tl}.where({active}, 1, 0), 0) != 0"], some
