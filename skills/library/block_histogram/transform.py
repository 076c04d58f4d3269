"""`tl.atomic_add(table + x, 1)` for every loaded value becomes `tl.histogram` of the block and one atomic per bin."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import libcst as cst

from sandbox.kernel import Kernel
from sandbox.target import Target
from skills.address import Addresses, alone
from skills.edit import Edit, add_argument, add_constexpr_param, apply_edits, indentation, replace, tl_name
from skills.facts import Facts
from skills.idioms import (
    active_lanes,
    assignments,
    base_param,
    bound_argument,
    method_call,
    names_in,
    operand,
    order_arguments,
    taken_names,
    tl_call,
)
from skills.knobs import launch_knobs, tile_names
from skills.literals import int_value
from skills.names import fresh_name
from skills.rank import Ranks
from skills.skill import Refusal, Site
from skills.triton_source import JitFunction, TritonSource, argument, dotted_name, parse_triton, walk

_INTEGERS = ("int32", "int64", "uint32", "uint64")
_MOST_BINS = 1024
"""Every block has a table of them in LDS, of 32 bits each, and one atomic for each that it met."""


@dataclass(frozen=True, slots=True, eq=False)
class _Count:
    """An unread `tl.atomic_add` of 1 to the elements of `table` that a row of lanes with loaded values chooses."""

    call: cst.Call
    table: str
    """The kernel parameter; `index` counts its elements from the first."""
    index: tuple[cst.BaseExpression, ...]
    """The addends of the index. The first has lanes."""
    conditions: tuple[cst.BaseExpression, ...]
    """What a lane that counts fulfils: the mask, and a weight of 0 or 1."""


def find(kernel: Kernel, facts: Facts, target: Target) -> Iterable[Site | Refusal]:
    """One site per table that is known to be of integers, whole and small."""
    source = parse_triton(kernel)
    function = source.functions.get(str(facts["kernel.name"]))
    if function is None:
        return
    known, sizes = facts.pairs("launch.pointer_dtypes"), facts.pairs("launch.pointer_elements")
    block = _block(source, function)
    for count in _counts(source, function):
        dtypes = known.get(count.table, set())
        held = [int(n) if n.isdigit() else None for n in sizes.get(count.table, ())]
        fits = bool(held) and all(n is not None and 1 < n <= min(_MOST_BINS, block or _MOST_BINS) for n in held)
        if fits and dtypes and dtypes <= set(_INTEGERS) and _tables(source, function, count.table) is not None:
            loaded = {base_param(source, function, p) for p in _load_pointers(source, function, count)}
            plain = bool(loaded) and all(p is not None and known.get(p) == {"int32"} for p in loaded)
            variant: dict[str, bool | int | float | str] = {"table": count.table, "int32": plain}
            yield Site(source.line(count.call), f"histogram of each block in {count.table}", function.name, variant)


def transform(kernel: Kernel, site: Site, target: Target) -> Kernel | None:
    """The counts of the site's table; their launches say how many bins it has, 0 where they are too many."""
    source = parse_triton(kernel)
    function = source.functions.get(site.kernel or "")
    tables = _tables(source, function, str(site.variant["table"])) if function is not None else None
    if function is None or tables is None:
        return None
    taken = taken_names(function.node)
    bins = fresh_name("BINS", taken)
    edits: list[Edit] = [add_constexpr_param(source, function, {bins: 0})]
    for launch, tensor in zip(source.launches_of(function.name), tables, strict=True):
        size = f"{tensor}.numel()"
        host = next(local for local, full in source.imports.items() if full == "triton")
        text = f"{bins}={host}.next_power_of_2({size}) if {size} <= {_MOST_BINS} else 0"
        edits.append(add_argument(source, launch.call, text))
    for count in _counts(source, function):
        if count.table == site.variant["table"]:
            edits.append(_counted(source, count, bins, taken, int32=bool(site.variant["int32"])))
    return apply_edits(kernel, source, edits)


def _counts(source: TritonSource, function: JitFunction) -> Iterator[_Count]:
    """None in a kernel that takes histograms already, or where a caller may give no table."""
    calls = [n for n in walk(function.node.body) if isinstance(n, cst.Call)]
    if any(tl_call(source, n, "histogram") is not None or method_call(n, "histogram") is not None for n in calls):
        return
    ranks, addresses = Ranks(source, function), Addresses(source, function)
    for call in (c for n in calls if (c := tl_call(source, n, "atomic_add")) is not None):
        pointer, value, mask = argument(call, "pointer", 0), argument(call, "val", 1), active_lanes(source, call, 2)
        if pointer is None or value is None or not alone(source, call) or any(a.star for a in call.args):
            continue
        if any(isinstance(a, cst.If | cst.While) for a in source.ancestors(call)):
            continue
        addends = addresses.addends(pointer.value, scalars=True)
        tables = [a for a in addends if base_param(source, function, a) is not None and ranks.of(a) == 0]
        table = dotted_name(tables[0]) if len(tables) == 1 else None
        index = sorted((a for a in addends if a is not tables[0]), key=lambda a: -(ranks.of(a) or 0)) if table else []
        if table is None or any(assignments(source, function.node.body, table)):
            continue
        if [ranks.of(a) for a in index] != [1, *(0 for _ in index[1:])] or not _from_memory(source, function, index[0]):
            continue
        weight = _weight(source, function, value.value)
        given = (mask,) if mask is not None else ()
        if weight is not None and all((ranks.of(c) or 0) <= 1 for c in (*given, *weight)):
            yield _Count(call, table, tuple(index), (*given, *weight))


def _from_memory(source: TritonSource, function: JitFunction, node: cst.BaseExpression) -> bool:
    """Whether an expression is loaded or computed from what was, so that lanes may share a bin."""
    seen: set[str] = set()
    queue: list[cst.BaseExpression] = [node]
    while queue:
        current = queue.pop()
        if any(tl_call(source, n, "load") is not None for n in walk(current)):
            return True
        for name in names_in(current) - seen:
            seen.add(name)
            queue += assignments(source, function.node.body, name)
    return False


def _load_pointers(source: TritonSource, function: JitFunction, count: _Count) -> Iterator[cst.BaseExpression]:
    """The pointers that the index is loaded from, where it is a name that is only ever loaded, and at most literals."""
    if not isinstance(count.index[0], cst.Name) or any(int_value(a) is None for a in count.index[1:]):
        return
    values = list(assignments(source, function.node.body, count.index[0].value))
    loads = [c for v in values if (c := tl_call(source, v, "load")) is not None]
    pointers = [p.value for c in loads if (p := argument(c, "pointer", 0)) is not None]
    if len(pointers) == len(values):
        yield from pointers


def _weight(
    source: TritonSource, function: JitFunction, value: cst.BaseExpression
) -> tuple[cst.BaseExpression, ...] | None:
    """The conditions under which an addend is 1 and not 0; None for any other addend."""
    if int_value(value) == 1:
        return ()
    chosen = tl_call(source, value, "where")
    if chosen is not None and len(chosen.args) == 3 and [int_value(a.value) for a in chosen.args[1:]] == [1, 0]:
        return (chosen.args[0].value,)
    cast = method_call(value, "to")
    inner = cast.func.value if cast is not None and isinstance(cast.func, cst.Attribute) else None
    return (inner,) if inner is not None and _is_boolean(source, function, inner) else None


def _is_boolean(source: TritonSource, function: JitFunction, node: cst.BaseExpression) -> bool:
    if isinstance(node, cst.Name):
        given = list(assignments(source, function.node.body, node.value))
        return bool(given) and all(not isinstance(g, cst.Name) and _is_boolean(source, function, g) for g in given)
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.BitAnd | cst.BitOr):
        return _is_boolean(source, function, node.left) and _is_boolean(source, function, node.right)
    return isinstance(node, cst.Comparison)


def _block(source: TritonSource, function: JitFunction) -> int | None:
    """The largest block size that a launch gives; None where none is written there."""
    known = [launch_knobs(source, function, launch) for launch in source.launches_of(function.name)]
    return max((k[n].value or 0 for k in known for n in tile_names(source, function, k)), default=None)


def _tables(source: TritonSource, function: JitFunction, table: str) -> list[str] | None:
    """The name of the table's tensor at every launch; None where one is not a name, or the host lacks Triton's."""
    given = [bound_argument(function, launch, table) for launch in source.launches_of(function.name)]
    names = [dotted_name(g) for g in given if g is not None]
    known = [n for n in names if n is not None and n != "None"]
    return known if known and len(known) == len(given) and "triton" in source.imports.values() else None


def _counted(source: TritonSource, count: _Count, bins: str, taken: set[str], *, int32: bool) -> Edit:
    """The histogram where the table is small, and the atomics as they were where it is not."""
    tl, code, statement = tl_name(source), source.code, source.statement(count.call)
    value, lines = code(count.index[0]), []
    first = value if int32 else f"{operand(source, count.index[0])}.to({tl}.int64)"
    if not int32 or len(count.index) > 1 or not isinstance(count.index[0], cst.Name):
        value = fresh_name("index", taken)
        lines = [f"{value} = {' + '.join([first, *(code(a) for a in count.index[1:])])}"]
    counts, places = fresh_name("counts", taken), fresh_name("bins", taken)
    inside = " & ".join([*(operand(source, c) for c in count.conditions), f"({value} >= 0)", f"({value} < {bins})"])
    narrow = value if int32 else f"{value}.to({tl}.int32)"
    arguments = [f"{count.table} + {places}", counts, f"mask={counts} != 0", *order_arguments(source, count.call)]
    lines += [
        f"{counts} = {tl}.histogram({narrow}, {bins}, mask={inside})",
        f"{places} = {tl}.arange(0, {bins})",
        f"{code(count.call.func)}({', '.join(arguments)})",
    ]
    step = "\n" + indentation(source, count.call)
    kept = code(statement).replace("\n", "\n    ")
    return replace(source, statement, step.join([f"if {bins}:", *(f"    {x}" for x in lines), "else:", f"    {kept}"]))
