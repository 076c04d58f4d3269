"""`atomicAdd` of many threads on one address: summed in registers, then over the block, then added once at its end."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tree_sitter import Node

from sandbox.hip_source import Edit
from sandbox.kernel import Kernel
from sandbox.target import Target
from skills.cuda_atomics import SUMMED_TYPES, NotAssuredError, element_type, only_in
from skills.cuda_edit import rewritten
from skills.cuda_guards import GuardError, nest_guards, top_level_guards, without_last_return
from skills.cuda_tree import (
    BARRIERS,
    ORDERS,
    CudaFile,
    KernelTree,
    Variable,
    ancestors,
    arguments,
    root_name,
    statement_of,
)
from skills.facts import Facts
from skills.names import fresh_name
from skills.skill import Refusal, Site

HELPER = "wavesmith_block_add"
_HELPER_TEXT = f"""\
// Adds the sum of `value` over the block to `*address` with one atomic: over wavefronts by shuffles, then through LDS.
// Every thread of the block has to call it.
template <typename T>
__device__ __forceinline__ void {HELPER}(T* address, T value) {{
  __shared__ T partial[1024 / 32];
  const unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  const unsigned threads = blockDim.x * blockDim.y * blockDim.z;
  const unsigned lane = thread % warpSize, live = min(unsigned(warpSize), threads - (thread - lane));
  for (unsigned offset = warpSize / 2; offset > 0; offset /= 2) {{
    const T other = __shfl_down(value, offset);
    if (lane + offset < live) value += other;
  }}
  if (lane == 0) partial[thread / warpSize] = value;
  __syncthreads();
  if (thread == 0) {{
#pragma unroll 1
    for (unsigned wave = 1; wave * warpSize < threads; ++wave) value += partial[wave];
    if (value != T(0)) atomicAdd(address, value);
  }}
  __syncthreads();
}}
"""


@dataclass(frozen=True)
class Group:
    """Atomics on one address."""

    address: str
    type: str
    base: str
    calls: tuple[Node, ...]


def find(kernel: Kernel, facts: Facts, target: Target) -> Iterable[Site | Refusal]:
    """One site per kernel, for all addresses that its threads share."""
    tree = CudaFile(kernel.source).kernel(str(facts["kernel.name"] or ""))
    if tree is None:
        return
    shared = [c for c in tree.calls("atomicAdd") if _is_shared(tree, c)]
    if not shared:
        return
    try:
        groups = _groups(tree)
        _edits(tree, groups)
    except NothingSharedError:
        return
    except (NotAssuredError, GuardError) as e:
        reason = f"the atomics of {tree.name} are not summed over the block: {e}."
        yield Refusal(reason, shared[0].start_point[0] + 1, _ROUTE)
        return
    yield Site(tree.line, ", ".join(g.address for g in groups), tree.name)


_ROUTE = "Let all threads come to the kernel's end, and leave fences and reads of the sum to another kernel."


class NothingSharedError(NotAssuredError):
    """There is no atomic of many threads on one address."""


def _is_shared(tree: KernelTree, call: Node) -> bool:
    """Whether a call adds to an address that all threads of a block share, and nothing asks for its value."""
    given = arguments(call)
    return len(given) == 2 and statement_of(call) is not None and tree.is_uniform(given[0])


def transform(kernel: Kernel, site: Site, target: Target) -> Kernel | None:
    """The atomics become sums in registers, which are added at the end of the kernel."""
    tree = CudaFile(kernel.source).kernel(site.kernel or "")
    if tree is None:
        return None
    try:
        return rewritten(kernel, _edits(tree, _groups(tree)))
    except (NotAssuredError, GuardError):
        return None


def _groups(tree: KernelTree) -> list[Group]:
    """The addresses that all threads of a block share; raises `NotAssuredError` when there is none to take."""
    found: dict[str, list[Node]] = {}
    for call in tree.calls("atomicAdd"):
        given = arguments(call)
        if _is_shared(tree, call) and _holds_at_the_end(tree, given[0]):
            found.setdefault(re.sub(r"\s+", " ", tree.file.slice(given[0])), []).append(call)
    groups = [g for address, calls in found.items() if (g := _group(tree, address, calls)) is not None]
    shared = [g for g in groups if only_in(tree, g.base, [c for o in groups if o.base == g.base for c in o.calls])]
    if not groups:
        raise NothingSharedError("no atomic of many threads on one address")
    if not shared:
        raise NotAssuredError("the kernel uses the memory that they add to itself")
    return shared


def _holds_at_the_end(tree: KernelTree, address: Node) -> bool:
    """Whether the names of an address are still known at the kernel's end."""
    first = min((g.start_byte for g in top_level_guards(tree)), default=tree.body.end_byte)
    for node in tree.identifiers(address):
        variable = tree.variables.get(tree.file.slice(node))
        if variable is None or variable.parameter:
            continue
        parent = variable.declared.parent
        if parent is None or parent.id != tree.body.id or variable.declared.start_byte > first:
            return False
    return True


def _group(tree: KernelTree, address: str, calls: Sequence[Node]) -> Group | None:
    given = arguments(calls[0])[0]
    base = root_name(tree.file, given)
    type_ = element_type(tree, given)
    if type_ is None or any(_one_thread(tree, c) for c in calls):
        return None
    return Group(address, type_, base, tuple(calls))


_FIRST_THREAD = re.compile(r"threadIdx\s*\.\s*x\s*==\s*0|0\s*==\s*threadIdx\s*\.\s*x|!\s*threadIdx\s*\.\s*x")


def _one_thread(tree: KernelTree, call: Node) -> bool:
    """Whether only the first thread of a block comes to a call: then it is summed already."""
    for around in ancestors(call, tree.body):
        condition = around.child_by_field_name("condition") if around.type == "if_statement" else None
        if condition is None:
            continue
        text = tree.file.slice(condition)
        for name, variable in tree.variables.items():
            if _is_thread(tree, variable):
                text = re.sub(rf"\b{name}\b", "threadIdx.x", text)
        if _FIRST_THREAD.search(text):
            return True
    return False


_THREAD = re.compile(r"(\(?[\w.*+]*threadIdx\.[yz]\*?[\w.*+]*\)?\*blockDim\.x\+)?threadIdx\.x")


def _is_thread(tree: KernelTree, variable: Variable) -> bool:
    """Whether a variable is the number of the thread in its block."""
    text = re.sub(r"\s+", "", tree.file.slice(variable.value)) if variable.value is not None else ""
    return _THREAD.fullmatch(text) is not None and "blockIdx" not in text


def _edits(tree: KernelTree, groups: Sequence[Group]) -> list[Edit]:
    """All edits of the file; raises `NotAssuredError` or `GuardError` where the results would not be assured."""
    file = tree.file
    _check(tree)
    guards = top_level_guards(tree)
    names = _names(file, groups)
    inner, opened, closed = _lines(tree)
    declared = "".join(f"\n{inner}{g.type} {names[g]} = 0;" for g in groups)
    edits = [*file.helper(HELPER, _HELPER_TEXT), Edit(opened.start, opened.end, declared + opened.text)]
    for group in groups:
        for call in group.calls:
            edits.append(file.replace(call, f"{names[group]} += {_value(tree, group, arguments(call)[1])}"))
    nested, ends = nest_guards(tree, guards, inner)
    added = ends + "".join(f"{inner}{HELPER}({g.address}, {names[g]});\n" for g in groups)
    return [*edits, *nested, *without_last_return(tree), Edit(closed.start, closed.end, closed.text + added)]


def _lines(tree: KernelTree) -> tuple[str, Edit, Edit]:
    """The indentation of the body, and what makes room behind its opening and in front of its closing brace."""
    file, own = tree.file, tree.body.named_children
    opening, closing = file.start(tree.body) + 1, file.end(tree.body) - 1
    line = file.text.rfind("\n", 0, closing) + 1
    alone = not file.text[line:closing].strip()
    end = Edit(line, line, "") if alone else Edit(max(opening, file.end(own[-1])) if own else closing, closing, "\n")
    if own and "\n" not in file.text[opening : file.start(own[0])]:
        inner = file.indent(tree.node) + "  "
        return inner, Edit(opening, file.start(own[0]), f"\n{inner}"), end
    return file.indent(own[0]) if own else "  ", Edit(opening, opening, ""), end


def _check(tree: KernelTree) -> None:
    """Raise where the end of the kernel is not reached by all threads, or is too late for the sum."""
    code = tree.code
    if ORDERS.search(code):
        raise NotAssuredError("it orders memory accesses itself, so that a later sum could be missed")
    if tree.of_type("goto_statement", "lambda_expression", "labeled_statement", "co_return_statement"):
        raise NotAssuredError("threads may leave it in ways that are not followed")
    if re.search(r"#\s*define\s+warpSize", tree.file.text) or re.search(r"\basm\b|__asm|\bR\"", tree.text):
        raise NotAssuredError("it holds assembly, or redefines the width of a wavefront")
    if top_level_guards(tree) and BARRIERS.search(tree.file.text.replace(_HELPER_TEXT, "")):
        raise NotAssuredError("threads that return early would not come to the barriers that others wait at")


def _names(file: CudaFile, groups: Sequence[Group]) -> dict[Group, str]:
    """A name of its own for each sum."""
    taken = set(re.findall(r"\w+", file.text))
    return {group: fresh_name(f"{group.base}_sum", taken, "") for group in groups}


_LITERAL = {"float": r"\d+\.?\d*f|\d+", "double": r"\d+\.?\d*"}


def _value(tree: KernelTree, group: Group, value: Node) -> str:
    """The value as text, converted as the atomic's parameter converts it."""
    text = tree.file.slice(value)
    whole = group.type not in ("float", "double") and group.type in SUMMED_TYPES
    if _has_type(tree, value, group.type) or (whole and tree.type_of_integers(value)):
        return text
    if value.type == "cast_expression" and re.match(rf"\(\s*{re.escape(group.type)}\s*\)", text):
        return text
    return f"static_cast<{group.type}>({text})"


def _has_type(tree: KernelTree, value: Node, type_: str) -> bool:
    """Whether an expression is of a type by the declarations it is made of."""
    if value.type == "number_literal":
        return re.fullmatch(_LITERAL.get(type_, r"\d+[uUlL]*"), tree.file.slice(value)) is not None
    if value.type in ("identifier", "subscript_expression"):
        variable = tree.variables.get(root_name(tree.file, value))
        pointed = value.type == "subscript_expression"
        return variable is not None and variable.type == type_ and variable.pointer is pointed
    if value.type == "parenthesized_expression":
        return all(_has_type(tree, n, type_) for n in value.named_children)
    if value.type == "binary_expression":
        operator = value.child_by_field_name("operator")
        arithmetic = operator is not None and tree.file.slice(operator) in ("+", "-", "*")
        return arithmetic and all(_has_type(tree, n, type_) for n in value.named_children)
    return False
