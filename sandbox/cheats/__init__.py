"""The static scan: what a candidate adds to its baseline that no honest kernel edit needs.

The scan is the first of two lines. It is relative: a construct the baseline holds too is not the candidate's doing.
What it rejects is rejected with a line number and the name of the rule; what may be honest is noted, and the dynamic
checks of `sandbox.evaluate` have to cover it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sandbox.cheats.finding import Finding, Severity
from sandbox.cheats.host import Item, host_items
from sandbox.cheats.kernel_rules import UNSEEN_WORDS, BlindEdits, blind_edits, kernel_items
from sandbox.cheats.names import TARGET_QUERIES
from sandbox.cheats.orderings import permitted
from sandbox.cheats.scope import scope_items
from sandbox.cheats.source import Source, read_source
from sandbox.kernel import Kernel, Language

__all__ = ["UNSEEN_WORDS", "BlindEdits", "Finding", "Severity", "find_blind_edits", "scan"]


def scan(baseline: Kernel, candidate: Kernel) -> list[Finding]:
    """Findings in the candidate's file and companions, in order of line; rejecting ones first."""
    findings: list[Finding] = []
    for name, before, after in _pairs(baseline, candidate):
        findings += _scan_file(name, before, after)
    findings.sort(key=lambda f: (f.severity is not Severity.REJECT, f.filename, f.line))
    return findings


def _pairs(baseline: Kernel, candidate: Kernel) -> Iterator[tuple[str, str, str]]:
    yield candidate.filename, baseline.source, candidate.source
    for name in sorted(set(baseline.companions) | set(candidate.companions)):
        if name.endswith(".py") and baseline.companions.get(name) != candidate.companions.get(name):
            yield name, baseline.companions.get(name, ""), candidate.companions.get(name, "")


def _scan_file(name: str, before_text: str, after_text: str) -> list[Finding]:
    before, after = read_source(before_text, name), read_source(after_text, name)
    findings = [
        Finding(check, line, message, Severity.REJECT, name)
        for check, _, line, message in [*_new_items(before, after), *scope_items(before, after)]
    ]
    findings += [
        Finding("lower-precision", line, f"{words} keeps fewer bits than before", Severity.REJECT, name)
        for line, words in blind_edits(before, after).lowered
    ]
    return [*findings, *_notes(name, before, after)]


def _new_items(before: Source, after: Source) -> list[Item]:
    """Items of the candidate beyond as many of the same key as the baseline has."""
    left: dict[str, int] = {}
    for _, key, _, _ in _all_items(before):
        left[key] = left.get(key, 0) + 1
    fresh: list[Item] = []
    for item in _all_items(after, permitted(before, after)):
        if left.get(item[1], 0) > 0:
            left[item[1]] -= 1
        else:
            fresh.append(item)
    return fresh


def _all_items(source: Source, orderings: frozenset[int] = frozenset()) -> Iterator[Item]:
    yield from host_items(source, orderings)
    yield from kernel_items(source)


def _notes(name: str, before: Source, after: Source) -> list[Finding]:
    """Constructs that are often honest: branches on the target, branches on exact sizes."""
    notes: list[Finding] = []
    old = {ast.unparse(n) for n in ast.walk(before.tree) if isinstance(n, ast.Compare | ast.Attribute)}
    for node in ast.walk(after.tree):
        if isinstance(node, ast.Compare) and _compares_size(node) and ast.unparse(node) not in old:
            text = f"`{ast.unparse(node)}` singles out one size"
            notes.append(Finding("hard-coded-shape", node.lineno, text, Severity.NOTE, name))
        elif isinstance(node, ast.Attribute) and ast.unparse(node) not in old:
            resolved = after.resolve(node) or ""
            if resolved in TARGET_QUERIES:
                notes.append(Finding("target-branch", node.lineno, f"asks for `{resolved}`", Severity.NOTE, name))
    return notes


def _compares_size(node: ast.Compare) -> bool:
    """`x.shape == (128, 64)`, `M == 4096`: equality with a literal size above any tuning constant of two."""
    if not all(isinstance(op, ast.Eq | ast.In) for op in node.ops) or "bitwidth" in ast.unparse(node.left):
        return False
    numbers = [
        n.value
        for side in (node.left, *node.comparators)
        for n in ast.walk(side)
        if isinstance(n, ast.Constant) and isinstance(n.value, int) and not isinstance(n.value, bool)
    ]
    return any(n >= 16 for n in numbers)


def find_blind_edits(baseline: Kernel, candidate: Kernel) -> BlindEdits:
    """What the candidate changes that interpreting it does not show; files that are no Python have none."""
    if candidate.language is not Language.TRITON:
        return BlindEdits(False, (), (), ())
    before, after = read_source(baseline.source, baseline.filename), read_source(candidate.source, candidate.filename)
    return blind_edits(before, after)
