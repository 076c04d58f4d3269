"""Fold the query-head axis of the grid into a loop with register accumulators."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import libcst as cst

from sandbox.kernel import Kernel
from sandbox.target import Target
from skills.allocation import allocation
from skills.edit import Edit, apply_edits, tl_name
from skills.facts import Facts
from skills.fold import (
    Body,
    ProgramId,
    block_text,
    body_of,
    closure,
    dependent,
    divided,
    grid_elements,
    grid_is_shared,
    host_text,
    indented,
    program_ids,
    range_bounds,
    unused,
    varies,
    zero_like,
)
from skills.idioms import base_param, names_in, tl_call
from skills.skill import Refusal, Site
from skills.triton_source import JitFunction, TritonSource, argument, dotted_name, parse_triton, walk


@dataclass(frozen=True, slots=True, eq=False)
class _Sum:
    """An atomic addition that every member of a group makes to the same place."""

    index: int
    call: cst.Call
    pointer: str
    value: str
    mask: str | None
    zeros: str


@dataclass(frozen=True, slots=True, eq=False)
class _Group:
    """The folded axis: `divisor` members per group."""

    body: Body
    program: ProgramId
    divisor: str
    varying: frozenset[str]
    sums: tuple[_Sum, ...]


def find(kernel: Kernel, facts: Facts, target: Target) -> Iterable[Site | Refusal]:
    """One site per kernel with a foldable axis."""
    source = parse_triton(kernel)
    function = source.functions.get(str(facts["kernel.name"]))
    group = _group(source, function) if function is not None else None
    if function is None or group is None or _host_edits(source, function, group) is None:
        return
    line = source.line(group.sums[0].call)
    if _flat(source, function, group) is not None:
        yield Site(line, f"sum over {group.divisor} in registers, one loop", function.name)
    yield Site(line, f"sum over {group.divisor} in registers", function.name)


def transform(kernel: Kernel, site: Site, target: Target) -> Kernel | None:
    """The kernel's body around a loop, and the grid of every launch."""
    source = parse_triton(kernel)
    function = source.functions.get(site.kernel or "")
    group = _group(source, function) if function is not None else None
    if function is None or group is None:
        return None
    host = _host_edits(source, function, group)
    if host is None:
        return None
    text = _flat(source, function, group) if site.label.endswith("one loop") else _folded(source, function, group)
    if text is None:
        return None
    return apply_edits(kernel, source, [Edit(group.body.start, group.body.end, text), *host])


def _group(source: TritonSource, function: JitFunction) -> _Group | None:
    body = body_of(source, function)
    if body is None:
        return None
    ids = program_ids(source, body)
    for program in ids:
        for divisor in _divisors(source, function, body, program):
            invariant = _invariant(source, body, program, divisor)
            varying = dependent(body, {program.name}, invariant)
            sums = tuple(_sums(source, function, body, varying))
            others = [other.name for other in ids if other is not program]
            if sums and all(_covers(body, s, others) for s in sums) and not _other_effects(source, body, sums, varying):
                return _Group(body, program, divisor, varying, sums)
    return None


def _divisors(source: TritonSource, function: JitFunction, body: Body, program: ProgramId) -> Iterator[str]:
    """Group sizes: what the id, or the id modulo the number of heads, is divided by."""
    heads = {program.name}
    for statement in body.statements:
        assign = statement.node.body[0] if isinstance(statement.node, cst.SimpleStatementLine) else None
        if isinstance(assign, cst.Assign) and isinstance(assign.value, cst.BinaryOperation):
            value = assign.value
            if dotted_name(value.left) in heads and isinstance(value.operator, cst.Modulo):
                heads |= statement.writes
    params = {p.name for p in function.params}
    found: list[str] = []
    for node in walk(function.node.body):
        if not isinstance(node, cst.BinaryOperation) or not isinstance(node.operator, cst.FloorDivide):
            continue
        if dotted_name(node.left) in heads and names_in(node.right) and names_in(node.right) <= params:
            found.append(source.code(node.right))
    # The smallest unit first: `head // GROUP` rather than `batch_head // H`, which a modulo of the same H accompanies.
    moduli = {
        source.code(n.right)
        for n in walk(function.node.body)
        if isinstance(n, cst.BinaryOperation) and isinstance(n.operator, cst.Modulo) and dotted_name(n.left) in heads
    }
    yield from dict.fromkeys(d for d in found if d not in moduli)


def _invariant(source: TritonSource, body: Body, program: ProgramId, divisor: str) -> frozenset[str]:
    """Names that are the same for every member of a group: the quotients by the group size or by the head count."""
    chain = {program.name}
    moduli: set[str] = set()
    found: set[str] = set()
    for statement in body.statements:
        assign = statement.node.body[0] if isinstance(statement.node, cst.SimpleStatementLine) else None
        if not isinstance(assign, cst.Assign) or not isinstance(assign.value, cst.BinaryOperation):
            continue
        value = assign.value
        if dotted_name(value.left) not in chain:
            continue
        if isinstance(value.operator, cst.Modulo):
            chain |= statement.writes
            moduli.add(source.code(value.right))
    for statement in body.statements:
        assign = statement.node.body[0] if isinstance(statement.node, cst.SimpleStatementLine) else None
        if isinstance(assign, cst.Assign) and isinstance(assign.value, cst.BinaryOperation):
            value = assign.value
            quotient = isinstance(value.operator, cst.FloorDivide) and dotted_name(value.left) in chain
            if quotient and source.code(value.right) in {divisor, *moduli}:
                found |= statement.writes
    return frozenset(found)


def _sums(source: TritonSource, function: JitFunction, body: Body, varying: frozenset[str]) -> Iterator[_Sum]:
    for index, statement in enumerate(body.statements):
        small = statement.node.body[0] if isinstance(statement.node, cst.SimpleStatementLine) else None
        call = tl_call(source, small.value, "atomic_add") if isinstance(small, cst.Expr) else None
        if call is None:
            continue
        pointer, value, mask = argument(call, "pointer", 0), argument(call, "val", 1), argument(call, "mask", 2)
        if pointer is None or value is None or names_in(pointer.value) & varying:
            continue
        if mask is not None and names_in(mask.value) & varying:
            continue
        zeros = zero_like(source, function, value.value)
        if zeros is not None:
            text = source.code(mask.value) if mask is not None else None
            yield _Sum(index, call, source.code(pointer.value), source.code(value.value), text, zeros)


def _covers(body: Body, total: _Sum, others: list[str]) -> bool:
    """Whether no two groups add to the same place: the address depends on every other id."""
    names = closure(body, set(re.findall(r"[A-Za-z_]\w*", total.pointer)))
    return all(other in names for other in others)


def _other_effects(source: TritonSource, body: Body, sums: tuple[_Sum, ...], varying: frozenset[str]) -> bool:
    """Whether the kernel has atomics that the fold would not take over."""
    calls = {id(s.call) for s in sums}
    for statement in body.statements:
        for node in walk(statement.node):
            atomic = tl_call(source, node, "atomic_add", "atomic_cas", "atomic_xchg", "atomic_max")
            if atomic is not None and id(atomic) not in calls:
                return True
    return False


@dataclass(frozen=True, slots=True, eq=False)
class _Parts:
    """The lines of a folded kernel: before the loop, in it, and after it one store per sum.

    `apart` holds the totals that need a block of their own, with the text that sets them to zero; `member` and `first`
    name the loop's variable and the first id of a group.
    """

    before: tuple[str, ...]
    inside: tuple[str, ...]
    after: tuple[str, ...]
    apart: tuple[tuple[str, str], ...]
    member: str
    first: str


def _folded(source: TritonSource, function: JitFunction, group: _Group) -> str:
    """A loop over the members around what they differ in."""
    indent, parts = group.body.indent, _parts(source, function, group)
    lines = [*parts.before, *(f"{indent}{name} = {zeros}\n" for name, zeros in parts.apart)]
    lines.append(f"{indent}for {parts.member} in range({group.divisor}):\n")
    lines.append(f"{indent}    {group.program.name} = {parts.first} + {parts.member}\n")
    return "".join([*lines, *(indented(text) for text in parts.inside), *parts.after])


def _flat(source: TritonSource, function: JitFunction, group: _Group) -> str | None:
    """One loop over members and blocks of rows, so that the pipeline neither drains nor fills between two members.

    None where a member does more than walk its rows in one loop whose bounds all members share, or where what comes
    before that loop is more than arithmetic on scalars.
    """
    parts = _parts(source, function, group)
    members = [s for s in group.body.statements if s.text in parts.inside]
    if parts.apart or not members or [s.text for s in members] != list(parts.inside):
        return None
    ahead, last = members[:-1], members[-1]
    loop = last.node
    if not isinstance(loop, cst.For) or not isinstance(loop.body, cst.IndentedBlock) or loop.orelse is not None:
        return None
    if any(isinstance(n, cst.Call | cst.For | cst.While | cst.If) for s in ahead for n in walk(s.node)):
        return None
    # What the loop carries from one block of rows to the next would start anew at each of them.
    if any(s.writes & last.writes for s in ahead):
        return None
    bounds = range_bounds(source, loop)
    if bounds is None or {n for b in bounds for n in re.findall(r"[A-Za-z_]\w*", b)} & group.varying:
        return None
    start, stop, stride = bounds
    indent, tl = group.body.indent, tl_name(source)
    variable = source.code(loop.target)
    steps, step = unused(source, function, "steps", "step")
    length = stop if start == "0" else f"{stop} - {start}" if re.fullmatch(r"\w+", start) else f"{stop} - ({start})"
    offset = f"{step} % {steps} * {stride}" if re.fullmatch(r"\w+", stride) else f"{step} % {steps} * ({stride})"
    lines = [*parts.before, f"{indent}{steps} = {tl}.cdiv({length}, {stride})\n"]
    size = group.divisor if re.fullmatch(r"\w+", group.divisor) else f"({group.divisor})"
    lines.append(f"{indent}for {step} in range({size} * {steps}):\n")
    lines.append(f"{indent}    {group.program.name} = {parts.first} + {step} // {steps}\n")
    lines += [indented(s.text) for s in ahead]
    lines.append(f"{indent}    {variable} = {offset if start == '0' else f'{start} + {offset}'}\n")
    lines.append(block_text(source, loop.body))
    return "".join([*lines, *parts.after])


def _parts(source: TritonSource, function: JitFunction, group: _Group) -> _Parts:
    """Before the loop what no member changes, in it what they differ in, after it one store per sum."""
    indent, program, tl = group.body.indent, group.program, tl_name(source)
    member, first, *totals = unused(
        source, function, "member", f"first_{program.name}", *(_total(s) for s in group.sums)
    )
    before: list[str] = []
    inside: list[str] = []
    chain = _chain(group)
    carried = {s.value: start for s in group.sums if (start := _start(source, group, s)) is not None}
    scaled = {i for s in group.sums if s.value in carried for i in _scalings(group, s)}
    after = [group.body.statements[i].text for i in sorted(scaled)]
    names = [s.value if s.value in carried else name for s, name in zip(group.sums, totals, strict=True)]
    sums = {s.index: (s, name) for s, name in zip(group.sums, names, strict=True)}
    for index, statement in enumerate(group.body.statements):
        if index in scaled:
            continue
        if index == program.index:
            size = group.divisor if re.fullmatch(r"\w+", group.divisor) else f"({group.divisor})"
            before.append(f"{indent}{first} = {tl}.program_id({program.axis}) * {size}\n")
            before.append(f"{indent}{program.name} = {first}\n" if chain else "")
        elif index in sums:
            total, name = sums[index]
            if name not in carried:
                inside.append(f"{_comments(statement.text)}{indent}{name} += {total.value}\n")
        elif index in carried.values():
            before.append(statement.text)
        elif varies(statement, group.varying):
            before.append(statement.text if statement.writes & chain else "")
            inside.append(statement.text)
        else:
            before.append(statement.text)
    for index, (total, name) in sums.items():
        after.append(_comments(group.body.statements[index].text) if name in carried else "")
        mask = f", mask={total.mask}" if total.mask is not None else ""
        added = name if _starts_at_zero(source, function, total) else f"{tl}.load({total.pointer}{mask}) + {name}"
        after.append(f"{indent}{tl}.store({total.pointer}, {added}{mask})\n")
    apart = tuple((name, s.zeros) for s, name in sums.values() if name not in carried)
    ahead, within, behind = (tuple(filter(None, texts)) for texts in (before, inside, after))
    return _Parts(ahead, within, behind, apart, member, first)


def _start(source: TritonSource, group: _Group, total: _Sum) -> int | None:
    """The statement that sets the summed block to zero, where the block may keep adding up over all members instead.

    That is so when everything else that writes it adds to it, and nothing but the atomic reads it besides. A factor
    that all members share may follow: it is then applied to the sum of all.
    """
    name = total.value
    starts, scalings = [], _scalings(group, total)
    for index, statement in enumerate(group.body.statements):
        if index == total.index or index in scalings or name not in statement.reads | statement.writes:
            continue
        if scalings and index > scalings[0]:
            return None
        if statement.writes == {name} and name not in statement.reads:
            starts.append(index)
        elif not _only_adds(source, statement.node, name):
            return None
    zero = len(starts) == 1 and source.code(group.body.statements[starts[0]].node).strip().endswith(f"= {total.zeros}")
    return starts[0] if zero and starts[0] < total.index else None


def _scalings(group: _Group, total: _Sum) -> list[int]:
    """Statements between the loop and the atomic that multiply the block by what all members share."""
    found = []
    for index, statement in enumerate(group.body.statements[: total.index]):
        small = statement.node.body[0] if isinstance(statement.node, cst.SimpleStatementLine) else None
        factor: cst.BaseExpression | None = None
        if isinstance(small, cst.AugAssign) and isinstance(small.operator, cst.MultiplyAssign):
            factor = small.value if dotted_name(small.target) == total.value else None
        elif isinstance(small, cst.Assign) and [dotted_name(t.target) for t in small.targets] == [total.value]:
            product = small.value
            if isinstance(product, cst.BinaryOperation) and isinstance(product.operator, cst.Multiply):
                sides = {dotted_name(product.left): product.right, dotted_name(product.right): product.left}
                factor = sides.get(total.value)
        if factor is not None and not names_in(factor) & (group.varying | {total.value}):
            found.append(index)
    return found


def _only_adds(source: TritonSource, node: cst.CSTNode, name: str) -> bool:
    """Whether a statement uses `name` in `name += ...` and `name = tl.dot(a, b, name)` alone."""
    allowed = 0
    for n in walk(node):
        if isinstance(n, cst.AugAssign) and isinstance(n.operator, cst.AddAssign) and dotted_name(n.target) == name:
            allowed += 1
        if isinstance(n, cst.Assign) and [dotted_name(t.target) for t in n.targets] == [name]:
            dot = tl_call(source, n.value, "dot")
            given = argument(dot, "acc", 2) if dot is not None else None
            allowed += 2 if given is not None and dotted_name(given.value) == name else 0
    return allowed == sum(isinstance(n, cst.Name) and n.value == name for n in walk(node))


def _comments(text: str) -> str:
    """The comment lines above a statement."""
    return "".join(x for x in text.splitlines(keepends=True) if x.lstrip().startswith("#"))


def _total(total: _Sum) -> str:
    words = re.findall(r"[A-Za-z_]\w*", total.value)
    return f"{words[0]}_total" if words else "total"


def _chain(group: _Group) -> frozenset[str]:
    """Varying names that values before the loop are computed from: they are needed for the first member as well."""
    fixed = [s for s in group.body.statements if s.writes and not s.writes & group.varying]
    needed: set[str] = {r for s in fixed for r in s.reads if r in group.varying}
    return frozenset(closure(group.body, needed) & group.varying)


def _starts_at_zero(source: TritonSource, function: JitFunction, total: _Sum) -> bool:
    """Whether every launch passes memory that its host function has just filled with zeros."""
    pointer = argument(total.call, "pointer", 0)
    name = base_param(source, function, pointer.value) if pointer is not None else None
    if name is None:
        return False
    made = [allocation(source, function, launch, name) for launch in source.launches_of(function.name)]
    return all(m is not None and m.fill == "zeros" and m.untouched for m in made)


def _host_edits(source: TritonSource, function: JitFunction, group: _Group) -> list[Edit] | None:
    edits: list[Edit] = []
    for launch in source.launches_of(function.name):
        elements = grid_elements(source, launch)
        size = host_text(source, function, launch, group.divisor)
        if elements is None or size is None or group.program.axis >= len(elements) or grid_is_shared(source, launch):
            return None
        edits.append(
            divided(
                source,
                elements[group.program.axis],
                f"({size})" if "//" in size and size[0] != "(" else size,
                rounded_up=False,
            )
        )
    return list(dict.fromkeys(edits)) or None
