"""WarpReduce, WarpScan, WarpExchange, WarpLoad, WarpStore and WarpMergeSort of CUB; shuffles of PyTorch."""

from __future__ import annotations

import re
from collections.abc import Iterable

from sandbox.hip_source import Edit, HipSource
from sandbox.kernel import Kernel
from sandbox.target import Target
from skills.cuda_edit import plain_uses, rewritten, sites
from skills.facts import Facts
from skills.skill import Refusal, Site

WIDTH_POSITION = {
    "WarpReduce": 1,
    "WarpScan": 1,
    "WarpExchange": 2,
    "WarpLoad": 3,
    "WarpStore": 3,
    "WarpMergeSort": 2,
}
"""Template argument that holds the width; those before it without a default must be given already."""

SHUFFLES = frozenset(f"WARP_SHFL{way}" for way in ("", "_UP", "_DOWN", "_XOR"))
"""Of ATen/cuda/DeviceUtils.cuh: value, lane or distance, then the width, of which the default is the hardware's."""


def find(kernel: Kernel, facts: Facts, target: Target) -> Iterable[Site | Refusal]:
    """One site for the whole file."""
    source = HipSource(kernel.source)
    return sites(source, _edits(source), "width 32")


def transform(kernel: Kernel, site: Site, target: Target) -> Kernel | None:
    """The width is appended where it was left to its default."""
    return rewritten(kernel, _edits(HipSource(kernel.source)))


def _edits(source: HipSource) -> list[Edit]:
    edits = _shuffles(source)
    for i, token in enumerate(source.code[:-1]):
        position = WIDTH_POSITION.get(token.text)
        if position is None or source.code[i + 1].text != "<":
            continue
        end = source.template_end(i + 1)
        if end is None or source.code[end].text != ">":
            continue
        given = _count(source, i + 1, end)
        if given == position:
            edits.append(Edit(source.code[end].start, source.code[end].start, ", 32"))
        elif given == position - 1 and position == 3:
            algorithm = f"cub::{'WARP_LOAD_DIRECT' if token.text == 'WarpLoad' else 'WARP_STORE_DIRECT'}"
            edits.append(Edit(source.code[end].start, source.code[end].start, f", {algorithm}, 32"))
    return edits


def _shuffles(source: HipSource) -> list[Edit]:
    """The width of PyTorch's shuffles, in files that include its headers: others' of these names are their own."""
    includes = [d.body for d in source.directives if d.name == "include"]
    if not any(re.match(r"\s*[<\"](?:ATen|c10|torch)/", body) for body in includes):
        return []
    uses = {t.start for _, t in plain_uses(source, SHUFFLES)}
    calls = (c for c in source.calls(SHUFFLES) if c.start in uses and len(c.args) == 2)
    return [Edit(c.args[1].end, c.args[1].end, ", 32") for c in calls]


def _count(source: HipSource, opening: int, closing: int) -> int:
    depth, commas = 0, 0
    for token in source.code[opening + 1 : closing]:
        depth += (token.text in ("<", "(", "[", "{")) - (token.text in (">", ")", "]", "}"))
        commas += token.text == "," and depth == 0
    return commas + 1
