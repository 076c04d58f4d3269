"""`operator+=(float4&, float4)` and the like become templates, so that HIP's own members are chosen."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from sandbox.hip_source import Edit, HipSource
from sandbox.kernel import Kernel
from sandbox.target import Target
from skills.cuda_edit import rewritten, sites
from skills.facts import Facts
from skills.skill import Refusal, Site

_VECTOR = r"(?:u?(?:char|short|int|long|longlong)|float|double)"
_OPERATOR = re.compile(
    rf"(?:(?:static|inline|__inline__|__host__|__device__|__forceinline__)\s+)+void\s+operator\s*(?P<op>[-+*/])=\s*\(\s*"
    rf"(?P<type>{_VECTOR}(?P<lanes>[234]))\s*&\s*(?P<a>\w+)\s*,\s*(?:const\s+)?(?P<other>[\w ]+?)\s*&?\s*"
    rf"(?P<b>\w+)\s*\)\s*\{{(?P<body>[^{{}}]*)\}}"
)
_TEMPLATE = "template <int Exact = 0> "


def find(kernel: Kernel, facts: Facts, target: Target) -> Iterable[Site | Refusal]:
    """One site for the whole file."""
    source = HipSource(kernel.source)
    return sites(source, list(_edits(source)), "template")


def transform(kernel: Kernel, site: Site, target: Target) -> Kernel | None:
    """A template head goes in front of each operator."""
    return rewritten(kernel, _edits(HipSource(kernel.source)))


def _edits(source: HipSource) -> Iterator[Edit]:
    for m in _OPERATOR.finditer(source.masked):
        before = source.masked[: m.start()].rstrip()
        if not before.endswith(">") and _by_component(m):
            yield Edit(m.start(), m.start(), _TEMPLATE)


def _by_component(m: re.Match[str]) -> bool:
    """The body does to every component what the operator's name says, and nothing else."""
    statements = [re.sub(r"\s+", "", s) for s in m["body"].split(";") if s.strip()]
    vector = m["other"].split()[-1] == m["type"]
    wanted = {f"{m['a']}.{lane}{m['op']}={m['b']}{f'.{lane}' if vector else ''}" for lane in "xyzw"[: int(m["lanes"])]}
    return set(statements) == wanted and len(statements) == len(wanted)
