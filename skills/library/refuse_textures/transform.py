"""Texture and surface objects."""

from __future__ import annotations

from collections.abc import Iterable

from sandbox.kernel import Kernel
from sandbox.target import Target
from skills.cuda_edit import refusals
from skills.facts import Facts
from skills.skill import Refusal, Site

CONSTRUCTS = {
    r"\btex(1D|2D|3D|Cubemap)\w*\s*(<[^;()]*>)?\s*\(|\btexture\s*<": "texture fetches",
    r"\bsurf(1D|2D|3D|Cubemap)\w*\s*(<[^;()]*>)?\s*\(|\bsurface\s*<": "surface accesses",
    r"\bcuda(Texture|Surface)Object_t\b|\bcudaCreate(Texture|Surface)Object\b": "texture objects",
}
REASON = "CDNA has no image instructions, so textures cannot be fetched"
ROUTE = "Read the array with ordinary loads and write the filtering and addressing out."


def find(kernel: Kernel, facts: Facts, target: Target) -> Iterable[Site | Refusal]:
    """A refusal at the first live use of each construct."""
    return refusals(kernel, CONSTRUCTS, REASON, ROUTE)


def transform(kernel: Kernel, site: Site, target: Target) -> Kernel | None:
    """Nothing to rename: the construct has no counterpart."""
    return None
