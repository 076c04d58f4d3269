"""The text of a PTX snippet: its statements, and whose assembly it is."""

from __future__ import annotations

import re

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_NOTHING = re.compile(r"^(\.reg\b.*|griddepcontrol\..*|)$", re.DOTALL)


def instructions(asm: str) -> list[str]:
    """The statements of a PTX snippet, without comments, braces and declarations."""
    body = _COMMENT.sub("", asm).replace("{", " ").replace("}", " ") if _has_scope(asm) else _COMMENT.sub("", asm)
    return [s.strip() for s in body.split(";") if not _NOTHING.match(s.strip())]


def _has_scope(asm: str) -> bool:
    """Whether braces open a register scope rather than list the registers of a vector operand."""
    return asm.lstrip().startswith("{")


def is_amd_assembly(asm: str, constraints: str) -> bool:
    """Whether the text is AMDGCN assembly, which is none of our business."""
    first = asm.strip().split(None, 1)[0] if asm.strip() else ""
    return bool(re.match(r"[vs]_|ds_|global_|buffer_|flat_|;", first)) or bool(re.search(r"=&?[vsa]\b", constraints))


def is_dependent_launch_only(asm: str) -> bool:
    """Whether the snippet holds nothing but `griddepcontrol` instructions."""
    return "griddepcontrol" in asm and not instructions(asm)
