"""Products with several float literals get one, sigmoids of such a product the base change too, squares stand alone."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator

import libcst as cst

from sandbox.kernel import Kernel
from sandbox.target import Target
from skills.edit import Edit, apply_edits, replace, tl_name
from skills.facts import Facts
from skills.idioms import assignments, factors, needs_parentheses, tl_call
from skills.literals import float_value
from skills.skill import Refusal, Site
from skills.triton_source import JitFunction, TritonSource, dotted_name, parse_triton, walk

_SANE = (1e-9, 1e9)
"""Magnitudes of the folded literal; beyond them a product in between may have had a reason."""
_FLOATS = ("sigmoid", "exp", "exp2", "log", "log2", "sqrt", "rsqrt", "sin", "cos", "erf", "dot")


def find(kernel: Kernel, facts: Facts, target: Target) -> Iterable[Site | Refusal]:
    """One site per kernel."""
    source = parse_triton(kernel)
    function = source.functions.get(str(facts["kernel.name"]))
    edits = _edits(source, function) if function is not None else []
    if function is not None and edits:
        yield Site(source.line_at(edits[0].start), "literal factors", function.name)


def transform(kernel: Kernel, site: Site, target: Target) -> Kernel | None:
    """Every product of the kernel and of the jit functions that it calls."""
    source = parse_triton(kernel)
    function = source.functions.get(site.kernel or "")
    return apply_edits(kernel, source, _edits(source, function) if function is not None else [])


def _edits(source: TritonSource, function: JitFunction) -> list[Edit]:
    edits: list[Edit] = []
    for f in source.callees(function):
        folding = _Folding(source, f)
        texts = ((node, folding.text(node)) for node in folding.outermost(f.node.body))
        edits += [replace(source, node, text) for node, text in texts if text != source.code(node)]
    return sorted(edits)


class _Folding:
    """What of one jit function is rewritten, and how."""

    def __init__(self, source: TritonSource, function: JitFunction) -> None:
        self.source, self.function = source, function
        products = [p for n in walk(function.node.body) if (p := self._product(n)) is not None]
        repeated = (Counter(name for name in map(dotted_name, p) if name is not None) for p in products)
        self._squares = Counter(name for counts in repeated for name, times in counts.items() if times > 1)

    def outermost(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """Nodes to rewrite, none inside another."""
        if self._folds(node):
            yield node
        else:
            for child in node.children:
                yield from self.outermost(child)

    def text(self, node: cst.CSTNode) -> str:
        """The node with everything in it rewritten."""
        sigmoid = tl_call(self.source, node, "sigmoid")
        if sigmoid is not None and self._folds(node):
            tl, inner = tl_name(self.source), self._product(sigmoid.args[0].value) or []
            text = f"1.0 / (1.0 + {tl}.exp2({self._joined(inner, -1 / math.log(2))}))"
            above = self.source.parent(node)
            term = isinstance(above, cst.BinaryOperation) and isinstance(above.operator, cst.Add | cst.Subtract)
            return text if term or not isinstance(above, cst.BaseExpression) else f"({text})"
        parts = self._product(node)
        if parts is not None and self._folds(node):
            return self._joined(parts, 1.0)
        pieces: list[str] = []
        start, end = self.source.span(node)
        for below in (n for child in node.children for n in self.outermost(child)):
            first, last = self.source.span(below)
            pieces += [self.source.data[start:first].decode(), self.text(below)]
            start = last
        return "".join([*pieces, self.source.data[start:end].decode()])

    def _product(self, node: cst.CSTNode) -> list[cst.BaseExpression] | None:
        """The factors of a whole product in which nothing divides and at least one literal is a float."""
        if not isinstance(node, cst.BinaryOperation) or not isinstance(node.operator, cst.Multiply):
            return None
        above = self.source.parent(node)
        parts = factors(node)
        inner = isinstance(above, cst.BinaryOperation) and isinstance(above.operator, cst.Multiply)
        if inner or any(divides for _, divides in parts):
            return None
        found = [part for part, _ in parts]
        return found if any(_is_float_literal(p) for p in found) else None

    def _folds(self, node: cst.CSTNode) -> bool:
        """Whether the node is a product with a literal too many or a square that another has; or a sigmoid of one."""
        sigmoid = tl_call(self.source, node, "sigmoid")
        if sigmoid is not None and len(sigmoid.args) == 1:
            return self._product(sigmoid.args[0].value) is not None
        parts = self._product(node)
        literal = math.prod(v for p in parts if (v := float_value(p)) is not None) if parts else 0.0
        if parts is None or not _SANE[0] <= abs(literal) <= _SANE[1]:
            return False
        several = sum(float_value(p) is not None for p in parts) > 1 and any(float_value(p) is None for p in parts)
        names = Counter(name for name in map(dotted_name, parts) if name is not None)
        return several or any(times > 1 and self._squares[name] > 1 for name, times in names.items())

    def _joined(self, parts: list[cst.BaseExpression], scale: float) -> str:
        literal = scale * math.prod(v for p in parts if (v := float_value(p)) is not None)
        rest = [p for p in parts if float_value(p) is None]
        known = literal != 1.0 or not any(self._is_float(p, frozenset()) for p in rest)
        texts = [repr(float(f"{literal:.12g}"))] if known else []
        times = Counter(name for p in rest if (name := dotted_name(p)) is not None)
        for part in rest:
            name = dotted_name(part)
            if name is None or self._squares[name] < 2:
                texts.append(f"({self.text(part)})" if needs_parentheses(part) else self.text(part))
                continue
            single, squares = times[name] % 2, times[name] // 2
            texts += [name] * single + [f"({name} * {name})"] * squares
            times[name] = 0
        return " * ".join(texts)

    def _is_float(self, node: cst.BaseExpression, seen: frozenset[str]) -> bool:
        """Whether a value is of a float type without the literal, too."""
        if isinstance(node, cst.Float) or tl_call(self.source, node, *_FLOATS) is not None:
            return True
        if isinstance(node, cst.BinaryOperation):
            return isinstance(node.operator, cst.Divide) or any(
                self._is_float(side, seen) for side in (node.left, node.right)
            )
        if not isinstance(node, cst.Name) or node.value in seen:
            return False
        given = list(assignments(self.source, self.function.node.body, node.value))
        return bool(given) and all(self._is_float(v, seen | {node.value}) for v in given)


def _is_float_literal(node: cst.BaseExpression) -> bool:
    inner = node.expression if isinstance(node, cst.UnaryOperation) else node
    return isinstance(inner, cst.Float) and float_value(node) is not None
