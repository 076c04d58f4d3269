"""The one computation that host code may add: an order of integer arguments, for kernels that add in any order.

Putting work in another order is no computation of the result. Its cost is inside the timed call, no number that a
kernel computes with is touched, and the kernel's results are compared as ever. What may be added is

    order = idx.argsort(dim=1, stable=True)
    idx, bag = idx.gather(1, order), bag.gather(1, order)
    kernel[grid](idx, bag, order, ...)

of names that the baseline's same function gives to its kernels, under no condition that is new: each result goes to
another such call or is itself an argument of a launch, of a kernel that writes through atomics alone. No more launches
may be given them than the baseline has of that kernel, so that none can tell the next whether it is handed the order
that was found. Anything else of this kind stays a library call. Types, origins and what happens in a random order are
seen when the call runs (`sandbox.child_orderings`).
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from sandbox.cheats.source import FunctionNode, Source

_FORM = frozenset(("shape", "dtype", "device", "ndim", "stride", "numel", "size", "dim", "is_contiguous", "itemsize"))
"""What may be asked of ordered integers besides."""
_COMMUTING = frozenset(("atomic_add", "atomic_max", "atomic_min", "atomic_and", "atomic_or", "atomic_xor"))
_WRITING = ("store", "store_tensor_descriptor", "inline_asm_elementwise", "extern_elementwise")


@dataclass(frozen=True, slots=True)
class _Ordering:
    """One assigned call: what it makes, of which name, by which order (None where it finds one)."""

    call: ast.expr
    targets: tuple[str, ...]
    operand: ast.Name
    order: ast.Name | None


def permitted(before: Source, after: Source) -> frozenset[int]:
    """`id` of every node of the candidate that is a part of a permitted ordering and of nothing else."""
    found: set[int] = set()
    for name, function in after.functions.items():
        known = before.functions.get(name)
        if known is not None:
            orderings = _checked(before, after, known, function)
            found |= {id(n) for o in orderings for n in (o.call, *_callee(o.call))}
    return frozenset(found)


def _callee(call: ast.expr) -> Iterator[ast.AST]:
    if isinstance(call, ast.Call):
        yield call.func


def _checked(before: Source, after: Source, known: FunctionNode, function: FunctionNode) -> list[_Ordering]:
    """The orderings of a function; none of them where one is used for anything else."""
    orderings = list(
        _orderings(after, function.body, {ast.dump(n.test) for n in ast.walk(known) if isinstance(n, ast.If)})
    )
    made = {t for o in orderings for t in o.targets}
    orders = {o.targets[-1] for o in orderings if o.order is None}
    given = _given(before, known) - _made_here(before, known)
    launches = list(_into_atomics(after, function))
    uses = {id(n) for o in orderings for n in (o.operand, o.order) if n is not None}
    uses |= {id(v) for launch in launches for v in (*launch.args, *(k.value for k in launch.keywords))}
    if any(o.operand.id not in (given if o.order is None else given | made) for o in orderings):
        return []
    if any(o.order is not None and o.order.id not in orders for o in orderings):
        return []
    fed = Counter(_kernel_of(c) for c in launches if _names_given(c) & made)
    if fed - Counter(map(_kernel_of, before.launches(known))):
        return []
    if not _only_used(function, made, uses) or not _otherwise_as_before(known, function, made | given, orderings):
        return []
    return orderings


def _given(source: Source, function: FunctionNode) -> set[str]:
    """Names that the function's launches are given as they are."""
    return {name for call in source.launches(function) for name in _names_given(call)}


def _names_given(launch: ast.Call) -> set[str]:
    values = (*launch.args, *(k.value for k in launch.keywords))
    return {v.id for v in values if isinstance(v, ast.Name)}


def _kernel_of(launch: ast.Call) -> str:
    callee = launch.func.value if isinstance(launch.func, ast.Subscript) else None
    return callee.id if isinstance(callee, ast.Name) else ""


def _made_here(source: Source, function: FunctionNode) -> set[str]:
    """Names that hold memory the function allocates: outputs and scratch."""
    found: set[str] = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Assign):
            called = {(source.resolve(n.func) or "").split(".")[-1] for n in ast.walk(node) if isinstance(n, ast.Call)}
            if any(c.removeprefix("new_").startswith(("empty", "zeros", "ones", "full")) for c in called):
                found |= {n.id for t in node.targets for n in ast.walk(t) if isinstance(n, ast.Name)}
    return found


def _orderings(source: Source, body: list[ast.stmt], tests: set[str]) -> Iterator[_Ordering]:
    """Those that run in each call, or under the baseline's own conditions."""
    for node in body:
        if isinstance(node, ast.With | ast.For) or (isinstance(node, ast.If) and ast.dump(node.test) in tests):
            yield from _orderings(source, [*node.body, *getattr(node, "orelse", ())], tests)
        elif isinstance(node, ast.Assign) and len(node.targets) == 1:
            for target, value in _pairs(node.targets[0], node.value):
                found = _ordering(source, target, value)
                if found is not None:
                    yield found


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    """`a, b = x, y` as its single assignments."""
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        yield from zip(target.elts, value.elts, strict=True)
    else:
        yield target, value


def _ordering(source: Source, target: ast.expr, value: ast.expr) -> _Ordering | None:
    names = [n.id for n in (target.elts if isinstance(target, ast.Tuple) else [target]) if isinstance(n, ast.Name)]
    if isinstance(value, ast.Subscript) and isinstance(value.value, ast.Name) and isinstance(value.slice, ast.Name):
        return _Ordering(value, tuple(names), value.value, value.slice) if len(names) == 1 else None
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute):
        return None
    method = value.func.attr
    given = [*value.args]
    if source.resolve(value.func) != f"torch.{method}":
        given.insert(0, value.func.value)
    named = {k.arg: k.value for k in value.keywords}
    operand = given.pop(0) if given else named.pop("input", None)
    made = {"argsort": 1, "sort": 2, "gather": 1, "index_select": 1}.get(method)
    if not isinstance(operand, ast.Name) or operand.id in source.aliases or len(names) != made:
        return None
    axis = given.pop(0) if given else named.pop("dim", ast.Constant(-1))
    if not _is_literal(axis):
        return None
    if method in ("gather", "index_select"):
        order = given.pop(0) if given else named.pop("index", None)
        plain = isinstance(order, ast.Name) and not given and not named
        return _Ordering(value, tuple(names), operand, order) if plain and isinstance(order, ast.Name) else None
    plain = not given and named.keys() <= {"stable"} and all(map(_is_literal, named.values()))
    return _Ordering(value, tuple(names), operand, None) if plain else None


def _is_literal(node: ast.expr) -> bool:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        node = node.operand
    return isinstance(node, ast.Constant) and isinstance(node.value, int)


def _into_atomics(source: Source, function: FunctionNode) -> Iterator[ast.Call]:
    """Launches of kernels of this file that write through atomics which commute, and in no other way."""
    for call in source.launches(function):
        kernel = _kernel_of(call)
        if kernel not in source.kernels:
            continue
        reached = [source.kernels[k] for k in source.closure({kernel}) & source.kernels.keys()]
        called = {n.func.attr for k in reached for n in ast.walk(k)
                  if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)}  # fmt: skip
        atomics = {c for c in called if c.startswith("atomic_")}
        if atomics and atomics <= _COMMUTING and not called & set(_WRITING):
            yield call


def _only_used(function: FunctionNode, made: set[str], uses: set[int]) -> bool:
    """Whether what an ordering makes is read by other orderings and given to launches, and asked for its form."""
    allowed = set(uses)
    for node in ast.walk(function):
        if isinstance(node, ast.Attribute) and node.attr in _FORM:
            allowed.add(id(node.value))
    read = (n for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load))
    return all(n.id not in made or id(n) in allowed for n in read)


def _otherwise_as_before(
    known: FunctionNode, function: FunctionNode, names: set[str], orderings: list[_Ordering]
) -> bool:
    """Whether these names get their values as in the baseline, but for the orderings."""
    own = {id(o.call) for o in orderings}
    old = [ast.dump(n) for n in ast.walk(known) if isinstance(n, ast.stmt) and _writes(n) & names]
    for node in ast.walk(function):
        if not isinstance(node, ast.stmt) or not _writes(node) & names or ast.dump(node) in old:
            continue
        values = [v for t, v in _pairs(node.targets[0], node.value)] if isinstance(node, ast.Assign) else []
        if not values or not all(id(v) in own for v in values):
            return False
    return True


def _writes(node: ast.stmt) -> set[str]:
    """Names that a simple statement, or the head of a loop or block, gives a value."""
    parts: list[ast.AST] = [node]
    if isinstance(node, ast.For | ast.AsyncFor):
        parts = [node.target]
    elif isinstance(node, ast.With | ast.AsyncWith):
        parts = [i.optional_vars for i in node.items if i.optional_vars is not None]
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.If | ast.While | ast.Try):
        return {node.name} if hasattr(node, "name") else set()
    names = (n for p in parts for n in ast.walk(p) if isinstance(n, ast.Name))
    return {n.id for n in names if not isinstance(n.ctx, ast.Load)}
