"""Branches that choose pointers become one if after the other, or choose addresses as integers; so do expressions."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import libcst as cst

from sandbox.kernel import Kernel
from sandbox.target import Target
from skills.edit import Edit, apply_edits, indentation, insert_after_block, insert_before, replace, tl_name
from skills.facts import Facts
from skills.idioms import assignments, names_in, tl_call
from skills.skill import Refusal, Site
from skills.triton_source import JitFunction, TritonSource, dotted_name, parse_triton, walk

_ONE_BY_ONE = "one if after the other"
_INTEGERS = "addresses as integers"
_PURE = (
    cst.Name, cst.Integer, cst.Comparison, cst.ComparisonTarget, cst.BooleanOperation, cst.UnaryOperation,
    cst.BinaryOperation, cst.BaseCompOp, cst.BaseBooleanOp, cst.BaseUnaryOp, cst.BaseBinaryOp,
    cst.BaseParenthesizableWhitespace, cst.LeftParen, cst.RightParen,
)  # fmt: skip
"""What a condition may be made of that is asked whether or not one before it holds."""


@dataclass(frozen=True, slots=True, eq=False)
class _Chain:
    """`if`, every `elif` and the `else`, which may be missing: then there is one body less. `branches`: what each body
    itself assigns, by name."""

    node: cst.If
    tests: tuple[cst.BaseExpression, ...]
    bodies: tuple[cst.IndentedBlock, ...]
    branches: tuple[Mapping[str, cst.BaseExpression], ...]

    @property
    def ends(self) -> bool:
        """Whether there is an `else`."""
        return len(self.bodies) > len(self.tests)


def find(kernel: Kernel, facts: Facts, target: Target) -> Iterable[Site | Refusal]:
    """One site per form, for all choices of pointers in the kernel."""
    source = parse_triton(kernel)
    function = source.functions.get(str(facts["kernel.name"]))
    if function is None:
        return
    pointers = {name: next(iter(found)) for name, found in facts.pairs("launch.pointer_dtypes").items()}
    chains = [chain for chain in _chains(function) if _chosen(source, function, chain, pointers)]
    choices = [chain.node for chain in chains] + [node for node, _ in _expressions(source, function, pointers)]
    if not choices:
        return
    line, known = min(map(source.line, choices)), " ".join(f"{n}={dtype}" for n, dtype in sorted(pointers.items()))
    if any(_is_plain(chain) for chain in chains):
        yield Site(line, _ONE_BY_ONE, function.name, {"form": _ONE_BY_ONE, "pointers": known})
    yield Site(line, _INTEGERS, function.name, {"form": _INTEGERS, "pointers": known})


def transform(kernel: Kernel, site: Site, target: Target) -> Kernel | None:
    """Every choice of pointers of the kernel that can take the form."""
    source = parse_triton(kernel)
    function = source.functions.get(site.kernel or "")
    if function is None:
        return None
    pointers = dict(pair.split("=", 1) for pair in str(site.variant["pointers"]).split())
    edits: list[Edit] = []
    for chain in _chains(function):
        chosen = _chosen(source, function, chain, pointers)
        if chosen and site.variant["form"] == _INTEGERS:
            edits += _as_integers(source, chain, chosen)
        elif chosen and _is_plain(chain):
            edits.append(_one_by_one(source, chain))
    if site.variant["form"] == _INTEGERS:
        for node, base in _expressions(source, function, pointers):
            edits += _as_integer(source, node, base)
    return apply_edits(kernel, source, edits)


def _chains(function: JitFunction) -> Iterator[_Chain]:
    ifs = [node for node in walk(function.node.body) if isinstance(node, cst.If)]
    inner = {node.orelse for node in ifs if isinstance(node.orelse, cst.If)}
    for node in ifs:
        if node in inner:
            continue
        tests, bodies = [node.test], [node.body]
        last: cst.If = node
        while isinstance(last.orelse, cst.If):
            last = last.orelse
            tests.append(last.test)
            bodies.append(last.body)
        if isinstance(last.orelse, cst.Else):
            bodies.append(last.orelse.body)
        blocks = tuple(body for body in bodies if isinstance(body, cst.IndentedBlock))
        branches = tuple(branch for block in blocks if (branch := _assigned_in(block)) is not None)
        if len(branches) == len(bodies):
            yield _Chain(node, tuple(tests), blocks, branches)


def _assigned_in(body: cst.IndentedBlock) -> dict[str, cst.BaseExpression] | None:
    """Names and values of the plain assignments directly in a branch; None where a name is assigned twice."""
    found: dict[str, cst.BaseExpression] = {}
    for statement in body.body:
        for small in statement.body if isinstance(statement, cst.SimpleStatementLine) else ():
            name = dotted_name(small.targets[0].target) if isinstance(small, cst.Assign) else None
            if isinstance(small, cst.Assign) and name is not None and len(small.targets) == 1:
                if name in found:
                    return None
                found[name] = small.value
    return found


def _chosen(source: TritonSource, function: JitFunction, chain: _Chain, pointers: dict[str, str]) -> dict[str, str]:
    """Names that get pointers to one type in all branches, and are not read in them; each with a parameter of the same
    type."""
    found: dict[str, str] = {}
    for name in dict.fromkeys(n for branch in chain.branches for n in branch):
        values = [branch[name] for branch in chain.branches if name in branch]
        before = [] if _always(chain, name) else list(assignments(source, function.node.body, name))
        bases = [_base(source, function, value, pointers) for value in (*values, *before)]
        read = sum(isinstance(n, cst.Name) and n.value == name for n in walk(chain.node)) > len(values)
        known = [base for base in bases if base is not None]
        if (
            len(known) == len(bases)
            and len({pointers[base] for base in known}) == 1
            and len(set(known)) > 1
            and not read
        ):
            found[name] = known[0]
    return found


def _always(chain: _Chain, name: str) -> bool:
    """Whether the name is assigned whichever branch is taken."""
    return chain.ends and all(name in branch for branch in chain.branches)


def _base(source: TritonSource, function: JitFunction, value: cst.CSTNode, pointers: dict[str, str]) -> str | None:
    """The pointer parameter that an address starts from; None where it is unclear or several."""
    seen: set[str] = set()

    def follow(node: cst.CSTNode) -> str | None:
        if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Add | cst.Subtract):
            return follow(node.left) or follow(node.right)
        if not isinstance(node, cst.Name) or node.value in seen:
            return None
        if node.value in pointers:
            return node.value
        seen.add(node.value)
        found = {follow(v) for v in assignments(source, function.node.body, node.value)}
        return found.pop() if len(found) == 1 else None

    return follow(value)


def _expressions(
    source: TritonSource, function: JitFunction, pointers: dict[str, str]
) -> Iterator[tuple[cst.BaseExpression, str]]:
    """Every `a if condition else b` and `tl.where(condition, a, b)`, the outermost of nested ones, that chooses between
    pointers of one type and different bases; each with one of the bases."""
    inner: set[cst.CSTNode] = set()
    for node in walk(function.node.body):
        if not isinstance(node, cst.BaseExpression) or not _arms(source, node) or node in inner:
            continue
        inner.update(n for leaf in _arms(source, node) for n in walk(leaf) if _arms(source, n))
        bases = [_base(source, function, leaf, pointers) for leaf in _leaves(source, node)]
        known = [base for base in bases if base is not None]
        if len(known) == len(bases) and len({pointers[base] for base in known}) == 1 < len(set(known)):
            yield node, known[0]


def _arms(source: TritonSource, node: cst.CSTNode) -> tuple[cst.BaseExpression, ...]:
    """What an expression chooses between; nothing for any other node."""
    if isinstance(node, cst.IfExp):
        return node.body, node.orelse
    call = tl_call(source, node, "where")
    return (call.args[1].value, call.args[2].value) if call is not None and len(call.args) == 3 else ()


def _leaves(source: TritonSource, node: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    arms = _arms(source, node)
    if not arms:
        yield node
    for arm in arms:
        yield from _leaves(source, arm)


def _as_integer(source: TritonSource, node: cst.BaseExpression, base: str) -> Iterator[Edit]:
    """The choice between addresses as integers, and a pointer again of what was chosen."""
    for leaf in _leaves(source, node):
        yield replace(source, leaf, _integer(source, leaf))
    start, end = source.span(node)
    bare = isinstance(node, cst.IfExp)
    yield Edit(start, start, "(" if bare else "")
    yield Edit(end, end, f"{')' if bare else ''}.to({base}.dtype, bitcast=True)")


def _integer(source: TritonSource, address: cst.BaseExpression) -> str:
    text = source.code(address)
    return f"{text if isinstance(address, cst.Name) else f'({text})'}.to({tl_name(source)}.uint64, bitcast=True)"


def _is_plain(chain: _Chain) -> bool:
    """Branches of nothing but assignments of the same names, none of which is read in the chain; an `elif`, an `else`,
    and conditions that may be asked in any order."""
    names = set(chain.branches[0])
    alone = all(
        len(branch) == len(body.body) and set(branch) == names
        for branch, body in zip(chain.branches, chain.bodies, strict=True)
    )
    values = [value for branch in chain.branches for value in branch.values()]
    pure = all(isinstance(n, _PURE) for test in chain.tests for n in walk(test))
    reads = set[str]().union(*(names_in(node) for node in (*chain.tests, *values)))
    return len(chain.tests) > 1 and chain.ends and alone and pure and not reads & names


def _one_by_one(source: TritonSource, chain: _Chain) -> Edit:
    """What the `else` does first; then one `if` for each condition, the first one last."""
    outer = indentation(source, chain.node)
    step = indentation(source, chain.bodies[0].body[0]).removeprefix(outer)
    parts = [_lines_of(source, chain.bodies[-1])]
    for test, body in reversed(list(zip(chain.tests, chain.bodies, strict=False))):
        behind = source.outer_span(test)[1]
        header = source.data[behind : source.data.index(b"\n", behind)].decode().rstrip()
        parts.append(f"if {source.code(test)}{header}\n{textwrap.indent(_lines_of(source, body), step)}")
    text = textwrap.indent("\n".join(parts), outer).removeprefix(outer)
    start, end = source.span(chain.node)
    return Edit(start, start + len(source.data[start:end].rstrip()), text)


def _lines_of(source: TritonSource, body: cst.IndentedBlock) -> str:
    """The lines of a branch as they are written, with their comments, without their indentation."""
    first, last = source.span(body.body[0])[0], source.span(body.body[-1])[1]
    lines = body.body[0].leading_lines if isinstance(body.body[0], cst.SimpleStatementLine) else ()
    comments = [line.comment.value for line in lines if line.comment is not None]
    end = source.data.find(b"\n", last)
    text = source.data[first : end if end >= 0 else len(source.data)].decode().rstrip()
    return "\n".join([*comments, textwrap.dedent(indentation(source, body.body[0]) + text)])


def _as_integers(source: TritonSource, chain: _Chain, chosen: dict[str, str]) -> Iterator[Edit]:
    """The address as an integer within the branches, and a pointer again behind them."""
    for branch in chain.branches:
        values = [value for name, value in branch.items() if name in chosen]
        yield from (replace(source, value, _integer(source, value)) for value in values)
    before = [name for name in chosen if not _always(chain, name)]
    if before:
        yield insert_before(
            source, chain.node, [f"{n} = {n}.to({tl_name(source)}.uint64, bitcast=True)" for n in before]
        )
    yield insert_after_block(
        source, chain.node, [f"{n} = {n}.to({base}.dtype, bitcast=True)" for n, base in chosen.items()]
    )
