"""Values of literals in a syntax tree."""

from __future__ import annotations

import libcst as cst


def string_value(node: cst.CSTNode | None) -> str | None:
    """The value of a string literal (also concatenated), else None."""
    if isinstance(node, cst.SimpleString | cst.ConcatenatedString):
        value = node.evaluated_value
        return value if isinstance(value, str) else None
    return None


def int_value(node: cst.CSTNode | None) -> int | None:
    """The value of an integer literal, also negative or a product or power of two of literals; else None."""
    if isinstance(node, cst.Integer):
        return node.evaluated_value
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Minus):
        inner = int_value(node.expression)
        return None if inner is None else -inner
    if isinstance(node, cst.BinaryOperation):
        left, right = int_value(node.left), int_value(node.right)
        if left is None or right is None:
            return None
        if isinstance(node.operator, cst.Multiply):
            return left * right
        if isinstance(node.operator, cst.FloorDivide) and right:
            return left // right
        if isinstance(node.operator, cst.Power) and 0 <= right < 64:
            return int(left**right)
    return None


def float_value(node: cst.CSTNode | None) -> float | None:
    """The value of a numeric literal, else None."""
    if isinstance(node, cst.Float):
        return node.evaluated_value
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Minus):
        inner = float_value(node.expression)
        return None if inner is None else -inner
    whole = int_value(node)
    return None if whole is None else float(whole)
