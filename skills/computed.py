"""Launch numbers that host code computes: an expression of them at the launch, or behind the last assignment.

A number that depends on sizes keeps doing so: half of what a helper gave, never the value it had for one size.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import libcst as cst

from skills.edit import Edit, insert_before
from skills.idioms import assigned, is_docstring, names_in
from skills.triton_source import Launch, TritonSource, dotted_name, walk


def is_scaled(source: TritonSource, launch: Launch, node: cst.BaseExpression) -> bool:
    """Whether an expression, or a value of the variable it names, is `max(1, X // 2)` or `min(16, 2 * X)` already."""
    name = dotted_name(node)
    values = [node, *(v for _, v in _given(source, launch, name))] if name is not None else [node]
    return any(_bounded(value) for value in values)


def _bounded(node: cst.BaseExpression | None) -> bool:
    if not isinstance(node, cst.Call) or dotted_name(node.func) not in ("min", "max") or len(node.args) != 2:
        return False
    bound, scaled = (a.value for a in node.args)
    if not isinstance(bound, cst.Integer) or not isinstance(scaled, cst.BinaryOperation):
        return False
    by = scaled.right if isinstance(scaled.operator, cst.FloorDivide) else scaled.left
    return isinstance(scaled.operator, cst.FloorDivide | cst.Multiply) and isinstance(by, cst.Integer)


def followed(source: TritonSource, launch: Launch, given: cst.BaseExpression, options: Iterable[str]) -> bool:
    """Whether another argument of the launch is computed from the variable that holds a number: both must agree."""
    name = dotted_name(given)
    if name is None:
        return False
    read: set[str] = set()
    for arg in launch.call.args:
        if arg.value is not given and (arg.keyword is None or arg.keyword.value not in options):
            read |= names_in(arg.value)
    derived = {other for other in read if any(v and name in names_in(v) for _, v in _given(source, launch, other))}
    return name in read or bool(derived - {name})


def scale_variable(source: TritonSource, launch: Launch, name: str, template: str) -> Edit | None:
    """`NAME = template(NAME)` behind the last place that gives a host variable its value; None where another kernel's
    launch reads it as well, or where the place cannot be told."""
    host = launch.host
    if host is None or not isinstance(host.body, cst.IndentedBlock):
        return None
    others = (o for o in source.launches if o.host is host and o.kernel != launch.kernel)
    if any(name in names_in(arg.value) for other in others for arg in other.call.args):
        return None
    statements = [statement for statement, _ in _given(source, launch, name)]
    line = f"{name} = {template.format(name)}"
    if not statements:
        if name not in {p.name.value for p in host.params.params}:
            return None
        body = [s for s in host.body.body if not is_docstring(s)]
        return insert_before(source, body[0], [line]) if body else None
    if any(source.span(s)[0] >= source.span(launch.call)[0] for s in statements):
        return None
    following = _next_towards(source, launch, statements[-1])
    return insert_before(source, following, [line]) if following is not None else None


def _next_towards(source: TritonSource, launch: Launch, statement: cst.CSTNode) -> cst.CSTNode | None:
    """The statement after one, or after the compound one around it, in the block that leads to the launch."""
    above = set(source.ancestors(launch.call))
    node = statement
    while not isinstance(node, cst.FunctionDef | cst.Module):
        block = source.parent(node)
        if isinstance(block, cst.IndentedBlock) and block in above:
            behind = [s for s in block.body if source.span(s)[0] > source.span(node)[0]]
            return behind[0] if behind else None
        node = block
    return None


def _given(
    source: TritonSource, launch: Launch, name: str | None
) -> Iterator[tuple[cst.CSTNode, cst.BaseExpression | None]]:
    """Statements of the host that give a name a value, in source order; no value where a tuple is taken apart."""
    if launch.host is None or name is None:
        return
    for node in walk(launch.host.body):
        targets, value = assigned(node)
        if name in {dotted_name(t) for t in targets}:
            yield source.statement(node), value
        elif any(isinstance(t, cst.Tuple) and name in {dotted_name(e.value) for e in t.elements} for t in targets):
            yield source.statement(node), None
