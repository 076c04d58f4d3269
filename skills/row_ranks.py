"""Kernels of one row per program, and the edits that let a program take a block of rows.

Every value of such a kernel is one of four: the same for all rows and columns, one per row, one per column, or one per
element of the tile. Rows are given the shape (ROWS, 1) and columns (1, BLOCK) where they are made, so that all that is
elementwise broadcasts by itself; accesses that differ by row get a mask, reductions an axis.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntFlag

import libcst as cst

from skills.edit import Edit, add_argument, insert_after, insert_before, replace, tl_name
from skills.idioms import method_call, program_axis, result_unread
from skills.literals import int_value
from skills.rank import LANEWISE
from skills.triton_source import TL, JitFunction, TritonSource, argument, dotted_name

_ELEMENTWISE = frozenset({*LANEWISE, "zeros_like", "rand", "randn", "randint"})
_REDUCTIONS = ("sum", "max", "min", "xor_sum", "argmax", "argmin")
_ATOMICS = ("atomic_add", "atomic_max", "atomic_min", "atomic_and", "atomic_or", "atomic_xor")
_UNIFORM_CALLS = ("static_assert", "assume", "multiple_of", "max_contiguous", "constexpr")
"""Calls left as they are where all they are given is uniform."""
_BUILTINS = ("float", "int", "min", "max", "abs", "len", "range")
_RANGES = ("range", "static_range")


class Rank(IntFlag):
    """By which axes of the tile a value differs."""

    UNIFORM = 0
    ROW = 1
    COLUMN = 2
    TILE = 3


class _NotPackableError(Exception):
    """Why a kernel has to stay at one row per program; caught by `pack` alone."""


@dataclass(frozen=True, slots=True)
class Names:
    """What a packed kernel calls the new values."""

    rows: str
    """The constexpr with the number of rows in a program."""
    extent: str
    """The parameter with the number of all rows."""
    row: str
    """The row ids, where the kernel has no name for them."""
    inside: str
    """The mask of rows that exist."""


@dataclass(frozen=True, slots=True)
class Packed:
    """A kernel that can take several rows per program along one axis of its grid."""

    axis: int
    edits: tuple[Edit, ...]
    """Edits of the kernel's body."""
    block: str
    """The number of columns, as the kernel writes it."""
    loops: bool
    tiles: tuple[cst.BaseExpression, ...]
    """Addresses that differ by row and by column."""


def pack(source: TritonSource, function: JitFunction, axis: int, names: Names) -> Packed | str:
    """The kernel with the programs of one grid axis taken several at a time, or why that cannot be."""
    ranks = _Ranks(source, function, axis, names)
    block = function.node.body
    if not isinstance(block, cst.IndentedBlock):
        return "its body is one line"
    try:
        ranks.run(block.body, {p.name: Rank.UNIFORM for p in function.params})
        edits = (*ranks.edits, *_row_edits(source, function, ranks.ids, axis, names))
    except _NotPackableError as e:
        return str(e)
    if len(ranks.bounds) != 1:
        return "its columns are not of one width"
    if not ranks.tiles:
        return "no access differs by row and column"
    return Packed(axis, edits, ranks.bounds.pop(), ranks.loops, tuple(ranks.tiles))


def _row_edits(
    source: TritonSource, function: JitFunction, ids: Sequence[cst.Call], axis: int, names: Names
) -> Iterator[Edit]:
    """The program id as a block of row ids, and the mask of those that exist."""
    tl = tl_name(source)
    if not ids:
        raise _NotPackableError("it does not read the program id")
    holders = set(source.ancestors(ids[0]))
    first = next(s for s in function.node.body.body if s in holders)
    block = f"{tl}.program_id({axis}) * {names.rows} + {tl}.arange(0, {names.rows})"
    name = _named_row(first, ids)
    if name is None:
        yield insert_before(
            source, first, [f"{names.row} = ({block})[:, None]", f"{names.inside} = {names.row} < {names.extent}"]
        )
        for call in dict.fromkeys(ids):
            yield replace(source, call, names.row)
        return
    bare = isinstance(source.parent(ids[0]), cst.Assign)
    yield replace(source, ids[0], f"{block}[:, None]" if bare else f"({block})[:, None]")
    yield insert_after(source, first, [f"{names.inside} = {name} < {names.extent}"])


def _named_row(statement: cst.CSTNode, ids: Sequence[cst.Call]) -> str | None:
    """The name of `row = tl.program_id(0)` or `row = tl.program_id(0).to(...)`, where that is the only reading."""
    if len({id(i) for i in ids}) != 1 or not isinstance(statement, cst.SimpleStatementLine) or len(statement.body) != 1:
        return None
    small = statement.body[0]
    if not isinstance(small, cst.Assign) or len(small.targets) != 1:
        return None
    cast = method_call(small.value, "to")
    given = cast.func.value if cast is not None and isinstance(cast.func, cst.Attribute) else small.value
    return dotted_name(small.targets[0].target) if given is ids[0] else None


_Env = dict[str, "Rank | None"]
"""Ranks by name; None where two branches leave a name with different ones."""


class _Ranks:
    """Walks one jit function in the order it runs."""

    def __init__(self, source: TritonSource, function: JitFunction, axis: int, names: Names) -> None:
        self._source = source
        self._function = function
        self._axis = axis
        self._names = names
        self._starts: dict[str, cst.BaseExpression] = {}
        """Names whose value is a float literal so far."""
        self.edits: list[Edit] = []
        self.ids: list[cst.Call] = []
        self.bounds: set[str] = set()
        self.tiles: list[cst.BaseExpression] = []
        self.loops = False

    def run(self, body: Iterable[cst.CSTNode], env: _Env) -> None:
        """All statements of a block; `env` is changed as they change it."""
        for node in body:
            if isinstance(node, cst.SimpleStatementLine):
                for small in node.body:
                    self._small(small, env)
            elif isinstance(node, cst.For):
                self._loop(node, env)
            elif isinstance(node, cst.If):
                self._branch(node, env)
            else:
                raise _NotPackableError(f"line {self._source.line(node)} is no assignment, loop or branch")

    def _small(self, small: cst.BaseSmallStatement, env: _Env) -> None:
        if isinstance(small, cst.Assign):
            rank = None if isinstance(small.value, cst.Tuple) else self.of(small.value, env)
            for target in small.targets:
                self._assign(target.target, small.value, rank, env)
        elif isinstance(small, cst.AnnAssign) and small.value is not None:
            self._assign(small.target, small.value, self.of(small.value, env), env)
        elif isinstance(small, cst.AugAssign):
            self._assign(small.target, small, self.of(small.target, env) | self.of(small.value, env), env)
        elif isinstance(small, cst.Expr):
            if not isinstance(small.value, cst.SimpleString | cst.ConcatenatedString):
                self.of(small.value, env)
        elif isinstance(small, cst.Assert):
            self._uniform([small.test], env, "an assertion")
        elif not isinstance(small, cst.Pass):
            raise _NotPackableError(f"line {self._source.line(small)} is no assignment, loop or branch")

    def _assign(self, target: cst.BaseExpression, value: cst.CSTNode, rank: Rank | None, env: _Env) -> None:
        """`value` is the expression given, or the statement where it is added to what was there."""
        if isinstance(target, cst.Tuple) and isinstance(value, cst.Tuple):
            if len(target.elements) != len(value.elements):
                raise _NotPackableError(f"line {self._source.line(value)} assigns a tuple")
            ranks = [self.of(e.value, env) for e in value.elements]
            for element, right, one in zip(target.elements, value.elements, ranks, strict=True):
                self._assign(element.value, right.value, one, env)
            return
        if not isinstance(target, cst.Name) or rank is None:
            raise _NotPackableError(f"line {self._source.line(value)} assigns to more than a name")
        env[target.value] = rank
        self._starts.pop(target.value, None)
        if isinstance(value, cst.BaseExpression) and _float_literal(value):
            self._starts[target.value] = value

    def _loop(self, loop: cst.For, env: _Env) -> None:
        """Every round finds names with the ranks they had in the first: float literals become blocks for that."""
        call = loop.iter
        name = (self._source.qualified(call.func) or "").removeprefix(f"{TL}.") if isinstance(call, cst.Call) else ""
        if not isinstance(call, cst.Call) or name not in _RANGES or loop.orelse is not None:
            raise _NotPackableError(f"the loop of line {self._source.line(loop)} is no range")
        self._uniform([a.value for a in call.args], env, "a bound of a loop")
        if not isinstance(loop.target, cst.Name) or not isinstance(loop.body, cst.IndentedBlock):
            raise _NotPackableError(f"the loop of line {self._source.line(loop)} is no plain one")
        self.loops = True
        starts, edits = dict(self._starts), list(self.edits)
        for _ in range(len(starts) + 1):
            inside: _Env = {**env, loop.target.value: Rank.UNIFORM}
            self._starts, self.edits = dict(starts), list(edits)
            self.run(loop.body.body, inside)
            changed = [n for n, before in env.items() if n != loop.target.value and inside[n] != before]
            if not changed:
                env.update(inside)
                self._starts = {}
                return
            for carried in changed:
                if carried not in starts or inside[carried] != Rank.ROW:
                    raise _NotPackableError(f"`{carried}` has another shape after the first round of its loop")
                tl = tl_name(self._source)
                shape = f"({self._names.rows}, 1)"
                text = f"{tl}.full({shape}, {self._source.code(starts[carried])}, {tl}.float32)"
                edits.append(replace(self._source, starts.pop(carried), text))
                env[carried] = Rank.ROW
        raise _NotPackableError(f"the loop of line {self._source.line(loop)} does not settle")

    def _branch(self, node: cst.If, env: _Env) -> None:
        self._uniform([node.test], env, "a branch's condition")
        taken, other = dict(env), dict(env)
        starts = dict(self._starts)
        self.run(node.body.body, taken)
        if isinstance(node.orelse, cst.If):
            self._branch(node.orelse, other)
        elif node.orelse is not None:
            self.run(node.orelse.body.body, other)
        self._starts = {n: v for n, v in starts.items() if self._starts.get(n) is v}
        for name in {*taken, *other}:
            both = name in taken and name in other
            env[name] = (taken.get(name, other.get(name))) if not both or taken[name] == other[name] else None

    def _uniform(self, nodes: Iterable[cst.BaseExpression], env: _Env, what: str) -> Rank:
        for node in nodes:
            if self.of(node, env):
                raise _NotPackableError(f"{what} (line {self._source.line(node)}) differs by row or column")
        return Rank.UNIFORM

    def of(self, node: cst.BaseExpression, env: _Env) -> Rank:
        """The rank of an expression's value; edits it needs are collected on the way."""
        if isinstance(node, cst.Integer | cst.Float | cst.BaseString):
            return Rank.UNIFORM
        if isinstance(node, cst.Name):
            rank = env.get(node.value, Rank.UNIFORM)
            if rank is None:
                raise _NotPackableError(f"`{node.value}` has several shapes")
            return rank
        if isinstance(node, cst.BinaryOperation):
            return self.of(node.left, env) | self.of(node.right, env)
        if isinstance(node, cst.UnaryOperation):
            inner = self.of(node.expression, env)
            if inner and isinstance(node.operator, cst.Not):
                raise _NotPackableError(f"line {self._source.line(node)} needs one truth value")
            return inner
        if isinstance(node, cst.Comparison):
            return self._comparison(node, env)
        if isinstance(node, cst.Attribute):
            return self._attribute(node, env)
        if isinstance(node, cst.Call):
            return self._call(node, env)
        if isinstance(node, cst.IfExp):
            self._uniform([node.test], env, "a condition")
            return self.of(node.body, env) | self.of(node.orelse, env)
        if isinstance(node, cst.BooleanOperation):
            return self._uniform([node.left, node.right], env, "`and` or `or`")
        if isinstance(node, cst.Tuple | cst.List):
            return self._uniform([e.value for e in node.elements], env, "a tuple")
        raise _NotPackableError(f"`{self._source.code(node)}` is not understood")

    def _comparison(self, node: cst.Comparison, env: _Env) -> Rank:
        rank = self.of(node.left, env)
        for comparison in node.comparisons:
            rank |= self.of(comparison.comparator, env)
        if rank and len(node.comparisons) > 1:
            raise _NotPackableError(f"line {self._source.line(node)} chains comparisons")
        return rank

    def _attribute(self, node: cst.Attribute, env: _Env) -> Rank:
        """Types are the same for all; anything else of a block may depend on its shape."""
        base = (dotted_name(node) or "").split(".")
        if not base[0] or (env.get(base[0], Rank.UNIFORM) != Rank.UNIFORM and base[1] not in ("dtype", "type")):
            raise _NotPackableError(f"`{self._source.code(node)}` is not understood")
        return Rank.UNIFORM

    def _call(self, call: cst.Call, env: _Env) -> Rank:
        cast = method_call(call, "to")
        if cast is not None and isinstance(cast.func, cst.Attribute):
            return self.of(cast.func.value, env)
        if any(a.star for a in call.args):
            raise _NotPackableError(f"`{self._source.code(call.func)}` is given arguments that are not written out")
        full = self._source.qualified(call.func) or ""
        name = full.removeprefix(f"{TL}.").removeprefix("math.") if full.startswith(f"{TL}.") else ""
        if name in ("load", "store", *_ATOMICS):
            return self._access(call, name, env)
        if name in _REDUCTIONS:
            return self._reduction(call, name, env)
        if name in ("program_id", "num_programs", "arange", "zeros", "full"):
            return self._made(call, name, env)
        values = [a.value for a in call.args]
        if name in _UNIFORM_CALLS or full in _BUILTINS:
            return self._uniform(values, env, f"what `{self._source.code(call.func)}` is given")
        if name in _ELEMENTWISE or (full.startswith("triton.") and ".libdevice." in full):
            rank = Rank.UNIFORM
            for value in values:
                rank |= self.of(value, env)
            return rank
        helper = self._source.functions.get(full)
        if helper is not None and helper is not self._function:
            return self._helper(helper, call, env)
        raise _NotPackableError(f"`{self._source.code(call.func)}` is not known to be elementwise")

    def _made(self, call: cst.Call, name: str, env: _Env) -> Rank:
        """What is made here and not computed: ids, columns, blocks of one value."""
        tl = tl_name(self._source)
        if name in ("program_id", "num_programs"):
            number = program_axis(call)
            if number is None or (number == self._axis and name == "num_programs"):
                raise _NotPackableError("it reads the number of programs")
            if number == self._axis:
                self.ids.append(call)
            return Rank.ROW if number == self._axis else Rank.UNIFORM
        if name == "arange":
            start, end = argument(call, "start", 0), argument(call, "end", 1)
            if start is None or end is None or int_value(start.value) != 0:
                raise _NotPackableError("its columns do not start at 0")
            self.bounds.add(self._source.code(end.value))
            self.edits.append(replace(self._source, call, f"{self._source.code(call)}[None, :]"))
            return Rank.COLUMN
        shape = argument(call, "shape", 0)
        lengths = shape.value if shape is not None else None
        rest = [a.value for a in call.args if a is not shape]
        self._uniform(rest, env, f"the value of `{tl}.{name}`")
        if not isinstance(lengths, cst.Tuple | cst.List) or len(lengths.elements) != 1:
            raise _NotPackableError(f"`{tl}.{name}` makes no row of columns")
        length = self._source.code(lengths.elements[0].value)
        self.bounds.add(length)
        self.edits.append(replace(self._source, lengths, _within(lengths, f"{self._names.rows}, {length}")))
        return Rank.TILE

    def _access(self, call: cst.Call, name: str, env: _Env) -> Rank:
        """A load, store or atomic: it gets the mask of rows where its address differs by row."""
        pointer, mask = argument(call, "pointer", 0), argument(call, "mask", 1 if name == "load" else 2)
        if pointer is None:
            raise _NotPackableError(f"`{self._source.code(call)}` is not understood")
        rank = self.of(pointer.value, env)
        if name in _ATOMICS and not rank & Rank.ROW:
            raise _NotPackableError(f"line {self._source.line(call)}: every row counts at one address")
        if name in _ATOMICS and not result_unread(self._source, self._function, call):
            raise _NotPackableError(f"line {self._source.line(call)}: the old value is read")
        for arg in call.args:
            if arg is not pointer and self.of(arg.value, env) & ~rank:
                raise _NotPackableError(
                    f"line {self._source.line(call)}: rows share an address but not what they do there"
                )
        if rank & Rank.ROW:
            self._mask_rows(call, mask)
        if rank == Rank.TILE:
            self.tiles.append(pointer.value)
        return rank

    def _mask_rows(self, call: cst.Call, mask: cst.Arg | None) -> None:
        inside = self._names.inside
        if mask is None or self._source.code(mask.value) == "None":
            edit = add_argument(self._source, call, f"mask={inside}")
            self.edits.append(edit if mask is None else replace(self._source, mask.value, inside))
            return
        start, end = self._source.outer_span(mask.value)
        bare = isinstance(mask.value, cst.Name) or bool(mask.value.lpar)
        self.edits += [] if bare else [Edit(start, start, "(")]
        self.edits.append(Edit(end, end, f"{'' if bare else ')'} & {inside}"))

    def _reduction(self, call: cst.Call, name: str, env: _Env) -> Rank:
        """Along the columns of a tile, which leaves one value per row."""
        if not call.args or self.of(call.args[0].value, env) != Rank.TILE:
            raise _NotPackableError(f"line {self._source.line(call)} reduces what is no tile")
        axis = argument(call, "axis", 1)
        if axis is not None and int_value(axis.value) not in (0, -1) and self._source.code(axis.value) != "None":
            raise _NotPackableError(f"line {self._source.line(call)} reduces along another axis")
        given = [a.keyword.value if a.keyword is not None else "" for a in call.args[1:] if a is not axis]
        if not {*given} <= {"dtype", "tie_break_left"}:
            raise _NotPackableError(f"line {self._source.line(call)} reduces in a way of its own")
        if axis is not None:
            self.edits.append(replace(self._source, axis.value, "1"))
        text = "keep_dims=True" if axis is not None else "axis=1, keep_dims=True"
        self.edits.append(add_argument(self._source, call, text))
        return Rank.ROW

    def _helper(self, helper: JitFunction, call: cst.Call, env: _Env) -> Rank:
        """A jit function that is called: elementwise when none of its own text would have to change."""
        inner = _Ranks(self._source, helper, self._axis, self._names)
        given: _Env = {}
        for position, param in enumerate(helper.params):
            arg = argument(call, param.name, position)
            given[param.name] = self.of(arg.value, env) if arg is not None else Rank.UNIFORM
        body = helper.node.body.body
        line = body[-1] if body else None
        last = line.body[0] if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else None
        if not isinstance(last, cst.Return) or last.value is None:
            raise _NotPackableError(f"`{helper.name}` does not end in the only return of a value")
        inner.run(body[:-1], given)
        rank = inner.of(last.value, given)
        if inner.edits or inner.ids:
            raise _NotPackableError(f"`{helper.name}` is not elementwise")
        return rank


def _within(display: cst.Tuple | cst.List, text: str) -> str:
    """The elements of a shape as its own kind of display; parentheses of a tuple are not part of its span."""
    if isinstance(display, cst.List):
        return f"[{text}]"
    return text if display.lpar else f"({text})"


def _float_literal(node: cst.CSTNode) -> bool:
    """`0.0`, `float("inf")` and their negatives."""
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Minus):
        return _float_literal(node.expression)
    return isinstance(node, cst.Float) or (isinstance(node, cst.Call) and dotted_name(node.func) == "float")
