"""What the skills on atomics of HIP kernels share: what an address points to, and what else the kernel does with it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tree_sitter import Node

from skills.cuda_tree import KernelTree, root_name

SUMMED_TYPES = frozenset(
    {"int", "unsigned", "unsigned int", "unsigned long long", "unsigned long long int", "float", "double", "int32_t",
     "uint32_t", "uint"}
)  # fmt: skip
"""Types that `atomicAdd`, shuffles and plain addition all know."""


class NotAssuredError(Exception):
    """The kernel's results would not be assured after the edit; the message says why."""


def element_type(tree: KernelTree, address: Node) -> str | None:
    """What an atomic's address points to, as the source spells it; None where that is not one of `SUMMED_TYPES` or a
    parameter of a template."""
    base = root_name(tree.file, address)
    if address.type == "cast_expression":
        described = address.child_by_field_name("type")
        text = tree.file.slice(described) if described is not None else ""
        type_ = re.sub(r"\s*\*\s*$", "", text) if text.count("*") == 1 else ""
    elif (variable := tree.variables.get(base)) is not None:
        type_ = variable.type if variable.pointer and not variable.constant else ""
    else:
        declared = re.search(rf"__device__\s+([\w\s]+?)\s+{base}\s*[\[;=]", tree.file.text)
        type_ = declared[1] if declared else ""
    template = re.search(rf"\b(?:typename|class)\s+{re.escape(type_)}\b", tree.file.text) if type_ else None
    return type_ if type_ in SUMMED_TYPES or template else None


def only_in(tree: KernelTree, base: str, calls: Sequence[Node]) -> bool:
    """Whether the kernel names a pointer nowhere but in these calls, so that it cannot see that a sum comes later."""
    inside = [(c.start_byte, c.end_byte) for c in calls]
    return all(any(a <= use.start_byte < b for a, b in inside) for use in tree.uses(base))
