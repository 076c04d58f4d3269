"""`t = tanh(u)` that is read as `1 + t`, `1 - t` and `1 - t * t` alone, as in the derivative of GELU."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import libcst as cst

from skills.edit import Edit, replace, tl_name
from skills.idioms import operand, taken_names
from skills.literals import float_value
from skills.names import fresh_name
from skills.triton_source import JitFunction, TritonSource, walk


@dataclass(frozen=True, slots=True, eq=False)
class NamedTanh:
    """One such name. With s = sigmoid(2u): 1 + t = 2s, 1 - t = 2(1 - s), 1 - t^2 = 4s(1 - s), all without the
    cancellation that 1 - t has."""

    name: cst.Name
    call: cst.Call
    argument: cst.BaseExpression
    sums: tuple[cst.BinaryOperation, ...]
    differences: tuple[cst.BinaryOperation, ...]
    squares: tuple[cst.BinaryOperation, ...]


def named_tanhs(
    source: TritonSource, function: JitFunction, is_tanh: Callable[[cst.Call], bool]
) -> Iterator[NamedTanh]:
    """Names that the function assigns once and reads in these forms only."""
    for f in source.callees(function):
        nodes = list(walk(f.node))
        for node in nodes:
            target = node.targets[0].target if isinstance(node, cst.Assign) and len(node.targets) == 1 else None
            value = node.value if isinstance(node, cst.Assign) else None
            if isinstance(target, cst.Name) and isinstance(value, cst.Call) and len(value.args) == 1 and is_tanh(value):
                found = _read(nodes, target, value)
                if found is not None:
                    yield found


def _read(nodes: list[cst.CSTNode], target: cst.Name, call: cst.Call) -> NamedTanh | None:
    def is_name(node: cst.CSTNode) -> bool:
        return isinstance(node, cst.Name) and node.value == target.value

    def is_square(node: cst.CSTNode) -> bool:
        product = isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Multiply)
        return isinstance(node, cst.BinaryOperation) and product and is_name(node.left) and is_name(node.right)

    sums, differences, squares = [], [], []
    for node in nodes:
        if not isinstance(node, cst.BinaryOperation):
            continue
        first = float_value(node.left) == 1.0
        if isinstance(node.operator, cst.Add):
            swapped = is_name(node.left) and float_value(node.right) == 1.0
            sums += [node] if (first and is_name(node.right)) or swapped else []
        elif isinstance(node.operator, cst.Subtract) and first:
            differences += [node] if is_name(node.right) else []
            squares += [node] if is_square(node.right) else []
    uses = sum(is_name(n) for n in nodes)
    covered = 1 + len(sums) + len(differences) + 2 * len(squares)
    if uses != covered or uses == 1:
        return None
    return NamedTanh(target, call, call.args[0].value, tuple(sums), tuple(differences), tuple(squares))


def named_edits(source: TritonSource, function: JitFunction, found: list[NamedTanh]) -> list[Edit]:
    """The sigmoid under a name of its own, and its forms where the tanh was read."""
    edits: list[Edit] = []
    taken = taken_names(function.node)
    for tanh in found:
        s = fresh_name(f"{tanh.name.value}_sigmoid", taken)
        edits.append(replace(source, tanh.name, s))
        edits.append(replace(source, tanh.call, f"{tl_name(source)}.sigmoid(2.0 * {operand(source, tanh.argument)})"))
        edits += [replace(source, n, f"2.0 * {s}") for n in tanh.sums]
        edits += [replace(source, n, f"2.0 * (1.0 - {s})") for n in tanh.differences]
        edits += [replace(source, n, f"4.0 * {s} * (1.0 - {s})") for n in tanh.squares]
    return edits
