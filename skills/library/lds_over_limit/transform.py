"""Constant dynamic shared memory sizes above the limit of the target."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from sandbox.hip_source import HipSource
from sandbox.kernel import Kernel
from sandbox.target import Target
from skills.cuda_edit import constant_value, constants
from skills.cuda_launches import split_at_commas
from skills.facts import Facts
from skills.skill import Refusal, Site

ATTRIBUTES = {"cudaFuncSetAttribute", "hipFuncSetAttribute"}
ROUTE = "Use smaller tiles, or split the buffer over two passes; sizes above the limit fit no workgroup."


def find(kernel: Kernel, facts: Facts, target: Target) -> Iterable[Site | Refusal]:
    """A refusal per request whose constant size does not fit."""
    source = HipSource(kernel.source)
    limit = target.lds_bytes_per_workgroup
    for size_bytes, line in _requests(source):
        if size_bytes > limit:
            reason = f"{size_bytes} bytes of shared memory, and a workgroup on {target.arch} has {limit} bytes of LDS"
            yield Refusal(reason, line, ROUTE)


def transform(kernel: Kernel, site: Site, target: Target) -> Kernel | None:
    """Nothing to rename: the tile has to shrink."""
    return None


def _requests(source: HipSource) -> Iterator[tuple[int, int]]:
    known = constants(source)
    for call in source.calls(ATTRIBUTES):
        if len(call.args) == 3 and "DynamicSharedMemorySize" in source.slice(call.args[1]):
            value = constant_value(source.slice(call.args[2]), known)
            if value is not None:
                yield value, source.line_of(call.start)
    for m in re.finditer(r"<<<(?P<config>[^;]*?)>>>", source.masked):
        parts = split_at_commas(m["config"], "([{<", ")]}>")
        value = constant_value(parts[2], known) if len(parts) > 2 else None
        if value is not None:
            yield value, source.line_of(m.start())
