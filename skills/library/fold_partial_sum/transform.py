"""`part = zeros; for ...: part += x; total += part` becomes `for ...: total += x`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import libcst as cst

from sandbox.kernel import Kernel
from sandbox.target import Target
from skills.edit import apply_edits, drop_line, replace
from skills.facts import Facts
from skills.idioms import assignments, tl_call
from skills.skill import Refusal, Site
from skills.triton_source import JitFunction, TritonSource, dotted_name, parse_triton, walk


@dataclass(frozen=True, slots=True, eq=False)
class _Partial:
    """One partial sum: where it is made, added to, and added to the total."""

    total: str
    made: cst.CSTNode
    additions: tuple[cst.AugAssign, ...]
    folded: cst.CSTNode


def find(kernel: Kernel, facts: Facts, target: Target) -> Iterable[Site | Refusal]:
    """One site for all partial sums of a kernel."""
    source = parse_triton(kernel)
    function = source.functions.get(str(facts["kernel.name"]))
    found = list(_partials(source, function)) if function is not None else []
    if function is not None and found:
        yield Site(source.line(found[0].made), "no partial sum", function.name)


def transform(kernel: Kernel, site: Site, target: Target) -> Kernel | None:
    """The loop adds to the total; the partial sum's own two lines go."""
    source = parse_triton(kernel)
    function = source.functions.get(site.kernel or "")
    edits = []
    for partial in _partials(source, function) if function is not None else ():
        edits += [drop_line(source, partial.made), drop_line(source, partial.folded)]
        edits += [replace(source, addition.target, partial.total) for addition in partial.additions]
    return apply_edits(kernel, source, edits)


def _partials(source: TritonSource, function: JitFunction) -> Iterator[_Partial]:
    for block in walk(function.node.body):
        if not isinstance(block, cst.IndentedBlock):
            continue
        for at, statement in enumerate(block.body):
            made = _small(statement)
            name = (
                dotted_name(made.targets[0].target) if isinstance(made, cst.Assign) and len(made.targets) == 1 else None
            )
            if not isinstance(made, cst.Assign) or name is None or tl_call(source, made.value, "zeros") is None:
                continue
            found = _partial(source, function, name, made, block.body[at + 1 :])
            if found is not None:
                yield found


def _partial(
    source: TritonSource, function: JitFunction, name: str, made: cst.Assign, rest: Iterable[cst.BaseStatement]
) -> _Partial | None:
    """The sum that begins with a statement and ends among those behind it, where the name means nothing else."""
    between: list[cst.BaseStatement] = []
    for statement in rest:
        folded = _small(statement)
        if isinstance(folded, cst.AugAssign) and _adds(folded) and dotted_name(folded.value) == name:
            break
        between.append(statement)
    else:
        return None
    total = dotted_name(folded.target)
    additions = tuple(
        n for s in between for n in walk(s)
        if isinstance(n, cst.AugAssign) and _adds(n) and dotted_name(n.target) == name
    )  # fmt: skip
    reads = sum(isinstance(n, cst.Name) and n.value == name for n in walk(function.node))
    meanwhile = any(isinstance(n, cst.Name) and n.value == total for s in between for n in walk(s))
    if total is None or not additions or reads != len(additions) + 2 or meanwhile:
        return None
    starts = [v for v in assignments(source, function.node.body, total) if tl_call(source, v, "zeros") is not None]
    same = [source.code(v) for v in starts] == [source.code(made.value)]
    return _Partial(total, made, additions, folded) if same else None


def _small(statement: cst.CSTNode) -> cst.BaseSmallStatement | None:
    """The one statement of a line."""
    return statement.body[0] if isinstance(statement, cst.SimpleStatementLine) and len(statement.body) == 1 else None


def _adds(node: cst.AugAssign) -> bool:
    return isinstance(node.operator, cst.AddAssign)
