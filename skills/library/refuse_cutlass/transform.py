"""CUTLASS and CuTe."""

from __future__ import annotations

from collections.abc import Iterable

from sandbox.kernel import Kernel
from sandbox.target import Target
from skills.cuda_edit import refusals
from skills.facts import Facts
from skills.skill import Refusal, Site

CONSTRUCTS = {
    r"^[ \t]*#[ \t]*include[ \t]*[<\x22](cute|cutlass|cutlass_extensions)/": "CUTLASS headers",
    r"\bcute::|\bcutlass::": "CUTLASS",
}
REASON = "CUTLASS and CuTe are built on NVIDIA instructions"
ROUTE = "Use Composable Kernel, hipBLASLt or Triton for the same operation."


def find(kernel: Kernel, facts: Facts, target: Target) -> Iterable[Site | Refusal]:
    """A refusal at the first live use of each construct."""
    return refusals(kernel, CONSTRUCTS, REASON, ROUTE)


def transform(kernel: Kernel, site: Site, target: Target) -> Kernel | None:
    """Nothing to rename: the construct has no counterpart."""
    return None
