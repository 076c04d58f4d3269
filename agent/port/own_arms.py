"""What a file says of AMD itself: numbers that its own conditions choose by the vendor, such as how wide a warp is."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence

from agent.port.includes import PathIndex, closure
from agent.port.request import Project
from sandbox.hip_guards import conditionals
from sandbox.hip_source import HipSource

_VENDOR = re.compile(r"^(?:__HIP|HIP_|USE_ROCM$|BUILD_HIP$|USE_HIP$|__AMD|__gfx|__GFX|ROCM_)")
_NAME = re.compile(r"[A-Za-z_]\w*")
_NUMBER = r"\(?(\d+)[uUlL]*\)?"
_MACRO = re.compile(rf"^(\w+)[ \t]+{_NUMBER}\s*(?:/[/*].*)?$")
_CONSTANT = re.compile(
    rf"\bconst(?:expr)?\s+(?:(?:static|const|unsigned)\s+)*\w+\s+(\w+)\s*(?:=\s*|\{{\s*){_NUMBER}\s*\}}?\s*;"
)
FLAGS = frozenset({0, 1})
"""Numbers that say whether something is there, not how large it is."""


def own_numbers(texts: Iterable[str]) -> dict[str, frozenset[int]]:
    """Macros and constants that have several plain values, chosen by conditions that name AMD, with these values."""
    sources = [HipSource(text) for text in texts]
    vendor = _vendor_macros(sources)
    found: dict[str, set[int]] = defaultdict(set)
    for source in sources:
        for name, value, at in _numbers(source):
            if value not in FLAGS and vendor & _words_around(source, at):
                found[name].add(value)
    return {name: frozenset(values) for name, values in found.items() if len(values) > 1}


def reached_numbers(project: Project, unit: str, words: Collection[str]) -> tuple[str, ...]:
    """Of the numbers that the unit and what it includes choose by the vendor those among `words`."""
    texts = {**project.others, **{p: f.text for p, f in project.sources.items()}}
    paths = closure([unit], PathIndex.of(texts), texts.get)
    return tuple(sorted(set(words) & own_numbers(texts[p] for p in paths).keys()))


def own_note(numbers: Sequence[str]) -> str:
    """What a comparison with the file's own code for AMD rests on; empty when there was none."""
    if not numbers:
        return ""
    own = ", ".join(numbers)
    return f"as the file gives AMD another {own}, it was compared with the file's code for AMD on 64 lanes"


def _vendor_macros(sources: Iterable[HipSource]) -> frozenset[str]:
    """Words by which conditions ask for the vendor, macros that stand for such a question among them."""
    words = {w for s in sources for d in s.directives for w in _NAME.findall(d.body)}
    known = {w for w in words if _VENDOR.match(w)}
    defined = [
        (m.group(), set(_NAME.findall(d.body[m.end() :])) | _words_around(s, d.start))
        for s in sources for d in s.directives if d.name == "define" and (m := _NAME.match(d.body))
    ]  # fmt: skip
    while fresh := {name for name, uses in defined if name not in known and uses & known}:
        known |= fresh
    return frozenset(known)


def _numbers(source: HipSource) -> Iterator[tuple[str, int, int]]:
    """Name, value and place of each definition of a plain number."""
    for d in source.directives:
        if d.name == "define" and (m := _MACRO.match(d.body.strip())):
            yield m[1], int(m[2]), d.start
    for m in _CONSTANT.finditer(source.masked):
        yield m[1], int(m[2]), m.start()


def _words_around(source: HipSource, at: int) -> set[str]:
    """The words of all conditions of the conditionals that hold a place, other arms' too."""
    holding = (c for c in conditionals(source) if c.start <= at < c.end and c.arm_at(at))
    return {w for c in holding for arm in c.arms for w in _NAME.findall(arm.condition)}
