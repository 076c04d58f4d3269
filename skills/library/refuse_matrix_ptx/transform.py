"""mma.sync, wgmma, ldmatrix and relatives in asm statements."""

from __future__ import annotations

from collections.abc import Iterable

from sandbox.kernel import Kernel
from sandbox.target import Target
from skills.cuda_edit import refusals
from skills.facts import Facts
from skills.skill import Refusal, Site

CONSTRUCTS = {
    r"\bw?gmma\.|\bmma\.(sync|m\d)|\bmma\.sp": "mma PTX",
    r"\bldmatrix\b|\bstmatrix\b|\bmovmatrix\b": "ldmatrix PTX",
    r"\btcgen05\b": "tcgen05 PTX",
}
REASON = "the register layout of tensor-core instructions has no counterpart on AMD"
ROUTE = "Rewrite the tile product on MFMA: Triton tl.dot, Composable Kernel or hipBLASLt."


def find(kernel: Kernel, facts: Facts, target: Target) -> Iterable[Site | Refusal]:
    """A refusal at the first live use of each construct."""
    return refusals(kernel, CONSTRUCTS, REASON, ROUTE)


def transform(kernel: Kernel, site: Site, target: Target) -> Kernel | None:
    """Nothing to rename: the construct has no counterpart."""
    return None
