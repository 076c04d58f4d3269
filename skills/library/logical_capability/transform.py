"""`prop.major` and `prop.minor` of device properties."""

from __future__ import annotations

import re
from collections.abc import Iterable

from sandbox.hip_source import Edit, HipSource
from sandbox.kernel import Kernel
from sandbox.target import Target
from skills.cuda_edit import postfix_start, rewritten, sites
from skills.facts import Facts
from skills.skill import Refusal, Site

VALUES = {"major": "(WAVESMITH_CUDA_CAPABILITY / 100)", "minor": "(WAVESMITH_CUDA_CAPABILITY / 10 % 10)"}
PROPERTIES = re.compile(r"\b(?:cudaDeviceProp|hipDeviceProp_t)\s*[*&]?\s*(?:const\s+)?(\w+)")


def find(kernel: Kernel, facts: Facts, target: Target) -> Iterable[Site | Refusal]:
    """One site for the whole file."""
    source = HipSource(kernel.source)
    return sites(source, _edits(source), "capability of the port")


def transform(kernel: Kernel, site: Site, target: Target) -> Kernel | None:
    """The fields become the constants of the compat header."""
    return rewritten(kernel, _edits(HipSource(kernel.source)))


def _edits(source: HipSource) -> list[Edit]:
    owners = set(PROPERTIES.findall(source.masked))
    edits: list[Edit] = []
    for i, token in enumerate(source.code):
        if token.text not in VALUES or i < 2 or source.code[i - 1].text not in (".", "->"):
            continue
        after = source.code[i + 1].text if i + 1 < len(source.code) else ""
        start = postfix_start(source, i)
        owner = source.text[source.code[start].start : source.code[i - 1].start]
        named = source.code[i - 2].text in owners
        if after != "=" and (named or re.search(r"get(Current)?DeviceProperties\s*\(", owner)):
            edits.append(Edit(source.code[start].start, token.end, VALUES[token.text]))
    return edits
