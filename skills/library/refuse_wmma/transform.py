"""nvcuda::wmma has no counterpart a rename could reach."""

from __future__ import annotations

from collections.abc import Iterable

from sandbox.kernel import Kernel
from sandbox.target import Target
from skills.cuda_edit import refusals
from skills.facts import Facts
from skills.skill import Refusal, Site

CONSTRUCTS = {
    r"\bnvcuda\b": "nvcuda::wmma",
    r"\bwmma\s*::": "wmma",
}
REASON = (
    "tensor-core fragments span 32 lanes in an order of their own; AMD matrix instructions take 64 lanes "
    "and another order"
)
ROUTE = "Rewrite the tile loop on MFMA: Triton tl.dot, Composable Kernel, or rocWMMA where a ROCm installation has it."


def find(kernel: Kernel, facts: Facts, target: Target) -> Iterable[Site | Refusal]:
    """A refusal at the first live use of each construct."""
    return refusals(kernel, CONSTRUCTS, REASON, ROUTE)


def transform(kernel: Kernel, site: Site, target: Target) -> Kernel | None:
    """Nothing to rename: the construct has no counterpart."""
    return None
