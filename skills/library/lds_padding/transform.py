"""`__shared__ T tile[32][32]`, read by column, becomes `tile[32][32 + 1]`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tree_sitter import Node

from sandbox.hip_source import HipSource
from sandbox.kernel import Kernel
from sandbox.target import Target
from skills.cuda_edit import SIZES, constant_value, constants, rewritten
from skills.cuda_tree import CudaFile, KernelTree, walk
from skills.facts import Facts
from skills.skill import Refusal, Site

BANK_ROW_BYTES = 128
"""32 banks of four bytes: rows of a multiple of it put a column into one bank."""


@dataclass(frozen=True)
class Tile:
    """A two-dimensional array in LDS, and the size of its rows in the declaration."""

    name: str
    columns: Node


def find(kernel: Kernel, facts: Facts, target: Target) -> Iterable[Site | Refusal]:
    """One site per kernel, for all its tiles that are walked by column."""
    tree = CudaFile(kernel.source).kernel(str(facts["kernel.name"] or ""))
    tiles = _tiles(tree) if tree is not None else []
    if tree is not None and tiles:
        yield Site(tiles[0].columns.start_point[0] + 1, ", ".join(t.name for t in tiles), tree.name)


def transform(kernel: Kernel, site: Site, target: Target) -> Kernel | None:
    """Rows get one element more."""
    tree = CudaFile(kernel.source).kernel(site.kernel or "")
    if tree is None:
        return None
    file = tree.file
    return rewritten(kernel, [file.replace(t.columns, f"{file.slice(t.columns)} + 1") for t in _tiles(tree)])


def _tiles(tree: KernelTree) -> list[Tile]:
    known = constants(HipSource(tree.file.text))
    found: list[Tile] = []
    for declaration in tree.of_type("declaration"):
        if not any(tree.file.slice(c) == "__shared__" for c in declaration.children):
            continue
        type_ = declaration.child_by_field_name("type")
        size = SIZES.get(tree.file.slice(type_)) if type_ is not None else None
        for declarator in declaration.children_by_field_name("declarator"):
            tile = _tile(tree, declarator)
            columns = constant_value(tree.file.slice(tile.columns), known) if tile is not None else None
            if tile and size and columns and columns * size % BANK_ROW_BYTES == 0 and _by_column(tree, tile.name):
                found.append(tile)
    return found


def _tile(tree: KernelTree, declarator: Node) -> Tile | None:
    """A declarator `name[rows][columns]`."""
    if declarator.type != "array_declarator":
        return None
    inner, columns = declarator.child_by_field_name("declarator"), declarator.child_by_field_name("size")
    if inner is None or inner.type != "array_declarator" or columns is None:
        return None
    name = inner.child_by_field_name("declarator")
    return Tile(tree.file.slice(name), columns) if name is not None and name.type == "identifier" else None


def _by_column(tree: KernelTree, name: str) -> bool:
    """Whether lanes walk down a column somewhere, and every use is `name[row][column]`, so that nothing else depends
    on where a row starts."""
    uses = [u for u in tree.uses(name) if u.parent is not None and u.parent.type != "array_declarator"]
    rows: list[Sequence[Node]] = []
    for use in uses:
        first = use.parent
        second = first.parent if first is not None else None
        if first is None or second is None or {first.type, second.type} != {"subscript_expression"}:
            return False
        around = second.parent
        if around is not None and around.type in ("pointer_expression", "subscript_expression"):
            return False
        rows.append([n for n in first.named_children if n.type == "subscript_argument_list"])
    return any(_follows_lanes(tree, n) for row in rows for n in row)


def _follows_lanes(tree: KernelTree, node: Node) -> bool:
    """Whether an index moves with `threadIdx.x`."""
    for n in walk(node):
        if n.type == "field_expression" and tree.file.slice(n).replace(" ", "") == "threadIdx.x":
            return True
        variable = tree.variables.get(tree.file.slice(n)) if n.type == "identifier" else None
        if variable is not None and variable.value is not None and variable.name not in tree.assigned:
            text = tree.file.slice(variable.value).replace(" ", "")
            if "threadIdx.x" in text and "/" not in text and ">>" not in text:
                return True
    return False
