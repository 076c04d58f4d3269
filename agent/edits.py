"""Search/replace edits: the only way a model changes a file. Each search text must occur exactly once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from prompts import unseen_characters

MAX_EDITS = 40
EDITS_SCHEMA: Mapping[str, Any] = {
    "type": "array",
    "description": "Search/replace edits of the file; each search text must occur exactly once.",
    "items": {
        "type": "object",
        "properties": {"search": {"type": "string"}, "replace": {"type": "string"}},
        "required": ["search", "replace"],
        "additionalProperties": False,
    },
}
"""Of a tool's argument."""


class EditError(ValueError):
    """An edit cannot be applied; the message tells the model how to correct it."""


@dataclass(frozen=True, slots=True)
class Edit:
    search: str
    replace: str


def parse_edits(value: object) -> list[Edit]:
    """Edits from a tool call's arguments; raises `EditError` naming what is wrong with which one."""
    if not isinstance(value, list) or not value:
        raise EditError("`edits` must be a list of {search, replace} objects, at least one.")
    if len(value) > MAX_EDITS:
        raise EditError(f"at most {MAX_EDITS} edits per candidate; combine neighbouring ones.")
    edits = []
    for n, entry in enumerate(value, 1):
        if not isinstance(entry, dict) or set(entry) != {"search", "replace"}:
            raise EditError(f"edit {n} must have exactly the keys search and replace.")
        search, replace = entry["search"], entry["replace"]
        if not isinstance(search, str) or not isinstance(replace, str):
            raise EditError(f"edit {n}: search and replace must be text.")
        edits.append(Edit(search, replace))
    return edits


def apply_edits(source: str, edits: Sequence[Edit]) -> str:
    """The edited text. Every search is looked up in the original, so edits cannot build on each other's results."""
    spans: list[tuple[int, int, str]] = []
    for n, edit in enumerate(edits, 1):
        if not edit.search.strip():
            raise EditError(f"edit {n}: the search text is empty.")
        count = source.count(edit.search)
        if count != 1:
            found = (
                "does not occur in the file; copy it exactly" if count == 0 else f"occurs {count} times; make it longer"
            )
            raise EditError(f"edit {n}: the search text {found}.")
        start = source.index(edit.search)
        spans.append((start, start + len(edit.search), edit.replace))
    spans.sort()
    for (_, end, _), (start, _, _) in pairwise(spans):
        if start < end:
            raise EditError("two edits overlap; combine them into one.")
    edited = source
    for start, end, text in reversed(spans):
        edited = edited[:start] + text + edited[end:]
    if hidden := unseen_characters(edited) - unseen_characters(source):
        named = ", ".join(f"U+{ord(c):04X}" for c in sorted(hidden)[:5])
        raise EditError(f"the edits add characters that a reader does not see: {named}.")
    return edited
