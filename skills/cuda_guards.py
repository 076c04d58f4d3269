"""Early returns of a kernel (`if (i >= n) return;`) turned into a block, so that all threads come to its end."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tree_sitter import Node

from sandbox.hip_source import Edit
from skills.cuda_tree import KernelTree, ancestors, statements

_OPPOSITES = {">=": "<", "<=": ">", ">": "<=", "<": ">=", "==": "!=", "!=": "=="}


class GuardError(Exception):
    """Threads leave the kernel from where that cannot be turned into a block; the message says where."""


def top_level_guards(tree: KernelTree) -> list[Node]:
    """The `if (...) return;` statements that the body itself holds, in order; raises `GuardError` for other returns."""
    for name, body in re.findall(r"^[ \t]*#[ \t]*define[ \t]+(\w+)((?:\\\n|[^\n])*)", tree.file.text, re.M):
        if re.search(r"\breturn\b", body) and re.search(rf"\b{name}\b", tree.code):
            raise GuardError(f"the macro {name} may return")
    guards = [s for s in statements(tree.body) if _is_guard(s)]
    inside = {g.id for g in guards}
    for found in tree.of_type("return_statement"):
        around = {n.id for n in ancestors(found, tree.body)}
        if not around & inside and not _is_last(tree, found):
            raise GuardError(f"line {found.start_point[0] + 1}: threads return from within")
    return guards


def _is_guard(statement: Node) -> bool:
    if statement.type != "if_statement" or statement.child_by_field_name("alternative") is not None:
        return False
    then = statement.child_by_field_name("consequence")
    if then is not None and then.type == "compound_statement":
        inner = statements(then)
        then = inner[0] if len(inner) == 1 else None
    return then is not None and then.type == "return_statement"


def _is_last(tree: KernelTree, node: Node) -> bool:
    own = statements(tree.body)
    return bool(own) and own[-1].id == node.id


def without_last_return(tree: KernelTree) -> list[Edit]:
    """The `return;` that a body ends with taken out: what is added behind it has to be reached."""
    last = next(iter(reversed(statements(tree.body))), None)
    if last is None or last.type != "return_statement":
        return []
    start, end = tree.file.start(last), tree.file.end(last)
    line = tree.file.text.rfind("\n", 0, start) + 1
    alone = not tree.file.text[line:start].strip() and tree.file.text[end : end + 1] == "\n"
    return [Edit(line, end + 1, "") if alone else Edit(start, end, "")]


def nest_guards(tree: KernelTree, guards: Sequence[Node], indent: str) -> tuple[list[Edit], str]:
    """Each guard as the opposite condition around what follows it, indented; the lines that close them come beside.

    `indent` is that of the body's statements.
    """
    if not guards:
        return [], ""
    file, text = tree.file, tree.file.text
    edits = [file.replace(g, f"if ({_opposite(tree, g)}) {{") for g in guards]
    body_end = file.end(tree.body) - 1
    step = "\t" if indent.startswith("\t") else "  " if len(indent) <= 2 else " " * len(indent)
    starts = [file.end(g) for g in guards]
    replaced = [(file.start(g), file.end(g)) for g in guards]
    at = text.find("\n", starts[0]) + 1
    while 0 < at < body_end:
        end = text.find("\n", at)
        line = text[at : end if end >= 0 else len(text)]
        depth = sum(s <= at for s in starts)
        inside = any(start < at < stop for start, stop in replaced)
        if (
            not inside
            and line.strip()
            and at + len(line) - len(line.lstrip()) < body_end
            and not line.lstrip().startswith("#")
        ):
            edits.append(Edit(at, at, step * depth))
        at = end + 1 if end >= 0 else 0
    closing = "".join(f"{indent}{step * d}}}\n" for d in range(len(guards) - 1, -1, -1))
    return edits, closing


def _opposite(tree: KernelTree, guard: Node) -> str:
    """The condition under which a thread stays."""
    clause = guard.child_by_field_name("condition")
    assert clause is not None
    condition = next(n for n in clause.named_children if n.type != "comment")
    text = tree.file.slice(condition)
    if condition.type == "binary_expression":
        left, right = condition.child_by_field_name("left"), condition.child_by_field_name("right")
        operator = condition.child_by_field_name("operator")
        turned = _OPPOSITES.get(tree.file.slice(operator)) if operator is not None else None
        if turned and left is not None and right is not None:
            sides = (left, right)
            if all(tree.type_of_integers(s) for s in sides):
                return f"{tree.file.slice(left)} {turned} {tree.file.slice(right)}"
    inner = condition.child_by_field_name("argument") if condition.type == "unary_expression" else None
    if inner is not None and inner.type == "parenthesized_expression" and text.startswith("!"):
        return tree.file.slice(inner)[1:-1]
    return f"!({text})"
