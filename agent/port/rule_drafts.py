"""What a model's accepted repair teaches: rows for the rule table, proposed for a person to accept.

A draft has the shape of `diagnostic_rules.yaml` and `status: proposed`, with which it answers nothing.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from agent.port.includes import includes_of
from sandbox.hip_diagnostics import Diagnostic
from sandbox.hip_source import HipSource, Token

DRAFTS_FILE = "proposed_rules.yaml"
MAX_REPLACED = 400
"""Characters that a replacement may look for; a longer one is a rewrite of this file, not a rule."""
_HEAD = """\
# Proposed by a model's repair that was compiled and kept. Read each row: it is used only once its status is changed
# from proposed to accepted and the file is given to `wavesmith port --rules FILE` (or named by WAVESMITH_PORT_RULES).
"""


@dataclass(frozen=True)
class ModelEdit:
    """One text that a model changed, and what the compilers said of it before."""

    path: str
    before: str
    after: str
    diagnostics: tuple[Diagnostic, ...]
    model: str


def drafts(edits: Sequence[ModelEdit], left: Iterable[Diagnostic]) -> str:
    """The rows for diagnostics that the edits ended, as YAML; empty when none became a rule."""
    open_keys = {(d.key.text, d.symbol) for d in left}
    rows: dict[str, dict[str, Any]] = {}
    for edit in edits:
        for d in edit.diagnostics:
            if (d.key.text, d.symbol) in open_keys or not d.symbol:
                continue
            action = next(_actions(edit, d), None)
            if action is not None:
                row = _row(d, action, edit.model)
                rows.setdefault(row["id"], row)
    return _HEAD + yaml.safe_dump(list(rows.values()), sort_keys=False, width=120) if rows else ""


def _row(d: Diagnostic, action: dict[str, Any], model: str) -> dict[str, Any]:
    words = re.findall(r"[a-z0-9]+", f"{d.key.message} {d.symbol}".lower())
    name = "-".join(w for w in words if w not in ("of", "in", "the", "use", "no"))
    row: dict[str, Any] = {
        "id": f"proposed-{name}"[:80].rstrip("-"),
        "status": "proposed",
        "message": f"{re.escape(d.key.message)}$",
        "identifier": f"^{re.escape(d.symbol)}$",
    }
    if d.key.header:
        row["header"] = f"^{re.escape(d.key.header)}$"
    return row | action | {"why": f"repair of {model}, compiled without this complaint; not read by a person yet"}


def _actions(edit: ModelEdit, d: Diagnostic) -> Iterator[dict[str, Any]]:
    """What the edit did about one diagnostic: another name everywhere, one more header, or other text in its place."""
    before, after = HipSource(edit.before), HipSource(edit.after)
    pairs = list(_replaced(before, after))
    about = [(old, new) for old, new in pairs if any(t.text == d.symbol for t in old)]
    names = {(old[0].text, new[0].text) for old, new in about if len(old) == len(new) == 1}
    if len(names) == 1 and len(about) == sum(t.text == d.symbol for t in before.code):
        old_name, new_name = next(iter(names))
        if re.fullmatch(r"[A-Za-z_]\w*", new_name) and old_name == d.symbol:
            yield {"rename": new_name}
    added = [i.name for i in includes_of(edit.after) if i.name not in {j.name for j in includes_of(edit.before)}]
    if not about and len(added) == 1:
        yield {"include": added[0]}
    for old, new in about:
        text = edit.before[old[0].start : old[-1].end]
        if new and len(text) <= MAX_REPLACED:
            yield {"replace": {"old": text, "new": edit.after[new[0].start : new[-1].end]}}


def _replaced(before: HipSource, after: HipSource) -> Iterator[tuple[Sequence[Token], Sequence[Token]]]:
    """Runs of tokens that became other runs, each widened to whole calls so that brackets stay paired."""
    old, new = [[t.text for t in s.code] for s in (before, after)]
    codes = difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    done = 0
    for tag, i, j, k, _ in codes:
        if tag in ("replace", "delete") and i >= done:
            done = max(_closed(old, i, j), j)
            yield before.code[i:done], after.code[k : _counterpart(codes, done)]


def _counterpart(codes: Sequence[tuple[str, int, int, int, int]], end: int) -> int:
    """Where in the new tokens lies what `end` is in the old ones."""
    for tag, i, j, k, n in codes:
        if i < end <= j:
            return k + (end - i) if tag == "equal" else n
    return 0


def _closed(words: Sequence[str], start: int, end: int) -> int:
    """`end`, moved on until the brackets opened since `start` are closed."""
    depth = 0
    for i in range(start, len(words)):
        if i >= end and depth <= 0:
            return i
        depth += (words[i] in "([{") - (words[i] in ")]}")
    return end
