"""The shape of a block as the kernel writes it: the names and numbers its axes are as long as."""

from __future__ import annotations

import libcst as cst

from skills.idioms import assignments, method_call, tl_call
from skills.literals import int_value
from skills.rank import LANEWISE
from skills.triton_source import JitFunction, TritonSource, argument

Shape = tuple[str, ...]


class Shapes:
    """Answers for one jit function; None for what is not understood."""

    def __init__(self, source: TritonSource, function: JitFunction) -> None:
        self._source = source
        self._function = function
        self._params = {p.name for p in function.params}
        self._names: dict[str, Shape | None] = {}

    def of(self, node: cst.BaseExpression) -> Shape | None:
        """`()` of a scalar; of a block one text for each axis, `1` where it is broadcast."""
        if isinstance(node, cst.Integer | cst.Float):
            return ()
        if isinstance(node, cst.Name):
            return self._name(node.value)
        if isinstance(node, cst.UnaryOperation):
            return self.of(node.expression)
        if isinstance(node, cst.BinaryOperation | cst.BooleanOperation):
            return self._broadcast([node.left, node.right])
        if isinstance(node, cst.Comparison):
            return self._broadcast([node.left, *(c.comparator for c in node.comparisons)])
        if isinstance(node, cst.Subscript):
            return self._expanded(node)
        return self._call(node) if isinstance(node, cst.Call) else None

    def _name(self, name: str) -> Shape | None:
        """That of every value the name is given; a name whose value depends on itself has none."""
        if name not in self._names:
            self._names[name] = None
            shapes = {self.of(v) for v in assignments(self._source, self._function.node.body, name)}
            own = () if name in self._params and not shapes else None
            self._names[name] = shapes.pop() if len(shapes) == 1 else own
        return self._names[name]

    def _call(self, node: cst.Call) -> Shape | None:
        if tl_call(self._source, node, "program_id", "num_programs") is not None:
            return ()
        if tl_call(self._source, node, "arange") is not None:
            start, end = argument(node, "start", 0), argument(node, "end", 1)
            from_zero = start is not None and int_value(start.value) == 0
            return (self._source.code(end.value),) if from_zero and end is not None else None
        if tl_call(self._source, node, "load", *LANEWISE) is not None:
            return self._broadcast([a.value for a in node.args if a.keyword is None or _is_lanes(a)])
        cast = method_call(node, "to")
        return self.of(cast.func.value) if cast and isinstance(cast.func, cst.Attribute) else None

    def _expanded(self, node: cst.Subscript) -> Shape | None:
        """`x[:, None]`."""
        inner = self.of(node.value)
        marks = [self._source.code(e.slice) for e in node.slice]
        if inner is None or any(m not in (":", "None") for m in marks) or marks.count(":") != len(inner):
            return None
        lengths = iter(inner)
        return tuple("1" if m == "None" else next(lengths) for m in marks)

    def _broadcast(self, nodes: list[cst.BaseExpression]) -> Shape | None:
        shapes = [self.of(n) for n in nodes]
        known = [s for s in shapes if s is not None]
        if len(known) < len(shapes):
            return None
        rank = max(len(s) for s in known)
        result: list[str] = []
        for axis in range(rank):
            lengths = {s[len(s) - rank + axis] for s in known if len(s) - rank + axis >= 0} - {"1"}
            if len(lengths) > 1:
                return None
            result.append(lengths.pop() if lengths else "1")
        return tuple(result)


def _is_lanes(arg: cst.Arg) -> bool:
    """Whether a keyword of an access gives something for each lane, as a mask does and a cache modifier does not."""
    return arg.keyword is not None and arg.keyword.value in ("mask", "other", "pointer", "x", "y", "condition")
