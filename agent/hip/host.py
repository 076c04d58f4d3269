"""The part of a HIP file that no emulated launch executes: host functions, and the names that they are built from."""

from __future__ import annotations

from agent.port.items import Item, items_of
from sandbox.hip_source import HipSource
from sandbox.kernel import Kernel

_DEVICE = frozenset({"__device__", "__global__", "__shared__"})


def host_text(kernel: Kernel) -> tuple[str, ...]:
    """The tokens of a file, comments left out, less its device functions and the types that only they use."""
    source = HipSource(kernel.source)
    spans = [(i.start, i.end) for i in items_of(source) if _is_device(i)]
    return tuple(t.text for t in source.code if not any(start <= t.start < end for start, end in spans))


def _is_device(item: Item) -> bool:
    if item.kind == "type":
        return bool(item.words & _DEVICE) and "__host__" not in item.words
    return bool(item.head_words & _DEVICE) and "__host__" not in item.head_words
