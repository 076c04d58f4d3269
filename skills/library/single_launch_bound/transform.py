"""`__launch_bounds__(threads, blocks, cluster)` keeps its first argument."""

from __future__ import annotations

from collections.abc import Iterable

from sandbox.hip_source import Edit, HipSource
from sandbox.kernel import Kernel
from sandbox.target import Target
from skills.cuda_edit import rewritten, sites
from skills.facts import Facts
from skills.skill import Refusal, Site


def find(kernel: Kernel, facts: Facts, target: Target) -> Iterable[Site | Refusal]:
    """One site for the whole file."""
    source = HipSource(kernel.source)
    return sites(source, _edits(source), "threads only")


def transform(kernel: Kernel, site: Site, target: Target) -> Kernel | None:
    """The arguments after the first are dropped."""
    return rewritten(kernel, _edits(HipSource(kernel.source)))


def _edits(source: HipSource) -> list[Edit]:
    return [
        Edit(call.args[0].end, call.args[-1].end, "")
        for call in source.calls({"__launch_bounds__"})
        if len(call.args) > 1
    ]
