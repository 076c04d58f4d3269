"""From an edited kernel file to a fix: its patch, and a suggestion where the edit is local and inside the diff."""

from __future__ import annotations

import difflib

from agent.patch import FileChange, restore_bytes, unified_diff
from agent.review.changes import ChangedFile, text_lines
from agent.review.finding import MAX_PATCH_CHARACTERS, Fix, Suggestion
from sandbox.kernel import Kernel

MAX_SUGGESTED_LINES = 40


def make_fix(
    file: ChangedFile,
    repaired: Kernel,
    title: str,
    correctness: str,
    *,
    speed: str = "none",
    statement: str = "",
    whole_patch: str | None = None,
) -> Fix | None:
    """The fix that turns the head's file into `repaired`; None when its patch is too large to be shown.

    `correctness` is what was shown of the repaired file; `whole_patch` replaces the patch where other files change too.
    """
    after = restore_bytes(file.after, repaired.source)
    own = unified_diff([FileChange(file.path, file.after, after)]).decode("utf-8", "replace")
    patch = whole_patch or own
    if not patch or len(patch) > MAX_PATCH_CHARACTERS:
        return None
    said = statement or _STATEMENTS.get(correctness, "")
    return Fix(
        title=title[:300] or "Edit",
        path=file.path,
        patch=patch,
        suggestion=suggest(file, repaired.source) if patch == own else None,
        correctness=correctness,
        speed=speed,
        statement=said,
    )


_STATEMENTS = {
    "none": "Not built and not run: made from the source alone.",
    "compiled": "Builds for the target; results were not compared.",
}


def suggest(file: ChangedFile, repaired: str) -> Suggestion | None:
    """The edit as one replacement of consecutive lines; None when it is wide, or lies outside the shown diff."""
    before, after = text_lines(file.after_text), text_lines(repaired)
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    edits = [o for o in matcher.get_opcodes() if o[0] != "equal"]
    if not edits:
        return None
    start, end = edits[0][1], edits[-1][2]
    new_start, new_end = edits[0][3], edits[-1][4]
    if start == end:  # an insertion replaces the line before it, or the one after it at the top
        if start > 0:
            start, new_start = start - 1, new_start - 1
        else:
            end, new_end = end + 1, new_end + 1
    if end - start > MAX_SUGGESTED_LINES or end > len(before) or not file.shows(start + 1, end):
        return None
    text = "\n".join(after[new_start:new_end])
    return Suggestion(start=start + 1, end=end, text=text) if len(text) <= 10_000 else None
