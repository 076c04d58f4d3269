"""`total += tl.sum(x)` in a loop becomes `lanes += x` there and `total = tl.sum(lanes)` behind it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import libcst as cst

from sandbox.kernel import Kernel
from sandbox.target import Target
from skills.edit import Edit, apply_edits, insert_after_block, replace, tl_name
from skills.facts import Facts
from skills.idioms import names_in, taken_names, tl_call
from skills.names import fresh_name
from skills.rank import Ranks
from skills.skill import Refusal, Site
from skills.triton_source import JitFunction, TritonSource, argument, dotted_name, parse_triton, walk


@dataclass(frozen=True, slots=True, eq=False)
class _Total:
    """A scalar that starts as a float literal and that one loop adds sums of blocks to."""

    name: str
    start: cst.Float
    loop: cst.For
    additions: tuple[cst.AugAssign, ...]


def find(kernel: Kernel, facts: Facts, target: Target) -> Iterable[Site | Refusal]:
    """One site for all such sums of a kernel; not where fp64 may be summed."""
    source = parse_triton(kernel)
    function = source.functions.get(str(facts["kernel.name"]))
    wide = any("float64" in dtypes for dtypes in facts.pairs("launch.pointer_dtypes").values())
    totals = list(_totals(source, function)) if function is not None and not wide else []
    if function is not None and totals:
        yield Site(source.line(totals[0].loop), "sums of lanes", function.name)


def transform(kernel: Kernel, site: Site, target: Target) -> Kernel | None:
    """A block of sums for every total."""
    source = parse_triton(kernel)
    function = source.functions.get(site.kernel or "")
    if function is None:
        return None
    tl, block = tl_name(source), _block(source, function)
    taken = taken_names(function.node)
    edits: list[Edit] = []
    behind: dict[cst.For, list[str]] = {}
    for total in _totals(source, function):
        lanes = fresh_name(f"{total.name}_lanes", taken)
        start = source.statement(total.start)
        edits.append(replace(source, start, f"{lanes} = {tl}.zeros([{block}], dtype={tl}.float32)"))
        for addition in total.additions:
            summed = _summed(source, addition)
            text = source.code(summed) if summed is not None else ""
            edits.append(replace(source, addition, f"{lanes} += ({text})" if "\n" in text else f"{lanes} += {text}"))
        ending = f" + {source.code(total.start)}" if float(total.start.value) else ""
        behind.setdefault(total.loop, []).append(f"{total.name} = {tl}.sum({lanes}, axis=0){ending}")
    edits += [insert_after_block(source, loop, lines) for loop, lines in behind.items()]
    return apply_edits(kernel, source, edits)


def _block(source: TritonSource, function: JitFunction) -> str | None:
    """The one length that all blocks of lanes of a kernel have; None where there are several or it is computed."""
    calls = [c for n in walk(function.node.body) if (c := tl_call(source, n, "arange")) is not None]
    ends = {source.code(end.value) if (end := argument(c, "end", 1)) is not None else "" for c in calls}
    return ends.pop() if len(ends) == 1 and ends & set(function.constexprs) else None


def _totals(source: TritonSource, function: JitFunction) -> Iterator[_Total]:
    if _block(source, function) is None:
        return
    ranks = Ranks(source, function)
    for block in walk(function.node.body):
        if not isinstance(block, cst.IndentedBlock):
            continue
        for at, statement in enumerate(block.body):
            line = statement.body if isinstance(statement, cst.SimpleStatementLine) else ()
            small = line[0] if len(line) == 1 else None
            if not isinstance(small, cst.Assign) or not isinstance(small.value, cst.Float):
                continue
            name = dotted_name(small.targets[0].target) if len(small.targets) == 1 else None
            loop = _loop_of(name, block.body[at + 1 :]) if name is not None else None
            additions = _additions(source, ranks, name, loop) if name is not None and loop is not None else ()
            if name is not None and loop is not None and additions:
                yield _Total(name, small.value, loop, additions)


def _loop_of(name: str, rest: Iterable[cst.CSTNode]) -> cst.For | None:
    """The first statement behind that knows the name, where that is a loop."""
    first = next((s for s in rest if name in names_in(s)), None)
    return first if isinstance(first, cst.For) and name not in names_in(first.iter) else None


def _additions(source: TritonSource, ranks: Ranks, name: str, loop: cst.For) -> tuple[cst.AugAssign, ...]:
    """The additions of block sums that are all the loop does with the name; empty where it does more."""
    found = [n for n in walk(loop.body) if isinstance(n, cst.AugAssign) and dotted_name(n.target) == name]
    reads = sum(isinstance(n, cst.Name) and n.value == name for n in walk(loop.body))
    fits = all(
        isinstance(n.operator, cst.AddAssign) and (s := _summed(source, n)) is not None and ranks.of(s) == 1
        for n in found
    )
    return tuple(found) if fits and reads == len(found) else ()


def _summed(source: TritonSource, addition: cst.AugAssign) -> cst.BaseExpression | None:
    """The block of a `tl.sum(x)` or `tl.sum(x, axis=0)`."""
    call = tl_call(source, addition.value, "sum")
    if call is None or not call.args:
        return None
    axis = argument(call, "axis", 1)
    plain = len(call.args) == 1 or (len(call.args) == 2 and axis is not None and source.code(axis.value) == "0")
    return call.args[0].value if plain else None
