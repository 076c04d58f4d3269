"""Small readings of Triton programs that several skills share."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from skills.literals import int_value
from skills.triton_source import TL, JitFunction, Launch, TritonSource, argument, dict_items, dotted_name, walk

ATOMICS = tuple(f"atomic_{k}" for k in ("add", "max", "min", "and", "or", "xor", "xchg", "cas"))
_VENDOR = re.compile(r"hip|cuda|rocm|\bamd|nvidia|capability|hopper|blackwell|\bsm_?\d+|backend", re.IGNORECASE)


def vendor_guarded(source: TritonSource, node: cst.CSTNode) -> bool:
    """Whether the code stands under a test of the vendor or architecture, so that its author already chose per
    target."""
    for ancestor in source.ancestors(node):
        if isinstance(ancestor, cst.If | cst.IfExp) and _VENDOR.search(source.code(ancestor.test)):
            return True
        if isinstance(ancestor, cst.FunctionDef) and re.search(r"cuda|nvidia|hopper", ancestor.name.value):
            return True
    return False


def spread_dicts(source: TritonSource, call: cst.Call) -> Iterator[cst.BaseExpression]:
    """Dict displays that reach a call as `**name` or `**{...}`: the literal itself, or what the name was assigned."""
    for arg in call.args:
        if arg.star != "**":
            continue
        if isinstance(arg.value, cst.Dict | cst.Call):
            yield arg.value
        name = dotted_name(arg.value)
        if name is None:
            continue
        for node in source.nodes:
            named = isinstance(node, cst.Assign) and any(dotted_name(t.target) == name for t in node.targets)
            if named and isinstance(node, cst.Assign) and tuple(dict_items(node.value)):
                yield node.value


def tl_call(source: TritonSource, node: cst.CSTNode, *names: str) -> cst.Call | None:
    """The node as a call of one of these `triton.language` functions (also `tl.math.*`), else None."""
    if not isinstance(node, cst.Call):
        return None
    name = source.qualified(node.func)
    if name is None or not name.startswith(f"{TL}."):
        return None
    return node if name.removeprefix(f"{TL}.").removeprefix("math.") in names else None


def program_axis(call: cst.Call) -> int | None:
    """The grid axis that a `tl.program_id` or `tl.num_programs` asks for; None where it is no literal."""
    axis = argument(call, "axis", 0)
    return int_value(axis.value) if axis is not None else None


def method_call(node: cst.CSTNode, name: str) -> cst.Call | None:
    """The node as a call of the method `name`, for example `x.to(...)`, else None."""
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value == name:
        return node
    return None


def variables(node: cst.CSTNode) -> list[cst.Name]:
    """Every place below the node where a variable is named, in source order: no attributes, no keywords of calls."""
    found: list[cst.Name] = []
    stack: list[cst.CSTNode] = [node]
    while stack:
        current = stack.pop()
        if isinstance(current, cst.Name):
            found.append(current)
        elif isinstance(current, cst.Attribute | cst.Arg):
            stack.append(current.value)
        else:
            stack.extend(reversed(current.children))
    return found


def names_in(node: cst.CSTNode) -> set[str]:
    """Every variable named below the node: no attributes, no keywords of calls."""
    return {name.value for name in variables(node)}


def needs_parentheses(node: cst.CSTNode) -> bool:
    """Whether an expression must be parenthesised to become an operand of `*` or take a method call."""
    return isinstance(
        node,
        cst.BinaryOperation
        | cst.UnaryOperation
        | cst.BooleanOperation
        | cst.Comparison
        | cst.IfExp
        | cst.Lambda
        | cst.Tuple
        | cst.NamedExpr,
    )


def operand(source: TritonSource, node: cst.CSTNode) -> str:
    """The node's text, in parentheses where it needs them."""
    text = source.code(node)
    return f"({text})" if needs_parentheses(node) else text


def assigned(node: cst.CSTNode) -> tuple[list[cst.BaseExpression], cst.BaseExpression | None]:
    """The targets of an assignment, plain, annotated or augmented, and its value; no targets for any other node."""
    if isinstance(node, cst.Assign):
        return [t.target for t in node.targets], node.value
    if isinstance(node, cst.AnnAssign | cst.AugAssign):
        return [node.target], node.value
    return [], None


def assignments(source: TritonSource, within: cst.CSTNode, name: str) -> Iterator[cst.BaseExpression]:
    """Every value assigned to a plain name below a node, augmented assignments included."""
    for node in walk(within):
        targets, value = assigned(node)
        if value is not None and any(dotted_name(t) == name for t in targets):
            yield value


def is_docstring(statement: cst.CSTNode) -> bool:
    """Whether a statement is nothing but a string."""
    small = statement.body[0] if isinstance(statement, cst.SimpleStatementLine) else None
    return isinstance(small, cst.Expr) and isinstance(small.value, cst.SimpleString | cst.ConcatenatedString)


def result_unread(source: TritonSource, function: JitFunction, call: cst.Call) -> bool:
    """Whether nobody reads what a call returns: a statement of its own, or a name that occurs nowhere else."""
    parent = source.parent(call)
    if isinstance(parent, cst.Expr):
        return True
    targets = parent.targets if isinstance(parent, cst.Assign) else ()
    name = targets[0].target if len(targets) == 1 else None
    if not isinstance(name, cst.Name):
        return False
    return sum(isinstance(n, cst.Name) and n.value == name.value for n in walk(function.node)) == 1


def order_arguments(source: TritonSource, call: cst.Call) -> Iterator[str]:
    """The ordering and scope of an atomic as keywords, as far as they are given."""
    for name, position in (("sem", 3), ("scope", 4)):
        given = argument(call, name, position)
        if given is not None:
            yield f"{name}={source.code(given.value)}"


def active_lanes(source: TritonSource, call: cst.Call, position: int) -> cst.BaseExpression | None:
    """The mask of an access, at its position among the arguments; None where every lane is active."""
    mask = argument(call, "mask", position)
    return None if mask is None or source.code(mask.value) == "None" else mask.value


def taken_names(node: cst.CSTNode) -> set[str]:
    """Every word below the node that a new variable should not be called."""
    return {n.value for n in walk(node) if isinstance(n, cst.Name)}


def base_param(source: TritonSource, function: JitFunction, pointer: cst.BaseExpression) -> str | None:
    """The kernel parameter a pointer expression starts from, followed through sums and local names; None when
    unclear."""
    params = {p.name for p in function.params}
    seen: set[str] = set()

    def follow(node: cst.CSTNode) -> str | None:
        if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Add | cst.Subtract):
            return follow(node.left) or follow(node.right)
        if isinstance(node, cst.Subscript):
            return follow(node.value)
        if isinstance(node, cst.Name) and node.value not in seen:
            seen.add(node.value)
            for value in assignments(source, function.node.body, node.value):
                if (found := follow(value)) is not None:
                    return found
            return node.value if node.value in params else None
        return None

    return follow(pointer)


def bound_argument(function: JitFunction, launch: Launch, name: str) -> cst.BaseExpression | None:
    """What a launch passes for a kernel parameter, by keyword or position; None when it is not written there."""
    given = launch.keyword(name)
    if given is not None:
        return given.value
    for position, param in enumerate(function.params):
        if param.name == name and position < len(launch.call.args):
            before = launch.call.args[: position + 1]
            if all(a.keyword is None and not a.star for a in before):
                return before[-1].value
    return None


def factors(node: cst.BaseExpression) -> list[tuple[cst.BaseExpression, bool]]:
    """The factors of a product in order, each with whether it divides; a node that is no product is its own factor."""
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Multiply | cst.Divide):
        divides = isinstance(node.operator, cst.Divide)
        right = [(f, d != divides) for f, d in factors(node.right)] if divides else factors(node.right)
        return [*factors(node.left), *right]
    return [(node, False)]
