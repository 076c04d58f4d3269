"""Along which axes of a block the lanes of an expression may differ."""

from __future__ import annotations

from collections.abc import Iterable

import libcst as cst

from skills.idioms import assignments, method_call, tl_call
from skills.literals import int_value
from skills.rank import LANEWISE, Ranks
from skills.triton_source import JitFunction, TritonSource, argument

Axis = frozenset[int]
_SAME = ("zeros", "full", "zeros_like", "program_id", "num_programs")
_REDUCTIONS = ("sum", "max", "min", "xor_sum")


class Axes:
    """Answers for one jit function. Axes count from the last, -1, so that operands of fewer axes need no shift.

    An axis that is given is as long as some `tl.arange`: nothing else makes lanes differ.
    """

    def __init__(self, source: TritonSource, function: JitFunction) -> None:
        self._source = source
        self._function = function
        self._ranks = Ranks(source, function)

    def rank(self, node: cst.BaseExpression) -> int | None:
        """The number of axes."""
        return self._ranks.of(node)

    def varying(self, node: cst.BaseExpression) -> Axis | None:
        """The axes along which the expression may vary; None when it is not understood."""
        return self._varying(node, frozenset())

    def _varying(self, node: cst.BaseExpression, open_names: frozenset[str]) -> Axis | None:
        rank = self._ranks.of(node)
        if not rank:
            return None if rank is None else frozenset()
        if isinstance(node, cst.Name):
            if node.value in open_names:
                return frozenset()
            values = assignments(self._source, self._function.node.body, node.value)
            return self._union(values, open_names | {node.value})
        if isinstance(node, cst.UnaryOperation):
            return self._varying(node.expression, open_names)
        if isinstance(node, cst.BinaryOperation):
            if isinstance(node.operator, cst.Multiply) and 0 in (int_value(node.left), int_value(node.right)):
                return frozenset()
            return self._union((node.left, node.right), open_names)
        if isinstance(node, cst.BooleanOperation):
            return self._union((node.left, node.right), open_names)
        if isinstance(node, cst.Comparison):
            return self._union((node.left, *(c.comparator for c in node.comparisons)), open_names)
        if isinstance(node, cst.Subscript):
            return self._subscript(node, open_names)
        return self._call(node, open_names) if isinstance(node, cst.Call) else None

    def _union(self, nodes: Iterable[cst.BaseExpression], open_names: frozenset[str]) -> Axis | None:
        found: Axis = frozenset()
        for node in nodes:
            more = self._varying(node, open_names)
            if more is None:
                return None
            found |= more
        return found

    def _subscript(self, node: cst.Subscript, open_names: frozenset[str]) -> Axis | None:
        """`x[:, None]`: every colon is an axis of `x`, every None a new one."""
        inner = self._varying(node.value, open_names)
        new = [self._source.code(s.slice) == "None" for s in node.slice]
        if inner is None or new.count(False) != self._ranks.of(node.value):
            return None
        places = [i - len(new) for i, fresh in enumerate(new) if not fresh]
        return frozenset(places[axis] for axis in inner)

    def _call(self, node: cst.Call, open_names: frozenset[str]) -> Axis | None:
        if tl_call(self._source, node, "arange") is not None:
            return frozenset({-1})
        if tl_call(self._source, node, *_SAME) is not None:
            return frozenset()
        given = argument(node, "input", 0)
        if tl_call(self._source, node, "broadcast_to") is not None and given is not None:
            same_rank = self._ranks.of(given.value) == self._ranks.of(node)
            return self._varying(given.value, open_names) if same_rank or not self._ranks.of(given.value) else None
        if tl_call(self._source, node, "expand_dims") is not None and given is not None:
            return self._expanded(node, given.value, open_names)
        if tl_call(self._source, node, "load", *LANEWISE) is not None:
            values = [a.value for a in node.args if not isinstance(a.value, cst.Attribute | cst.SimpleString)]
            return self._union(values, open_names)
        if tl_call(self._source, node, *_REDUCTIONS) is not None and given is not None:
            return self._reduced(node, given.value, open_names)
        cast = method_call(node, "to")
        return self._varying(cast.func.value, open_names) if cast and isinstance(cast.func, cst.Attribute) else None

    def _expanded(self, node: cst.Call, inner: cst.BaseExpression, open_names: frozenset[str]) -> Axis | None:
        axis, rank, varying = argument(node, "axis", 1), self._ranks.of(node), self._varying(inner, open_names)
        place = int_value(axis.value) if axis is not None else None
        if place is None or rank is None or varying is None:
            return None
        new = place - rank if place >= 0 else place
        return frozenset(a - 1 if a <= new else a for a in varying)

    def _reduced(self, node: cst.Call, inner: cst.BaseExpression, open_names: frozenset[str]) -> Axis | None:
        axis, rank, varying = argument(node, "axis", 1), self._ranks.of(inner), self._varying(inner, open_names)
        place = int_value(axis.value) if axis is not None else None
        if place is None or rank is None or varying is None:
            return None
        gone = place - rank if place >= 0 else place
        return frozenset(a + 1 if a < gone else a for a in varying if a != gone)
