"""Shuffles, votes, matches, reductions, active masks and warp barriers."""

from __future__ import annotations

from collections.abc import Iterable

from sandbox.hip_source import Edit, HipSource
from sandbox.kernel import Kernel
from sandbox.target import Target
from skills.cuda_edit import plain_uses, rewritten, sites
from skills.facts import Facts
from skills.skill import Refusal, Site

NAMES = frozenset(
    {
        *(f"__shfl{way}{sync}" for way in ("", "_up", "_down", "_xor") for sync in ("", "_sync")),
        *(f"__{vote}{sync}" for vote in ("ballot", "any", "all") for sync in ("", "_sync")),
        *(f"__reduce_{op}_sync" for op in ("add", "min", "max", "and", "or", "xor")),
        "__uni_sync", "__match_any_sync", "__match_all_sync", "__activemask", "__syncwarp",
    }
)  # fmt: skip
"""What means 32 lanes in CUDA and 64, or nothing, in HIP."""


def find(kernel: Kernel, facts: Facts, target: Target) -> Iterable[Site | Refusal]:
    """One site for the whole file."""
    source = HipSource(kernel.source)
    return sites(source, _edits(source), "32 lanes")


def transform(kernel: Kernel, site: Site, target: Target) -> Kernel | None:
    """Every intrinsic becomes its counterpart in the compat header."""
    return rewritten(kernel, _edits(HipSource(kernel.source)))


def _edits(source: HipSource) -> list[Edit]:
    return [Edit(t.start, t.start, "wavesmith::") for _, t in plain_uses(source, NAMES)]
