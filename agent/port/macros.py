"""Which macros of the user's own a build defines: the arms it does not compile are no reason to refuse anything."""

from __future__ import annotations

import re
from collections.abc import Mapping

from agent.port.request import PortRequest, Project
from sandbox.hip_guards import KNOWN_ON_AMD, UNDEFINED, conditionals, dead_spans
from sandbox.hip_source import HipSource

_NOT_THE_USERS = re.compile(
    r"^(?:__|_[A-Z]|CUDA|CUDART|HIP|HIPCC|WAVESMITH|CUB_|THRUST_|NDEBUG$|TORCH_|AT_|C10_|USE_ROCM$)"
)
"""Names that compilers and libraries define."""


_ROUNDS = 4
"""A macro may depend on another; chains are short."""


def macros_of_the_build(project: Project, request: PortRequest) -> Mapping[str, int | str]:
    """What is known on AMD, the `-D` definitions, what the project's own live definitions agree on, and as undefined
    what conditions ask for and nothing defines."""
    texts = [*(f.text for f in project.sources.values()), *project.others.values()]
    sources = [HipSource(text) for text in texts]
    asked = {n for s in sources for c in conditionals(s) for arm in c.arms for n in _NAME.findall(arm.condition)}
    defined = {n for s in sources for n in re.findall(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", s.uncommented, re.M)}
    known: dict[str, int | str] = {
        name: UNDEFINED for name in asked - defined - {"defined"} if not _NOT_THE_USERS.match(name)
    }
    for d in request.defines:
        name, _, value = d.partition("=")
        if (number := _value(value)) is not None:
            known[name] = number
    known |= KNOWN_ON_AMD
    for _ in range(_ROUNDS):
        agreed = _agreed(sources, known, asked)
        if agreed.keys() <= known.keys():
            break
        known = {**agreed, **known}
    return known


_NAME = re.compile(r"[A-Za-z_]\w*")


def _agreed(sources: list[HipSource], known: Mapping[str, int | str], asked: set[str]) -> dict[str, int | str]:
    """Macros that conditions ask for, and that every definition that is compiled gives the same plain number."""
    values: dict[str, set[int | None]] = {}
    for source in sources:
        dead = dead_spans(source, known)
        guards = conditionals(source)
        for d in source.directives:
            m = re.match(r"(\w+)(?:[ \t]+(.*))?$", d.body.strip(), re.S) if d.name == "define" else None
            if m is None or m.group(1) not in asked or any(s.start <= d.start < s.end for s in dead):
                continue
            itself = any(m.group(1) in _NAME.findall(a.condition) for g in guards if (a := g.arm_at(d.start)))
            body = (m.group(2) or "").strip().strip("()")
            values.setdefault(m.group(1), set()).add(
                None if itself or "(" in body else _value(body) if body != "0" else 0
            )
    return {n: v for n, found in values.items() if len(found) == 1 and (v := next(iter(found))) is not None}


def _value(text: str) -> int | None:
    if not text:
        return 1
    return int(text, 0) if re.fullmatch(r"[1-9]\d*|0(?:[xX][0-9a-fA-F]+)?", text) else None
