"""Calls of a `triton.language` name that the installed Triton lacks become `tl.static_assert(False, ...)`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import libcst as cst

from sandbox.kernel import Kernel
from sandbox.target import Target
from skills.edit import apply_edits, replace, tl_name
from skills.facts import Facts
from skills.skill import Refusal, Site
from skills.triton_source import TritonSource, parse_triton

_ABSENT = re.compile(r"has no (triton[\w.]*\.\w+): the file was written for another version")


def find(kernel: Kernel, facts: Facts, target: Target) -> Iterable[Site | Refusal]:
    """One site per name the compiler missed; further ones show once it is gone."""
    source = parse_triton(kernel)
    for name in dict.fromkeys(_ABSENT.findall(str(facts["compile.error"]))):
        calls = list(_calls(source, name))
        if calls:
            yield Site(source.line(calls[0]), f"without {name.rpartition('.')[2]}", variant={"name": name})


def transform(kernel: Kernel, site: Site, target: Target) -> Kernel | None:
    """Every call of the name inside jit functions, its arguments included."""
    source = parse_triton(kernel)
    name = str(site.variant["name"])
    text = f'{tl_name(source)}.static_assert(False, "this Triton has no {name}")'
    return apply_edits(kernel, source, [replace(source, call, text) for call in _calls(source, name)])


def _calls(source: TritonSource, name: str) -> Iterator[cst.Call]:
    for node in source.nodes:
        if isinstance(node, cst.Call) and source.qualified(node.func) == name and source.in_jit(node) is not None:
            yield node
