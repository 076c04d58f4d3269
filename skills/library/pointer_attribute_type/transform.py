"""`attributes.memoryType` becomes `attributes.type`."""

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
    return sites(source, _edits(source), "type")


def transform(kernel: Kernel, site: Site, target: Target) -> Kernel | None:
    """The field is renamed."""
    return rewritten(kernel, _edits(HipSource(kernel.source)))


def _edits(source: HipSource) -> list[Edit]:
    return [
        Edit(t.start, t.end, "type")
        for i, t in enumerate(source.code)
        if t.text == "memoryType" and i and source.code[i - 1].text in (".", "->")
    ]
