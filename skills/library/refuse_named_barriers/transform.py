"""Barriers of a part of the block."""

from __future__ import annotations

from collections.abc import Iterable

from sandbox.kernel import Kernel
from sandbox.target import Target
from skills.cuda_edit import refusals
from skills.facts import Facts
from skills.skill import Refusal, Site

CONSTRUCTS = {
    r"\bbar(rier)?\.(cta\.)?(sync|arrive)(\.aligned)?[ \t]+(%\d|[1-9]|[a-zA-Z_{]|0[ \t]*,)": "named barriers",
    r"\b__barrier_sync(_count)?\s*\(": "__barrier_sync",
    r"\bblock_tile_memory\b": "tiles of several warps",
    r"\bsetmaxnreg\b": "register reallocation between warps",
}
REASON = "a workgroup of CDNA has one barrier for all its wavefronts"
ROUTE = "Use __syncthreads for all threads, or split the roles into separate kernels."


def find(kernel: Kernel, facts: Facts, target: Target) -> Iterable[Site | Refusal]:
    """A refusal at the first live use of each construct."""
    return refusals(kernel, CONSTRUCTS, REASON, ROUTE)


def transform(kernel: Kernel, site: Site, target: Target) -> Kernel | None:
    """Nothing to rename: the construct has no counterpart."""
    return None
