"""Find products with the factors one half and one plus tanh (or erf), and write them with `tl.sigmoid`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import libcst as cst

from sandbox.kernel import Kernel
from sandbox.target import Target
from skills.edit import apply_edits, replace, tl_name
from skills.facts import Facts
from skills.idioms import factors, operand
from skills.library.fast_gelu.named import named_edits, named_tanhs
from skills.literals import float_value
from skills.skill import Refusal, Site
from skills.triton_source import JitFunction, TritonSource, dotted_name, parse_triton, walk

_INV_SQRT2 = 0.7071067811865476


@dataclass(frozen=True, slots=True, eq=False)
class _Gelu:
    """A product `half * rest... * (1 + f(u))`: `rest` are the other factors as written."""

    node: cst.BinaryOperation
    function: str
    argument: cst.BaseExpression
    rest: tuple[str, ...]


def find(kernel: Kernel, facts: Facts, target: Target) -> Iterable[Site | Refusal]:
    """The exact tanh form, and the approximation of the erf form."""
    source = parse_triton(kernel)
    function = source.functions.get(str(facts["kernel.name"]))
    if function is None:
        return
    found = list(_products(source, function))
    for name, label in (("tanh", "tanh form"), ("erf", "erf form, approximately")):
        nodes = [g for g in found if g.function == name and _text(source, g) is not None]
        if nodes:
            yield Site(source.line(nodes[0].node), label, function.name, {"form": name}, approximate=name == "erf")
    named = next(named_tanhs(source, function, lambda call: _known(source, call) == "tanh"), None)
    if named is not None:
        yield Site(source.line(named.call), "tanh by name", function.name, {"form": "named"})


def transform(kernel: Kernel, site: Site, target: Target) -> Kernel | None:
    """Every product of the chosen form in the kernel and the jit functions it calls."""
    source = parse_triton(kernel)
    function = source.functions.get(site.kernel or "")
    if function is None:
        return None
    if site.variant["form"] == "named":
        named = list(named_tanhs(source, function, lambda call: _known(source, call) == "tanh"))
        return apply_edits(kernel, source, named_edits(source, function, named))
    pairs = [(g, _text(source, g)) for g in _products(source, function) if g.function == site.variant["form"]]
    return apply_edits(kernel, source, [replace(source, g.node, text) for g, text in pairs if text is not None])


def _text(source: TritonSource, gelu: _Gelu) -> str | None:
    tl = tl_name(source)
    if gelu.function == "tanh":
        sigmoid = f"{tl}.sigmoid(2.0 * {operand(source, gelu.argument)})"
    else:
        x = _scaled_by_inverse_root(source, gelu.argument)
        if x is None:
            return None
        sigmoid = f"{tl}.sigmoid(1.5957691216057308 * {x} * (1.0 + 0.044715 * {x} * {x}))"
    return " * ".join([*gelu.rest, sigmoid])


def _scaled_by_inverse_root(source: TritonSource, node: cst.BaseExpression) -> str | None:
    """`x` of `x * 0.70710678` or `x / 1.41421356` or `x / tl.sqrt(2.0)`; None for anything else."""
    if isinstance(node, cst.BinaryOperation):
        left, right = float_value(node.left), float_value(node.right)
        near = 1e-4
        if isinstance(node.operator, cst.Multiply):
            if right is not None and abs(right - _INV_SQRT2) < near:
                return operand(source, node.left)
            if left is not None and abs(left - _INV_SQRT2) < near:
                return operand(source, node.right)
        root = right is not None and abs(right - 1 / _INV_SQRT2) < near
        root = root or re.fullmatch(r"[\w.]*sqrt\(2(\.0?)?\)", source.code(node.right)) is not None
        if isinstance(node.operator, cst.Divide) and root:
            return operand(source, node.left)
    return None


def _products(source: TritonSource, function: JitFunction) -> Iterator[_Gelu]:
    seen: set[int] = set()
    for f in source.callees(function):
        for node in walk(f.node.body):
            if not isinstance(node, cst.BinaryOperation) or id(node) in seen:
                continue
            parts = factors(node)
            if len(parts) < 2:
                continue
            gelu = _as_gelu(source, node, parts)
            if gelu is not None:
                seen |= {id(n) for n in walk(node)}
                yield gelu


def _as_gelu(
    source: TritonSource, node: cst.BinaryOperation, parts: list[tuple[cst.BaseExpression, bool]]
) -> _Gelu | None:
    """Parts are (factor, is divisor)."""
    half = next((p for p in parts if float_value(p[0]) == (2.0 if p[1] else 0.5)), None)
    if half is None:
        return None
    for part in parts:
        inner = _one_plus(source, part[0])
        if inner is None or part[1]:
            continue
        rest = [p for p in parts if p is not half and p is not part]
        if any(divisor for _, divisor in rest):
            return None
        name, argument = inner
        return _Gelu(node, name, argument, tuple(operand(source, p) for p, _ in rest))
    return None


def _one_plus(source: TritonSource, node: cst.BaseExpression) -> tuple[str, cst.BaseExpression] | None:
    if not isinstance(node, cst.BinaryOperation) or not isinstance(node.operator, cst.Add):
        return None
    for one, call in ((node.left, node.right), (node.right, node.left)):
        if float_value(one) == 1.0 and isinstance(call, cst.Call) and len(call.args) == 1:
            known = _known(source, call)
            if known is not None:
                return known, call.args[0].value
    return None


def _known(source: TritonSource, call: cst.Call) -> str | None:
    """`tanh` or `erf` for a call of one, whatever the library or the wrapper it is named after."""
    name = (dotted_name(call.func) or "").split(".")[-1].strip("_").lower()
    full = (source.qualified(call.func) or name).split(".")[-1].lower()
    if "tanh" in (name, full) or re.fullmatch(r"(fast_?)?tanhf?(_\w+)?", name):
        return "tanh"
    return "erf" if "erf" in (name, full) else None
