"""Which expressions of a jit function are the same in every lane, and the scalar they stand for."""

from __future__ import annotations

import re

import libcst as cst

from skills.idioms import assignments, method_call, tl_call
from skills.literals import int_value
from skills.rank import LANEWISE
from skills.triton_source import JitFunction, TritonSource, argument, dotted_name, walk

_SCALAR_CALLS = ("program_id", "num_programs", "cdiv", "sum", "max", "min")


class Uniformity:
    """Answers for one jit function. What is not understood counts as varying and, for `is_block`, as no block."""

    def __init__(self, source: TritonSource, function: JitFunction) -> None:
        self._source = source
        self._function = function
        self._params = {p.name for p in function.params}

    def _given(self, name: str) -> list[cst.BaseExpression]:
        return list(assignments(self._source, self._function.node.body, name))

    def scalar_of(self, node: cst.BaseExpression, depth: int = 0) -> str | None:
        """Text of a scalar equal to every lane of the expression; None when the lanes may differ."""
        if depth > 8:
            return None
        if isinstance(node, cst.Integer | cst.Float):
            return self._source.code(node)
        if isinstance(node, cst.Name):
            return self._scalar_name(node, depth)
        if isinstance(node, cst.BinaryOperation):
            return self._scalar_sum(node, depth)
        call = tl_call(self._source, node, "zeros", "zeros_like")
        if call is not None:
            return "0"
        call = tl_call(self._source, node, "full", "broadcast_to")
        if call is not None:
            value = argument(call, "value" if tl_call(self._source, node, "full") is not None else "input", -1)
            position = 1 if tl_call(self._source, node, "full") is not None else 0
            value = value if value is not None else argument(call, "", position)
            return self.scalar_of(value.value, depth + 1) if value is not None else None
        if tl_call(self._source, node, *_SCALAR_CALLS) is not None and not self.is_block(node):
            return self._source.code(node)
        cast = method_call(node, "to")
        if cast is not None and isinstance(cast.func, cst.Attribute):
            inner = self.scalar_of(cast.func.value, depth + 1)
            return (
                "0"
                if inner == "0"
                else self._source.code(node)
                if inner == self._source.code(cast.func.value)
                else None
            )
        load = tl_call(self._source, node, "load")
        if load is not None:
            pointer = argument(load, "pointer", 0)
            if pointer is not None and not self.is_block(pointer.value) and self.scalar_of(pointer.value, depth + 1):
                return self._source.code(node)
        return None

    def _scalar_name(self, node: cst.Name, depth: int) -> str | None:
        values = self._given(node.value)
        if not values:
            return node.value if node.value in self._params else None
        scalars = [self.scalar_of(v, depth + 1) for v in values]
        if any(s is None for s in scalars):
            return None
        if not any(self.is_block(v) for v in values):
            return node.value
        return scalars[0] if len(set(scalars)) == 1 and self._same_later(scalars[0]) else None

    def _same_later(self, text: str | None) -> bool:
        """Whether an expression gives the same where a name it was assigned to is read: it reads no memory, and what it
        names is assigned once."""
        names = set(re.findall(r"[A-Za-z_]\w*", text or ""))
        return "load" not in names and all(len(self._given(name)) <= 1 for name in names)

    def _scalar_sum(self, node: cst.BinaryOperation, depth: int) -> str | None:
        code = self._source.code
        if isinstance(node.operator, cst.Subtract) and code(node.left) == code(node.right):
            return "0"
        if isinstance(node.operator, cst.Multiply) and 0 in (int_value(node.left), int_value(node.right)):
            return "0"
        left, right = self.scalar_of(node.left, depth + 1), self.scalar_of(node.right, depth + 1)
        if left is None or right is None:
            return None
        if isinstance(node.operator, cst.Add) and "0" in (left, right):
            return right if left == "0" else left
        if isinstance(node.operator, cst.Multiply) and "0" in (left, right):
            return "0"
        if left == code(node.left) and right == code(node.right):
            return code(node)
        return None if not isinstance(node.operator, cst.Add) else f"{left} + {right}"

    def is_scalar(self, node: cst.BaseExpression) -> bool:
        """Whether the expression is known to have no lanes."""
        return not self.is_block(node) and self.scalar_of(node) is not None

    def is_block(self, node: cst.BaseExpression, depth: int = 0) -> bool:
        """Whether the expression is known to have lanes."""
        if depth > 8:
            return False
        if isinstance(node, cst.Name):
            return any(self.is_block(v, depth + 1) for v in self._given(node.value))
        if isinstance(node, cst.BinaryOperation | cst.BooleanOperation):
            return self.is_block(node.left, depth + 1) or self.is_block(node.right, depth + 1)
        if isinstance(node, cst.Comparison):
            parts = [node.left, *(c.comparator for c in node.comparisons)]
            return any(self.is_block(p, depth + 1) for p in parts)
        if isinstance(node, cst.UnaryOperation):
            return self.is_block(node.expression, depth + 1)
        if isinstance(node, cst.Subscript):
            return self.is_block(node.value, depth + 1)
        if tl_call(self._source, node, "arange", "zeros_like", "broadcast_to") is not None:
            return True
        shaped = tl_call(self._source, node, "zeros", "full")
        if shaped is not None:
            return bool(shaped.args) and self._source.code(shaped.args[0].value) not in ("()", "[]")
        reduced = tl_call(self._source, node, "sum", "max", "min")
        if reduced is not None:
            return (
                argument(reduced, "axis", 1) is not None
                and dotted_name(reduced.func) is not None
                and self._two_axes(reduced)
            )
        if tl_call(self._source, node, "load", "dot", *LANEWISE) is not None and isinstance(node, cst.Call):
            return any(self.is_block(a.value, depth + 1) for a in node.args)
        cast = method_call(node, "to")
        if cast is not None and isinstance(cast.func, cst.Attribute):
            return self.is_block(cast.func.value, depth + 1)
        return False

    def _two_axes(self, call: cst.Call) -> bool:
        """Whether a reduction along one axis may leave another: its operand is built with a new axis somewhere."""
        texts = [self._source.code(call.args[0].value)]
        if isinstance(call.args[0].value, cst.Name):
            texts += [self._source.code(v) for v in self._given(call.args[0].value.value)]
        return any("None" in t or "dot(" in t for t in texts)


def every_access_masked(source: TritonSource, function: JitFunction) -> bool:
    """Whether every load and store of many lanes has a mask, so that a larger block cannot run past an end.

    Without one the kernel relies on sizes that are multiples of its block, of which only smaller blocks are sure.
    """
    uniformity = Uniformity(source, function)
    for node in walk(function.node.body):
        call = tl_call(source, node, "load", "store")
        if call is None:
            continue
        pointer = argument(call, "pointer", 0)
        mask = argument(call, "mask", 2 if tl_call(source, node, "store") is not None else 1)
        if mask is None and (pointer is None or not uniformity.is_scalar(pointer.value)):
            return False
    return True
