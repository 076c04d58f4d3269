"""Tensor maps, bulk copies and mbarriers."""

from __future__ import annotations

from collections.abc import Iterable

from sandbox.kernel import Kernel
from sandbox.target import Target
from skills.cuda_edit import refusals
from skills.facts import Facts
from skills.skill import Refusal, Site

CONSTRUCTS = {
    r"\bCUtensorMap\b|\bcuTensorMapEncode": "tensor maps",
    r"\bcp\.async\.bulk\b|\bcp\.reduce\.async\.bulk\b": "bulk asynchronous copies",
    r"\bmbarrier\.": "mbarrier PTX",
    r"\bcuda::device::experimental\b|\bcuda::ptx\b|cp_async_bulk": "cuda::ptx and bulk copies",
}
REASON = "the tensor memory accelerator does not exist on CDNA"
ROUTE = "Replace bulk copies by per-thread loads into LDS with __syncthreads, or rewrite the kernel in Triton."


def find(kernel: Kernel, facts: Facts, target: Target) -> Iterable[Site | Refusal]:
    """A refusal at the first live use of each construct."""
    return refusals(kernel, CONSTRUCTS, REASON, ROUTE)


def transform(kernel: Kernel, site: Site, target: Target) -> Kernel | None:
    """Nothing to rename: the construct has no counterpart."""
    return None
