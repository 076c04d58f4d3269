"""Fold a grid axis that an atomic's address does not depend on: a loop over its blocks, one atomic behind it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

import libcst as cst

from sandbox.kernel import Kernel
from sandbox.target import Target
from skills.edit import Edit, append_param, apply_edits, insert_before, replace, tl_name
from skills.facts import Facts
from skills.fold import (
    Body,
    Statement,
    body_of,
    indented,
    program_ids,
    shrink_axis,
    varies,
)
from skills.idioms import (
    ATOMICS,
    assignments,
    base_param,
    is_docstring,
    names_in,
    order_arguments,
    program_axis,
    taken_names,
    tl_call,
)
from skills.library.accumulate_before_atomic.strip import SUMS, Strip, Sum, Tile, ids_of, strip_of
from skills.names import fresh_name
from skills.skill import Refusal, Site
from skills.triton_source import JitFunction, TritonSource, argument, dotted_name, parse_triton, walk

_BLOCKS = (8, 32)
_TOTAL = "n_blocks"


def find(kernel: Kernel, facts: Facts, target: Target) -> Iterable[Site | Refusal]:
    """Strips of eight blocks; longer ones, and of blocks that are summed to one number, where a clock can tell."""
    source = parse_triton(kernel)
    name = str(facts["kernel.name"])
    function = source.functions.get(name)
    if function is None or _is_out_of_reach(source, function):
        return
    reduced = _is_one_sum(source, function)
    known = {p: next(iter(d)) for p, d in facts.pairs("launch.pointer_dtypes").items() if len(d) == 1}
    counters = {p: d for p, d in known.items() if d in SUMS}
    for axis in _axes(source, function):
        if _edited(kernel, name, axis, _BLOCKS[0], known) is None:
            continue
        for blocks in _BLOCKS:
            variant: dict[str, bool | int | float | str] = {"axis": axis, "blocks": blocks, **counters}
            label = f"{blocks} blocks of grid axis {axis}"
            timed = reduced or blocks > _BLOCKS[0]
            yield Site(source.line(function.node), label, name, variant, needs_timing=timed)


def transform(kernel: Kernel, site: Site, target: Target) -> Kernel | None:
    """The loop, the grid divided, and the number of blocks passed along."""
    known = {name: str(value) for name, value in site.variant.items() if name not in ("axis", "blocks")}
    return _edited(kernel, site.kernel or "", int(site.variant["axis"]), int(site.variant["blocks"]), known)


def _is_out_of_reach(source: TritonSource, function: JitFunction) -> bool:
    """Whether blocks are walked already, the grid's size is read, a helper does what only the kernel may, or a counter
    is read besides."""
    nodes = list(walk(function.node.body))
    if any(p.name.startswith(_TOTAL) for p in function.params):
        return True
    if any(tl_call(source, n, "num_programs", "inline_asm_elementwise") is not None for n in nodes):
        return True
    for helper in source.callees(function)[1:]:
        if any(tl_call(source, n, "program_id", "num_programs", "store", *ATOMICS) for n in walk(helper.node.body)):
            return True
    counters, others = (
        {base_param(source, function, p.value) for n in nodes if (c := tl_call(source, n, *kinds)) is not None
         if (p := argument(c, "pointer", 0)) is not None}
        for kinds in (ATOMICS, ("load", "store"))
    )  # fmt: skip
    return None in counters or None in others or bool(counters & others)


def _is_one_sum(source: TritonSource, function: JitFunction) -> bool:
    """Whether an atomic adds the sum of a whole block to one address: every turn of the loop would end in a barrier,
    and a larger block may be the better way."""
    params = {p.name for p in function.params}
    for call in (c for n in walk(function.node.body) if (c := tl_call(source, n, "atomic_add")) is not None):
        pointer, value = argument(call, "pointer", 0), argument(call, "val", 1)
        single = pointer is not None and isinstance(pointer.value, cst.Name) and pointer.value.value in params
        given = [value.value] if value is not None else []
        if given and isinstance(given[0], cst.Name):
            given = list(assignments(source, function.node.body, given[0].value))
        if single and any(tl_call(source, g, "sum") is not None for g in given):
            return True
    return False


def _axes(source: TritonSource, function: JitFunction) -> list[int]:
    """Axes of the grid; only those whose ids count tiles where there are any, since they are the long ones."""
    found: dict[int, bool] = {}
    scaled = _tiled_ids(source, function)
    for call in (c for n in walk(function.node.body) if (c := tl_call(source, n, "program_id")) is not None):
        axis = program_axis(call)
        if axis is None:
            return []
        found[axis] = found.get(axis, False) or call in scaled
    tiled = sorted(a for a, counts in found.items() if counts)
    return tiled or sorted(found)


def _tiled_ids(source: TritonSource, function: JitFunction) -> list[cst.Call]:
    """The calls of `tl.program_id` whose value, itself or by the name it is given, is multiplied by a constexpr."""
    calls = [c for n in walk(function.node.body) if (c := tl_call(source, n, "program_id")) is not None]
    products = [
        n for n in walk(function.node.body)
        if isinstance(n, cst.BinaryOperation) and isinstance(n.operator, cst.Multiply)
        and names_in(n) & set(function.constexprs)
    ]  # fmt: skip
    found = []
    for call in calls:
        parent = source.parent(call)
        names = {dotted_name(t.target) for t in parent.targets} if isinstance(parent, cst.Assign) else set()
        if any(call in list(walk(p)) or names_in(p) & names for p in products):
            found.append(call)
    return found


def _edited(kernel: Kernel, name: str, axis: int, blocks: int, known: Mapping[str, str]) -> Kernel | None:
    kernel = _with_named_id(kernel, name, axis)
    source = parse_triton(kernel)
    function = source.functions[name]
    strip = strip_of(source, function, axis, known)
    if strip is None:
        return None
    taken = taken_names(function.node)
    total = fresh_name(_TOTAL, taken)
    host = shrink_axis(source, function, axis, blocks, total)
    if host is None:
        return None
    text = "".join(_emit(source, strip, blocks, total, taken))
    body = Edit(strip.body.start, strip.body.end, text)
    return apply_edits(kernel, source, [append_param(source, function, total), *host, body])


def _with_named_id(kernel: Kernel, name: str, axis: int) -> Kernel:
    """The kernel with a statement of its own for the id of an axis, where it stands inside of expressions."""
    source = parse_triton(kernel)
    function = source.functions[name]
    body = body_of(source, function)
    if body is None or any(p.axis == axis for p in program_ids(source, body)):
        return kernel
    calls = ids_of(source, function, axis)
    block = fresh_name("block", taken_names(function.node))
    first = next((s.node for s in body.statements if not is_docstring(s.node)), None)
    if first is None or not calls:
        return kernel
    edits = [replace(source, c, block) for c in calls]
    edits.append(insert_before(source, first, [f"{block} = {source.code(calls[0])}"]))
    return apply_edits(kernel, source, edits) or kernel


def _emit(source: TritonSource, strip: Strip, blocks: int, total: str, taken: set[str]) -> Iterator[str]:
    """The lines of the new body."""
    tl, indent, name = tl_name(source), strip.body.indent, strip.name
    first = fresh_name(f"first_{name}", taken)
    kept = {s: (_targets(s, taken), fresh_name("strip" if s.tile else "strip_total", taken)) for s in strip.sums}
    starts, ends = _around(source, strip, kept, tl)
    statements = [s for s in strip.body.statements if _id_of(source, s) != (name, strip.axis)]
    inside = [s for s in statements if _is_inside(s, strip)]
    yield from (s.text for s in statements if s not in inside)
    yield f"{indent}{first} = {tl}.program_id({strip.axis}) * {blocks}\n"
    yield from _guarded(source, strip, starts)
    yield f"{indent}for {name} in range({first}, {tl}.minimum({first} + {blocks}, {total})):\n"
    for statement in inside:
        yield indented(_looped(source, strip, statement, kept))
    yield from _guarded(source, strip, ends)


def _targets(item: Sum, taken: set[str]) -> str:
    """The name of the address: its own where it is one, none where it is read once."""
    if item.tile is not None:
        return ""
    return item.pointer.value if isinstance(item.pointer, cst.Name) else fresh_name("targets", taken)


def _id_of(source: TritonSource, statement: Statement) -> tuple[str | None, int | None] | None:
    """(name, axis) of a statement `name = tl.program_id(axis)`, else None."""
    found = program_ids(source, Body((statement,), 0, 0, ""))
    return (found[0].name, found[0].axis) if found else None


def _is_inside(statement: Statement, strip: Strip) -> bool:
    holds = statement.node is strip.branch or any(s.statement is statement for s in strip.sums)
    return holds or varies(statement, strip.varying)


def _around(
    source: TritonSource, strip: Strip, kept: Mapping[Sum, tuple[str, str]], tl: str
) -> tuple[list[str], list[str]]:
    """The lines before the loop and behind it, without their indentation."""
    starts: list[str] = []
    ends: list[str] = []
    if strip.inner is not None:
        fixed = [s for s in strip.inner.statements if s.writes and not s.writes & strip.varying]
        starts += [line.removeprefix(strip.inner.indent) for s in fixed for line in s.text.splitlines()]
    for item, (targets, sum_name) in kept.items():
        parts = [targets, sum_name]
        own = item.value.value if isinstance(item.value, cst.Name) else ""
        mask = _one_line(source, item.mask) if item.mask is not None else ""
        if item.tile is not None:
            shape = ", ".join(item.tile.shape) + ("," if len(item.tile.shape) == 1 else "")
            starts.append(f"{sum_name} = {tl}.zeros(({shape}), {tl}.{item.dtype})")
            ends.append(f"{own} = {_total(source, item.tile, sum_name)}")
            parts = [_one_line(source, item.pointer), own]
        else:
            starts += [f"{targets} = {_one_line(source, item.pointer)}"] if targets != source.code(item.pointer) else []
            starts.append(f"{sum_name} = {tl}.zeros({targets}.shape, {tl}.{item.dtype})")
            mask = re.sub(rf"\b{own}\b", sum_name, mask) if own else mask
        parts += [f"mask={mask}"] if mask else []
        parts += order_arguments(source, item.call)
        ends.append(f"{source.code(item.call.func)}({', '.join(parts)})")
    return starts, ends


def _total(source: TritonSource, tile: Tile, block: str) -> str:
    """The block's sum, of the strip's."""
    rest = [source.code(a) for a in tile.total.args[1:]]
    return f"{source.code(tile.total.func)}({', '.join([block, *rest])})"


def _one_line(source: TritonSource, node: cst.CSTNode) -> str:
    """An argument's text where no parentheses are around it."""
    return re.sub(r"\s*\n\s*", " ", source.code(node))


def _guarded(source: TritonSource, strip: Strip, lines: list[str]) -> Iterator[str]:
    """Lines at the level of the body, under the branch's condition where there is one."""
    indent = strip.body.indent
    if strip.branch is not None:
        yield f"{indent}if {source.code(strip.branch.test)}:\n"
        indent += "    "
    yield from (f"{indent}{line}\n" for line in lines)


def _looped(source: TritonSource, strip: Strip, statement: Statement, kept: Mapping[Sum, tuple[str, str]]) -> str:
    """A statement as it stands in the loop: the atomic adds to the sum, what does not change has gone before."""
    text = statement.text
    for item, (_, sum_name) in kept.items():
        if item.tile is None:
            text = text.replace(source.code(item.call), f"{sum_name} += {_one_line(source, item.value)}")
        elif statement is item.tile.statement or statement.node is strip.branch:
            if statement.node is strip.branch:
                text = text.replace(item.statement.text, "")
            whole = source.code(item.tile.statement.node).strip()
            text = text.replace(whole, f"{sum_name} += {_one_line(source, item.tile.block)}")
        elif statement is item.statement:
            text = ""
    if statement.node is strip.branch and strip.inner is not None:
        for part in strip.inner.statements:
            if part.writes and not part.writes & strip.varying:
                text = text.replace(part.text, "")
    return text
