"""`atomicAdd` in a loop of one thread: the last two addresses are kept in registers with what is still to be added."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tree_sitter import Node

from sandbox.hip_source import Edit
from sandbox.kernel import Kernel
from sandbox.target import Target
from skills.cuda_atomics import NotAssuredError, element_type, only_in
from skills.cuda_edit import rewritten
from skills.cuda_tree import (
    BARRIERS,
    LOOPS,
    ORDERS,
    CudaFile,
    KernelTree,
    ancestors,
    arguments,
    root_name,
    statement_of,
    walk,
)
from skills.facts import Facts
from skills.names import fresh_name
from skills.skill import Refusal, Site

HELPER = "wavesmith_scatter_cache"
_HELPER_TEXT = f"""\
// The last two addresses that a thread added to, and what is still to be added there: a run of updates of one row
// becomes one atomic. Nothing is lost as long as `flush` is called.
template <typename T>
struct {HELPER} {{
  T* newer = nullptr;
  T* older = nullptr;
  T newer_sum = T(0);
  T older_sum = T(0);

  __device__ __forceinline__ void add(T* address, T value) {{
    if (address == newer) {{
      newer_sum += value;
    }} else if (address == older) {{
      older_sum += value;
    }} else {{
      if (older != nullptr) atomicAdd(older, older_sum);
      older = newer;
      older_sum = newer_sum;
      newer = address;
      newer_sum = value;
    }}
  }}

  __device__ __forceinline__ void flush() {{
    if (older != nullptr) atomicAdd(older, older_sum);
    if (newer != nullptr) atomicAdd(newer, newer_sum);
  }}
}};
"""
MAX_CACHES = 4
"""Each holds two addresses and two sums in registers."""


@dataclass(frozen=True)
class Scatter:
    """One atomic in a loop, and the outermost loop around it."""

    call: Node
    loop: Node
    base: str
    type: str


def find(kernel: Kernel, facts: Facts, target: Target) -> Iterable[Site | Refusal]:
    """One site per kernel, for all loops that scatter."""
    tree = CudaFile(kernel.source).kernel(str(facts["kernel.name"] or ""))
    if tree is None:
        return
    try:
        scatters = _scatters(tree)
    except NotAssuredError:
        return
    yield Site(scatters[0].loop.start_point[0] + 1, ", ".join(dict.fromkeys(s.base for s in scatters)), tree.name)


def transform(kernel: Kernel, site: Site, target: Target) -> Kernel | None:
    """A cache in front of each loop, additions to it inside, and its flush behind."""
    tree = CudaFile(kernel.source).kernel(site.kernel or "")
    if tree is None:
        return None
    try:
        return rewritten(kernel, _edits(tree, _scatters(tree)))
    except NotAssuredError:
        return None


def _scatters(tree: KernelTree) -> list[Scatter]:
    """Raises `NotAssuredError` when there is none whose updates may come later."""
    calls = tree.calls("atomicAdd")
    found = [s for c in calls if (s := _scatter(tree, c)) is not None]
    taken = [s for s in found if only_in(tree, s.base, [o.call for o in found if o.base == s.base])]
    if not taken or len(taken) > MAX_CACHES:
        raise NotAssuredError("no loop whose atomics could be merged in a few registers")
    if ORDERS.search(tree.code) or tree.of_type("lambda_expression", "goto_statement"):
        raise NotAssuredError("it orders memory accesses itself, so that a later update could be missed")
    return taken


def _scatter(tree: KernelTree, call: Node) -> Scatter | None:
    given = arguments(call)
    if len(given) != 2 or statement_of(call) is None or tree.is_uniform(given[0]):
        return None
    loops = [n for n in ancestors(call, tree.body) if n.type in LOOPS]
    base, type_ = root_name(tree.file, given[0]), element_type(tree, given[0])
    if not loops or type_ is None or not tree.variables.get(base):
        return None
    loop = loops[-1]
    inside = tree.file.slice(loop)
    leaves = any(n.type == "return_statement" for n in walk(loop))
    if leaves or BARRIERS.search(inside) or loop.parent is None or loop.parent.type != "compound_statement":
        return None
    return Scatter(call, loop, base, type_)


def _edits(tree: KernelTree, scatters: Sequence[Scatter]) -> list[Edit]:
    file = tree.file
    taken = set(re.findall(r"\w+", file.text))
    edits = list(file.helper(HELPER, _HELPER_TEXT))
    loops: dict[int, tuple[Node, list[str], list[str]]] = {}
    for scatter in scatters:
        name = fresh_name(f"{scatter.base}_cache", taken, "")
        address, value = (file.slice(a) for a in arguments(scatter.call))
        edits.append(file.replace(scatter.call, f"{name}.add({address}, {value})"))
        _, before, after = loops.setdefault(scatter.loop.id, (scatter.loop, [], []))
        before.append(f"{HELPER}<{scatter.type}> {name};")
        after.append(f"{name}.flush();")
    for loop, before, after in loops.values():
        first = _with_pragmas(loop)
        indent = file.indent(loop)
        start, end = file.text.rfind("\n", 0, file.start(first)) + 1, file.end(loop)
        edits.append(Edit(start, start, "".join(f"{indent}{line}\n" for line in before)))
        edits.append(Edit(end, end, "".join(f"\n{indent}{line}" for line in after)))
    return edits


def _with_pragmas(loop: Node) -> Node:
    """The first of the `#pragma` lines right in front of a loop, or the loop."""
    first = loop
    while (before := first.prev_sibling) is not None and before.type == "preproc_call":
        first = before
    return first
