"""How many axes the expressions of a jit function have: 0 for a scalar, 1 for a row of lanes, 2 for a tile."""

from __future__ import annotations

from collections.abc import Iterable

import libcst as cst

from skills.idioms import assignments, method_call, tl_call
from skills.literals import int_value
from skills.triton_source import JitFunction, TritonSource, argument, walk

_SCALAR = ("program_id", "num_programs")
_SHAPED = {"zeros": 0, "full": 0, "broadcast_to": 1}
"""Calls that are told the shape of their result, and where."""
LANEWISE = (
    "where", "abs", "exp", "exp2", "log", "log2", "sqrt", "sqrt_rn", "rsqrt", "sin", "cos", "erf", "sigmoid", "fma",
    "maximum", "minimum", "clamp", "floor", "ceil", "cdiv", "div_rn", "fdiv", "umulhi", "cast",
)  # fmt: skip
"""Calls that compute each lane from the same lanes of their operands."""
_SHAPE_KEPT = ("load", *LANEWISE, "zeros_like", "cumsum", "cumprod", "flip", "atomic_add")
"""Calls whose result has as many axes as the largest of their operands."""
_REDUCTIONS = ("sum", "max", "min", "xor_sum", "argmax", "argmin")
_NO_OPERANDS = ("cache_modifier", "eviction_policy", "volatile", "sem", "scope", "dtype", "axis", "reverse")


class Ranks:
    """Answers for one jit function. None wherever something in the expression is not understood."""

    def __init__(self, source: TritonSource, function: JitFunction) -> None:
        self._source = source
        self._function = function
        self._scalars = {p.name for p in function.params}
        for node in walk(function.node.body):
            if isinstance(node, cst.For) and isinstance(node.target, cst.Name):
                self._scalars.add(node.target.value)

    def of(self, node: cst.BaseExpression) -> int | None:
        """The number of axes of an expression's value."""
        return self._of(node, frozenset())

    def _of(self, node: cst.BaseExpression, open_names: frozenset[str]) -> int | None:
        if isinstance(node, cst.Integer | cst.Float):
            return 0
        if isinstance(node, cst.Name):
            return self._name(node.value, open_names)
        if isinstance(node, cst.UnaryOperation):
            return self._of(node.expression, open_names)
        if isinstance(node, cst.BinaryOperation | cst.BooleanOperation):
            return self._largest((node.left, node.right), open_names)
        if isinstance(node, cst.Comparison):
            return self._largest((node.left, *(c.comparator for c in node.comparisons)), open_names)
        if isinstance(node, cst.Subscript):
            slices = all(isinstance(s.slice, cst.Slice) or self._source.code(s.slice) == "None" for s in node.slice)
            return len(node.slice) if slices else None
        return self._call(node, open_names) if isinstance(node, cst.Call) else None

    def _name(self, name: str, open_names: frozenset[str]) -> int | None:
        """What the name is given; where it is given itself again, that adds no axis."""
        if name in open_names or name in ("None", "True", "False"):
            return 0
        values = list(assignments(self._source, self._function.node.body, name))
        if not values:
            return 0 if name in self._scalars else None
        return self._largest(values, open_names | {name})

    def _call(self, node: cst.Call, open_names: frozenset[str]) -> int | None:
        if tl_call(self._source, node, "arange") is not None:
            return 1
        if tl_call(self._source, node, *_SCALAR) is not None:
            return 0
        for name, position in _SHAPED.items():
            if tl_call(self._source, node, name) is not None:
                shape = argument(node, "shape", position)
                lengths = shape.value if shape is not None else None
                return len(lengths.elements) if isinstance(lengths, cst.Tuple | cst.List) else None
        if tl_call(self._source, node, "expand_dims") is not None:
            axis, given = argument(node, "axis", 1), argument(node, "input", 0)
            inner = self._of(given.value, open_names) if given is not None else None
            return inner + 1 if inner is not None and axis is not None and int_value(axis.value) is not None else None
        if tl_call(self._source, node, *_SHAPE_KEPT) is not None:
            operands = [a for a in node.args if a.keyword is None or a.keyword.value not in _NO_OPERANDS]
            starred = any(a.star for a in operands)
            return None if starred else self._largest((a.value for a in operands if _is_operand(a)), open_names)
        if tl_call(self._source, node, *_REDUCTIONS) is not None:
            inner = self._of(node.args[0].value, open_names) if node.args else None
            if inner is None or argument(node, "keep_dims", 2) is not None:
                return None
            return inner - 1 if inner and argument(node, "axis", 1) is not None else 0
        cast = method_call(node, "to")
        return self._of(cast.func.value, open_names) if cast and isinstance(cast.func, cst.Attribute) else None

    def _largest(self, nodes: Iterable[cst.BaseExpression], open_names: frozenset[str]) -> int | None:
        found = [self._of(n, open_names) for n in nodes]
        known = [r for r in found if r is not None]
        return max(known, default=0) if len(known) == len(found) else None


def _is_operand(arg: cst.Arg) -> bool:
    """Whether an argument is a value and not a type or an option: `tl.int32`, `"relaxed"`."""
    return not isinstance(arg.value, cst.Attribute | cst.SimpleString)
