"""Statements such as `s[t] += s[t + 16];` on volatile shared memory."""

from __future__ import annotations

import re
from collections.abc import Iterable

from sandbox.hip_source import Edit, HipSource
from sandbox.kernel import Kernel
from sandbox.target import Target
from skills.cuda_edit import rewritten, sites
from skills.facts import Facts
from skills.skill import Refusal, Site

VOLATILE = re.compile(r"\bvolatile\b[\w\s:<>]*?[*&\s]\s*(?:__restrict__\s*)?(\w+)\s*(?=[,);=\[])")


def find(kernel: Kernel, facts: Facts, target: Target) -> Iterable[Site | Refusal]:
    """One site for the whole file."""
    source = HipSource(kernel.source)
    return sites(source, _edits(source), "barriers written out")


def transform(kernel: Kernel, site: Site, target: Target) -> Kernel | None:
    """Read, barrier, write, barrier."""
    return rewritten(kernel, _edits(HipSource(kernel.source)))


def _edits(source: HipSource) -> list[Edit]:
    edits: list[Edit] = []
    for name in sorted(set(VOLATILE.findall(source.masked))):
        target = rf"(?<![\w.>]){name}\s*\[(?P<at>[^\]\[;]+)\]\s*(?P<op>[-+*&|^]?=)(?!=)"
        statement = rf"{target}\s*(?P<value>[^;{{}}]*\b{name}\s*\[[^;{{}}]*);"
        for m in re.finditer(statement, source.masked):
            text = source.text[m.start() : m.end()]
            if "wavesmith" in text or "__syncwarp" in text:
                continue
            value = source.text[m.start("value") : m.end("value")].strip()
            operator = m["op"][:-1]
            left = f"{name}[{m['at']}]"
            read = f"{left} {operator} ({value})" if operator else value
            fenced = f"{{ const auto next_value = {read}; __syncwarp(); {left} = next_value; __syncwarp(); }}"
            edits.append(Edit(m.start(), m.end(), fenced))
    return edits
