"""`for (d = threadIdx.x; d < n; d += blockDim.x) y[b + d] = f(x[a + d]);` with float4, beside the loop as it was."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from tree_sitter import Node

from sandbox.hip_source import Edit
from sandbox.kernel import Kernel
from sandbox.target import Target
from skills.cuda_edit import rewritten
from skills.cuda_tree import INTEGERS, CudaFile, KernelTree, root_name, statements, walk
from skills.facts import Facts
from skills.skill import Refusal, Site

LANES = 4
_STRIDES = {
    "threadIdx.x": ("blockDim.x",),
    "blockIdx.x*blockDim.x+threadIdx.x": ("blockDim.x*gridDim.x", "gridDim.x*blockDim.x"),
    "threadIdx.x+blockIdx.x*blockDim.x": ("blockDim.x*gridDim.x", "gridDim.x*blockDim.x"),
    "threadIdx.x+blockDim.x*blockIdx.x": ("blockDim.x*gridDim.x", "gridDim.x*blockDim.x"),
    "blockDim.x*blockIdx.x+threadIdx.x": ("blockDim.x*gridDim.x", "gridDim.x*blockDim.x"),
}
"""Where a thread starts, and the strides with which all of them together take each element once."""


@dataclass(frozen=True)
class WideLoop:
    """A loop that can be made wide. `accesses` are its subscripts `array[rest + name]`, with the rest as text."""

    loop: Node
    name: str
    start: Node
    bound: Node
    step: Node
    body: Node
    accesses: tuple[tuple[Node, str], ...]


def find(kernel: Kernel, facts: Facts, target: Target) -> Iterable[Site | Refusal]:
    """One site per kernel, for all its loops over neighbouring floats."""
    tree = CudaFile(kernel.source).kernel(str(facts["kernel.name"] or ""))
    loops = _loops(tree) if tree is not None else []
    if tree is not None and loops:
        yield Site(loops[0].loop.start_point[0] + 1, f"{len(loops)} loops" if len(loops) > 1 else "1 loop", tree.name)


def transform(kernel: Kernel, site: Site, target: Target) -> Kernel | None:
    """Each loop gets a wide one in front, taken where length and addresses allow it."""
    tree = CudaFile(kernel.source).kernel(site.kernel or "")
    return rewritten(kernel, [e for w in _loops(tree) for e in _edits(tree, w)]) if tree is not None else None


def _loops(tree: KernelTree) -> list[WideLoop]:
    loops = [n for n in tree.of_type("for_statement") if n.parent is not None and n.parent.type == "compound_statement"]
    return [w for n in loops if (w := _wide(tree, n)) is not None]


def _wide(tree: KernelTree, loop: Node) -> WideLoop | None:
    """The loop as one that can be made wide; None where that is not assured."""
    file = tree.file
    before = loop.prev_sibling
    around = loop.parent.parent if loop.parent is not None else None
    if (before is not None and before.type == "preproc_call") or (around is not None and around.type == "else_clause"):
        return None
    head, condition, update, body = (
        loop.child_by_field_name(f) for f in ("initializer", "condition", "update", "body")
    )
    if head is None or condition is None or update is None or body is None or head.type != "declaration":
        return None
    declared = head.child_by_field_name("declarator")
    type_ = head.child_by_field_name("type")
    if declared is None or type_ is None or declared.type != "init_declarator" or file.slice(type_) not in INTEGERS:
        return None
    name = file.slice(declared.child_by_field_name("declarator") or declared)
    start, bound, step = declared.child_by_field_name("value"), _bound(tree, condition, name), _step(tree, update, name)
    if (
        start is None
        or bound is None
        or step is None
        or _plain(tree, step) not in _STRIDES.get(_plain(tree, start), ())
    ):
        return None
    inner = statements(body) if body.type == "compound_statement" else [body]
    if len(inner) != 1 or inner[0].type != "expression_statement" or not _invariant(tree, bound, loop, name):
        return None
    assignment = inner[0].named_children[0]
    accesses = _accesses(tree, assignment, loop, name)
    return WideLoop(loop, name, start, bound, step, inner[0], accesses) if accesses else None


def _plain(tree: KernelTree, node: Node) -> str:
    """An expression without blanks and parentheses, with constants of the kernel in place of their names."""
    text = tree.file.slice(node)
    for n in tree.identifiers(node):
        variable = tree.variables.get(tree.file.slice(n))
        if variable is not None and variable.value is not None and variable.name not in tree.assigned:
            text = re.sub(rf"\b{variable.name}\b", tree.file.slice(variable.value), text)
    return re.sub(r"[\s()]", "", text)


def _bound(tree: KernelTree, condition: Node, name: str) -> Node | None:
    left, right = condition.child_by_field_name("left"), condition.child_by_field_name("right")
    operator = condition.child_by_field_name("operator")
    if condition.type != "binary_expression" or left is None or operator is None or tree.file.slice(operator) != "<":
        return None
    return right if tree.file.slice(left) == name and right is not None and tree.type_of_integers(right) else None


def _step(tree: KernelTree, update: Node, name: str) -> Node | None:
    left, operator = update.child_by_field_name("left"), update.child_by_field_name("operator")
    if update.type != "assignment_expression" or left is None or operator is None:
        return None
    fits = tree.file.slice(left) == name and tree.file.slice(operator) == "+="
    return update.child_by_field_name("right") if fits else None


def _invariant(tree: KernelTree, node: Node, loop: Node, name: str) -> bool:
    """Whether an expression has one value during a loop: no call, nothing of memory, and no name that it changes."""
    moving = (
        "call_expression",
        "assignment_expression",
        "update_expression",
        "subscript_expression",
        "pointer_expression",
    )
    if any(n.type in moving for n in walk(node)):
        return False
    changed = {name} | {
        root_name(tree.file, left)
        for n in walk(loop)
        if n.type in ("assignment_expression", "update_expression")
        and (left := n.child_by_field_name("left") or n.child_by_field_name("argument")) is not None
    }
    return not changed & {tree.file.slice(n) for n in tree.identifiers(node)}


def _accesses(tree: KernelTree, assignment: Node, loop: Node, name: str) -> tuple[tuple[Node, str], ...]:
    """Every subscript of an element-wise assignment of floats; empty when it is not one."""
    left, right = assignment.child_by_field_name("left"), assignment.child_by_field_name("right")
    operator = assignment.child_by_field_name("operator")
    if assignment.type != "assignment_expression" or left is None or right is None or operator is None:
        return ()
    if tree.file.slice(operator) not in ("=", "+=", "-=", "*=") or left.type != "subscript_expression":
        return ()
    found: list[tuple[Node, str]] = []
    if not _elementwise(tree, left, loop, name, found) or not _elementwise(tree, right, loop, name, found):
        return ()
    return tuple(found) if len(found) > 1 and _apart(tree, found) else ()


def _apart(tree: KernelTree, accesses: list[tuple[Node, str]]) -> bool:
    """Whether what is written is nowhere read as another element: then four at once are as good as one by one."""
    written, address = tree.variables[root_name(tree.file, accesses[0][0])], accesses[0][1]
    for node, other in accesses[1:]:
        read = tree.variables[root_name(tree.file, node)]
        same = read.name == written.name
        if (same and other != address) or (not same and not (read.restricted or written.restricted)):
            return False
    return True


def _elementwise(tree: KernelTree, node: Node, loop: Node, name: str, found: list[tuple[Node, str]]) -> bool:
    """Whether an expression does the same for each of four neighbours; its subscripts are added to `found`."""
    if node.type == "subscript_expression":
        rest = _rest(tree, node, loop, name)
        found += [(node, rest)] if rest is not None else []
        return rest is not None
    if node.type in ("parenthesized_expression", "binary_expression"):
        operator = node.child_by_field_name("operator")
        arithmetic = operator is None or tree.file.slice(operator) in ("+", "-", "*", "/")
        return arithmetic and all(_elementwise(tree, n, loop, name, found) for n in node.named_children)
    if node.type == "number_literal":
        return tree.file.slice(node).endswith(("f", "F"))
    variable = tree.variables.get(tree.file.slice(node)) if node.type == "identifier" else None
    return variable is not None and variable.type == "float" and not variable.pointer and _invariant(
        tree, node, loop, name
    )  # fmt: skip


def _rest(tree: KernelTree, node: Node, loop: Node, name: str) -> str | None:
    """`a` of `x[a + name]`, empty for `x[name]`; None where the elements are no neighbouring floats."""
    array = node.child_by_field_name("argument")
    listed = next((n for n in node.named_children if n.type == "subscript_argument_list"), None)
    if array is None or array.type != "identifier" or listed is None or len(listed.named_children) != 1:
        return None
    variable = tree.variables.get(tree.file.slice(array))
    if variable is None or variable.type != "float" or not variable.pointer or not variable.parameter:
        return None
    index = listed.named_children[0]
    if tree.file.slice(index) == name:
        return ""
    left, right = index.child_by_field_name("left"), index.child_by_field_name("right")
    operator = index.child_by_field_name("operator")
    if index.type != "binary_expression" or left is None or right is None or operator is None:
        return None
    rest = left if tree.file.slice(right) == name else right if tree.file.slice(left) == name else None
    if tree.file.slice(operator) != "+" or rest is None or not _invariant(tree, rest, loop, name):
        return None
    return tree.file.slice(rest)


def _edits(tree: KernelTree, wide: WideLoop) -> list[Edit]:
    file = tree.file
    indent = file.indent(wide.loop)
    step = "\t" if indent.startswith("\t") else "  " if len(indent) <= 2 else " " * 4
    start, end = file.start(wide.loop), file.end(wide.loop)
    body, at, addresses = "", file.start(wide.body), dict[str, None]()
    for node, rest in wide.accesses:
        array = tree.variables[root_name(file, node)]
        constant = "const " if array.constant else ""
        index = f"{rest} + {LANES} * {wide.name}" if rest else f"{LANES} * {wide.name}"
        body += f"{file.text[at : file.start(node)]}*reinterpret_cast<{constant}float4*>(&{array.name}[{index}])"
        addresses[f"{array.name} + {rest}" if rest else array.name] = None
        at = file.end(node)
    body += file.text[at : file.end(wide.body)]
    aligned = "".join(f" &&\n{indent}    reinterpret_cast<size_t>({a}) % 16 == 0" for a in addresses)
    head = wide.loop.child_by_field_name("initializer")
    declared = file.slice(head) if head is not None else ""
    bound = file.slice(wide.bound)
    bound = bound if re.fullmatch(r"[\w.]+", bound) else f"({bound})"
    update = file.slice(wide.step)
    text = (
        f"if ({bound} % {LANES} == 0{aligned}) {{\n"
        f"{indent}{step}for ({declared} {wide.name} < {bound} / {LANES}; {wide.name} += {update}) {{\n"
        f"{indent}{step * 2}{body}\n{indent}{step}}}\n{indent}}} else {{\n{indent}{step}"
    )
    lines = [m.end() for m in re.finditer("\n", file.text[start:end])]
    inside = [Edit(start + n, start + n, step) for n in lines]
    return [Edit(start, start, text), *inside, Edit(end, end, f"\n{indent}}}")]
