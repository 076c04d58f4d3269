"""`__launch_bounds__` gets the threads of the largest block that the file launches the kernel with."""

from __future__ import annotations

from collections.abc import Iterable

from tree_sitter import Node

from sandbox.hip_source import Edit, HipSource
from sandbox.kernel import Kernel
from sandbox.target import Target
from skills.cuda_edit import constant_value, constants, rewritten
from skills.cuda_launches import launch_sites
from skills.cuda_tree import CudaFile, KernelTree
from skills.facts import Facts
from skills.skill import Refusal, Site

_DEFAULT = 1024
"""What the compiler assumes of a kernel without bounds."""


def find(kernel: Kernel, facts: Facts, target: Target) -> Iterable[Site | Refusal]:
    """One site for a kernel whose launches are all known and smaller than its bound."""
    name = str(facts["kernel.name"] or "")
    tree, threads = CudaFile(kernel.source).kernel(name), _largest_block(kernel, name)
    if tree is not None and threads is not None and threads < _bound(tree):
        yield Site(tree.line, f"{threads} threads", name, {"threads": threads})


def transform(kernel: Kernel, site: Site, target: Target) -> Kernel | None:
    """The bound is written, or replaced."""
    tree = CudaFile(kernel.source).kernel(site.kernel or "")
    if tree is None:
        return None
    threads = site.variant["threads"]
    file, given = tree.file, _given(tree)
    if given is not None:
        return rewritten(kernel, [file.replace(given, f"__launch_bounds__({threads})")])
    mark = next(c for c in tree.node.children if c.type == "__global__")
    return rewritten(kernel, [Edit(file.end(mark), file.end(mark), f" __launch_bounds__({threads})")])


def _given(tree: KernelTree) -> Node | None:
    return next((c for c in tree.node.children if c.type == "launch_bounds"), None)


def _bound(tree: KernelTree) -> int:
    """Threads that the compiler has to reckon with; 0 for a bound that is no constant."""
    given = _given(tree)
    if given is None:
        return _DEFAULT
    first = given.named_children[0] if given.named_children else None
    known = constants(HipSource(tree.file.text))
    return (constant_value(tree.file.slice(first), known) or 0) if first is not None else 0


def _largest_block(kernel: Kernel, name: str) -> int | None:
    """Threads of the largest block, as whole wavefronts; None where a launch is not known, or there is none."""
    sites = launch_sites(HipSource(kernel.source), name)
    blocks = [s.block for s in sites if s.block is not None]
    if not sites or len(blocks) < len(sites):
        return None
    largest = max(x * y * z for x, y, z in blocks)
    return -(-largest // 64) * 64
