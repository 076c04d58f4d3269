"""Thread block clusters."""

from __future__ import annotations

from collections.abc import Iterable

from sandbox.kernel import Kernel
from sandbox.target import Target
from skills.cuda_edit import refusals
from skills.facts import Facts
from skills.skill import Refusal, Site

CONSTRUCTS = {
    r"\b__cluster_dims__\b": "__cluster_dims__",
    r"\bcluster_group\b|\bthis_cluster\b|\bmap_shared_rank\b": "cluster_group",
    r"\bcudaLaunchAttributeCluster\w*": "cluster launches",
    r"\bmapa\.|%cluster|\bbarrier\.cluster\b|shared::cluster": "cluster PTX",
}
REASON = "thread block clusters do not exist on CDNA; a workgroup sees its own LDS only"
ROUTE = "Give one workgroup the work of the cluster, or exchange through global memory between two launches."


def find(kernel: Kernel, facts: Facts, target: Target) -> Iterable[Site | Refusal]:
    """A refusal at the first live use of each construct."""
    return refusals(kernel, CONSTRUCTS, REASON, ROUTE)


def transform(kernel: Kernel, site: Site, target: Target) -> Kernel | None:
    """Nothing to rename: the construct has no counterpart."""
    return None
