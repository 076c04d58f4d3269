"""Renumber program ids at the place where the kernel reads them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import libcst as cst

from sandbox.kernel import Kernel
from sandbox.target import Target
from skills.edit import apply_edits, insert_after, insert_function_before, tl_name
from skills.facts import Facts
from skills.idioms import names_in, program_axis, tl_call
from skills.library.pid_swizzle.order import GROUPED, REMAP
from skills.skill import Refusal, Site
from skills.triton_source import JitFunction, TritonSource, parse_triton, walk

_GROUP = 8


@dataclass(frozen=True, slots=True, eq=False)
class _Ids:
    """Statements `name = tl.program_id(axis)` of a kernel, by axis."""

    names: dict[int, tuple[str, cst.Assign]]


def find(kernel: Kernel, facts: Facts, target: Target) -> Iterable[Site | Refusal]:
    """The XCD order for one- and two-dimensional grids; for the latter also in groups, or a batch's tiles in a row, the
    only one for devices with one L2."""
    source = parse_triton(kernel)
    function = source.functions.get(str(facts["kernel.name"]))
    several = target.board.xcds > 1
    ordered = r"xcd|swizzle2d" if several else r"swizzle2d|num_programs"
    if function is None or re.search(ordered, "".join(source.code(f.node) for f in source.callees(function)), re.I):
        return
    ids = _ids(source, function)
    if ids is None or not _has_reuse(source, function):
        return
    line = source.line(ids.names[0][1])
    if 1 in ids.names and _is_batched(source, function, ids):
        label = "xcd, batch by batch" if several else "batch by batch"
        yield Site(line, label, function.name, {"order": "batches"})
    if not several:
        return
    yield Site(line, "xcd", function.name, {"order": "as it was"})
    if 1 in ids.names and _is_product(source, function, ids):
        yield Site(line, f"xcd, groups of {_GROUP}", function.name, {"order": "groups"})


def transform(kernel: Kernel, site: Site, target: Target) -> Kernel | None:
    """Lines behind the last `tl.program_id` the order depends on, and the helper before the kernel."""
    source = parse_triton(kernel)
    function = source.functions.get(site.kernel or "")
    ids = _ids(source, function) if function is not None else None
    if function is None or ids is None:
        return None
    tl, xcds = tl_name(source), target.board.xcds
    first = ids.names[0][0]
    helpers = REMAP.replace("tl.", f"{tl}.") if xcds > 1 else ""
    last = ids.names[0][1]
    if 1 not in ids.names:
        lines = [f"{first} = _neighbours_on_one_xcd({first}, {tl}.num_programs(0), {xcds})"]
    else:
        second, statement = ids.names[1]
        last = statement if source.span(statement) > source.span(last) else last
        size_0, size_1 = f"{tl}.num_programs(0)", f"{tl}.num_programs(1)"
        tile = f"{first} + {second} * {size_0}"
        if xcds > 1:
            tile = f"_neighbours_on_one_xcd({tile}, {size_0} * {size_1}, {xcds})"
        lines = [f"tile = {tile}"]
        if site.variant["order"] == "batches":
            lines += [f"{first}, {second} = tile // {size_1}, tile % {size_1}"]
        elif site.variant["order"] == "groups":
            helpers += "\n\n" + GROUPED.replace("tl.", f"{tl}.")
            lines += [f"{first}, {second} = _grouped_tiles(tile, {size_0}, {size_1}, {_GROUP})"]
        else:
            lines += [f"{first}, {second} = tile % {size_0}, tile // {size_0}"]
    if "tile" in {n.value for n in walk(function.node) if isinstance(n, cst.Name)}:
        lines = [re.sub(r"\btile\b", "tile_id", line) for line in lines]
    added = [insert_function_before(source, function, helpers)] if helpers else []
    return apply_edits(kernel, source, [*added, insert_after(source, last, lines)])


def _ids(source: TritonSource, function: JitFunction) -> _Ids | None:
    """None when the kernel reads no id of axis 0 into a name of its own, or reads one elsewhere as well."""
    names: dict[int, tuple[str, cst.Assign]] = {}
    reads = 0
    for node in walk(function.node.body):
        call = tl_call(source, node, "program_id")
        if call is None:
            continue
        reads += 1
        number = program_axis(call)
        parent = source.parent(call)
        if number is None or not isinstance(parent, cst.Assign) or len(parent.targets) != 1:
            return None
        target = parent.targets[0].target
        if not isinstance(target, cst.Name) or number in names:
            return None
        names[number] = (target.value, parent)
    same_block = {id(source.parent(source.statement(a))) for _, a in names.values()}
    if 0 not in names or reads != len(names) or len(same_block) != 1 or _used_between(source, names):
        return None
    return _Ids(names)


def _used_between(source: TritonSource, names: Mapping[int, tuple[str, cst.Assign]]) -> bool:
    """Whether an id is used before the last one is read: the new order would come too late for it."""
    statements = [source.statement(assign) for _, assign in names.values()]
    block = source.parent(statements[0])
    inside = list(getattr(block, "body", ()))
    first, last = min(map(inside.index, statements)), max(map(inside.index, statements))
    ids = {name for name, _ in names.values()}
    between = [s for s in inside[first:last] if s not in statements]
    return any(isinstance(n, cst.Name) and n.value in ids for s in between for n in walk(s))


def _has_reuse(source: TritonSource, function: JitFunction) -> bool:
    """Whether tiles are loaded inside a loop that multiplies them: then neighbours read the same operands."""
    for f in source.callees(function):
        for node in walk(f.node.body):
            if isinstance(node, cst.For | cst.While):
                inside = list(walk(node.body))
                if any(tl_call(source, n, "dot", "dot_scaled") is not None for n in inside):
                    return True
    return False


def _is_batched(source: TritonSource, function: JitFunction, ids: _Ids) -> bool:
    """Whether the first id chooses a batch and the second one a tile of it: it moves pointers by more than a block and
    is read from offsets, but scales no block size; its tiles share operands, and run far apart from each other."""
    batch, tile = ids.names[0][0], ids.names[1][0]
    read = False
    for node in walk(function.node.body):
        if isinstance(node, cst.BinaryOperation) and not isinstance(node.operator, cst.Add | cst.Subtract):
            names = names_in(node)
            if batch in names and (tile in names or names & set(function.constexprs)):
                return False
            read |= batch in names
        read |= tl_call(source, node, "load") is not None and batch in names_in(node)
    return read


def _is_product(source: TritonSource, function: JitFunction, ids: _Ids) -> bool:
    """Whether both ids choose tiles (each scales a block size), as in a matrix product, rather than a batch."""
    scaled = set()
    for node in walk(function.node.body):
        if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Multiply):
            names = {n.value for n in walk(node) if isinstance(n, cst.Name)}
            if names & set(function.constexprs):
                scaled |= names
    return ids.names[0][0] in scaled and ids.names[1][0] in scaled
