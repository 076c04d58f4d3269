"""YAML that people write: the fast loader, keys that may not repeat, and the line a value stands on."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import yaml

FAST_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The parser in C where it is installed."""


def unique_key_loader(base: Any) -> Any:
    """A loader like `base` for which two equal keys of a mapping are an error; YAML itself keeps the last silently."""
    loader: Any = type("UniqueKeyLoader", (base,), {})
    loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _unique_mapping)
    return loader


def _unique_mapping(loader: Any, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
    seen: set[object] = set()
    for key_node, _ in node.value:
        key = loader.construct_object(key_node, deep=True)
        if not isinstance(key, Hashable) or key in seen:
            raise yaml.MarkedYAMLError(problem=f"the key {key!r} appears twice", problem_mark=key_node.start_mark)
        seen.add(key)
    mapping: dict[Any, Any] = loader.construct_mapping(node, deep)
    return mapping


def line_of(node: Any, path: Sequence[int | str]) -> int:
    """The 1-based line of a YAML path below a composed node, or of its deepest part that exists."""
    line = int(node.start_mark.line) + 1
    for part in path:
        if isinstance(node, yaml.MappingNode):
            pair = next(((k, v) for k, v in node.value if k.value == str(part)), None)
            if pair is None:
                return line
            line, node = int(pair[0].start_mark.line) + 1, pair[1]
        elif isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
            node = node.value[part]
            line = int(node.start_mark.line) + 1
        else:
            return line
    return line
