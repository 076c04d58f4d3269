"""The addends of a pointer expression, and its text without an axis that it does not depend on."""

from __future__ import annotations

import libcst as cst

from skills.axes import Axes
from skills.idioms import method_call, names_in, needs_parentheses, tl_call
from skills.triton_source import JitFunction, TritonSource, argument, walk
from skills.uniform import Uniformity


class Addresses:
    """Answers for one jit function. None wherever something in the expression is not understood."""

    def __init__(self, source: TritonSource, function: JitFunction) -> None:
        self._source = source
        self._axes = Axes(source, function)
        self._uniformity = Uniformity(source, function)
        self._params = {p.name for p in function.params}
        self._bound: dict[str, list[int]] = {}
        self._values: dict[str, cst.BaseExpression] = {}
        for node in walk(function.node.body):
            targets = targets_of(node)
            for target in targets:
                for name in walk(target):
                    if isinstance(name, cst.Name):
                        self._bound.setdefault(name.value, []).append(source.span(node)[0])
            if isinstance(node, cst.Assign) and len(targets) == 1 and isinstance(targets[0], cst.Name):
                self._values[targets[0].value] = node.value

    def addends(self, node: cst.BaseExpression, *, scalars: bool) -> list[cst.BaseExpression]:
        """The terms of a sum in order, names that stand for a sum taken apart where that gives the same there; those of
        scalar sums where asked."""
        if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Add):
            return [*self.addends(node.left, scalars=scalars), *self.addends(node.right, scalars=scalars)]
        value = self._definition(node) if scalars or self._axes.rank(node) else None
        if isinstance(value, cst.BinaryOperation) and isinstance(value.operator, cst.Add):
            return self.addends(value, scalars=scalars)
        return [node]

    def without_axis(self, pointer: cst.BaseExpression, axis: int) -> str | None:
        """Text of the pointer with one axis less, which it must not vary along; `axis` from the last, -1.

        A zero that only gives the sum its shape is dropped. Every addend is added to the pointer by itself, so that a
        zero of 64 bits is not needed to widen another.
        """
        parts = []
        for term in self.addends(pointer, scalars=False):
            if self._axes.varying(term) == frozenset() and self._uniformity.scalar_of(term) == "0":
                continue
            text = self._squeezed(term, axis)
            if text is None:
                return None
            parts.append(text)
        return " + ".join(parts) if parts else None

    def _squeezed(self, node: cst.BaseExpression, axis: int) -> str | None:
        varying, rank = self._axes.varying(node), self._axes.rank(node)
        if varying is None or rank is None or axis in varying:
            return None
        if rank < -axis:
            return self._source.code(node)
        if not varying:
            scalar = self._uniformity.scalar_of(node)
            return None if scalar == "0" else scalar
        if isinstance(node, cst.BinaryOperation):
            sides = [self._operand(side, axis) for side in (node.left, node.right)]
            operator = self._source.code(node.operator).strip()
            return None if None in sides else f"{sides[0]} {operator} {sides[1]}"
        if isinstance(node, cst.Subscript):
            return self._source.code(node.value) if rank - (self._axes.rank(node.value) or 0) == 1 else None
        value = self._definition(node)
        if value is not None:
            return self._squeezed(value, axis)
        cast = method_call(node, "to")
        if cast is not None and isinstance(cast.func, cst.Attribute):
            inner = self._operand(cast.func.value, axis)
            kept = ", ".join(self._source.code(a).rstrip(", ") for a in cast.args)
            return None if inner is None else f"{inner}.to({kept})"
        shaped = tl_call(self._source, node, "broadcast_to", "expand_dims")
        given = argument(shaped, "input", 0) if shaped is not None else None
        return self._squeezed(given.value, axis) if given is not None else None

    def _operand(self, node: cst.BaseExpression, axis: int) -> str | None:
        text = self._squeezed(node, axis)
        return f"({text})" if text is not None and needs_parentheses(cst.parse_expression(text)) else text

    def _definition(self, node: cst.CSTNode) -> cst.BaseExpression | None:
        """The one value of a local name, where it gives the same when it is computed again."""
        if not isinstance(node, cst.Name) or node.value in self._params or len(self._bound.get(node.value, ())) != 1:
            return None
        value = self._values.get(node.value)
        if value is None or any(tl_call(self._source, n, "load") is not None for n in walk(value)):
            return None
        start = self._source.span(value)[0]
        earlier = [self._bound.get(name, []) for name in names_in(value)]
        return value if all(len(places) <= 1 and all(p < start for p in places) for places in earlier) else None


def targets_of(node: cst.CSTNode) -> list[cst.BaseExpression]:
    """What a statement gives a value to."""
    if isinstance(node, cst.Assign):
        return [t.target for t in node.targets]
    if isinstance(node, cst.AnnAssign | cst.AugAssign | cst.For | cst.NamedExpr):
        return [node.target]
    return []


def alone(source: TritonSource, call: cst.Call) -> bool:
    """Whether a call is a statement of its own, on lines of its own."""
    expression = source.parent(call)
    line = source.parent(expression)
    return isinstance(expression, cst.Expr) and isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1
