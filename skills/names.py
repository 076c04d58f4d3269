"""Names for what an edit adds."""

from __future__ import annotations


def fresh_name(stem: str, taken: set[str], joint: str = "_") -> str:
    """`stem`, with a number behind `joint` where that is taken; it is taken from then on."""
    name, number = stem, 1
    while name in taken:
        number += 1
        name = f"{stem}{joint}{number}"
    taken.add(name)
    return name
