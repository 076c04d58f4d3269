"""The rule table at work: skills for CUDA applied to one file until none changes it any more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from agent.port.result import Applied, PortRefusal
from sandbox.hip_diagnostics import Diagnostic
from sandbox.hip_guards import KNOWN_ON_AMD, live_text
from sandbox.hip_source import HipSource
from sandbox.kernel import Kernel, Language
from sandbox.target import Target, load_target
from skills.facts import Facts, target_facts
from skills.match import match
from skills.skill import Library, Skill, load_library

_MAX_APPLICATIONS = 6
"""Of one rule to one file in one round."""


@dataclass(frozen=True, slots=True)
class Repaired:
    text: str
    applied: tuple[Applied, ...]
    refusals: tuple[PortRefusal, ...]


@cache
def port_rules() -> tuple[Skill, ...]:
    """The repair skills for CUDA and HIP, each after those it requires, then by id."""
    rules = {
        s.id: s
        for s in load_library()
        if s.data.kind == "repair" and {Language.CUDA, Language.HIP} & set(s.data.languages)
    }
    ordered: list[Skill] = []

    def add(skill: Skill) -> None:
        if skill in ordered:
            return
        for needed in skill.data.requires:
            if needed in rules:
                add(rules[needed])
        ordered.append(skill)

    for rule_id in sorted(rules):
        add(rules[rule_id])
    return tuple(ordered)


def repair(
    path: str,
    text: str,
    targets: Sequence[str],
    diagnostics: Sequence[Diagnostic] = (),
    macros: Mapping[str, int | str] = KNOWN_ON_AMD,
) -> Repaired:
    """Apply every rule to one file; refusals are collected per target.

    `diagnostics` are those of this file; rules that read them get them as facts. `macros` decides which arms the build
    compiles: what stands in another is ported as far as it goes, and never refused.
    """
    applied: list[Applied] = []
    for rule in port_rules():
        for target in (load_target(t) for t in targets):
            for _ in range(_MAX_APPLICATIONS):
                fresh = _apply_once(rule, path, text, target, diagnostics)
                if fresh is None:
                    break
                text, detail = fresh
                applied.append(Applied(path, rule.id, detail))
    return Repaired(
        text, tuple(applied), tuple(_refusals(path, live_text(HipSource(text), macros), targets, diagnostics))
    )


def _kernel(path: str, text: str) -> Kernel:
    return Kernel(text, path.rsplit("/", 1)[-1], Language.CUDA)


def _facts(target: Target, diagnostics: Sequence[Diagnostic]) -> Facts:
    known = dict(target_facts(target))
    if diagnostics:
        first = diagnostics[0]
        known["diagnostic.message"] = first.message
        known["diagnostic.identifier"] = first.symbol
        known["diagnostic.kinds"] = tuple(dict.fromkeys(d.key.message for d in diagnostics))
        known["diagnostic.places"] = tuple(f"{d.line}:{d.column}:{d.message}" for d in diagnostics)
    return Facts(known)


def _apply_once(
    rule: Skill, path: str, text: str, target: Target, diagnostics: Sequence[Diagnostic]
) -> tuple[str, str] | None:
    found = match(_kernel(path, text), _facts(target, diagnostics), target, Library({rule.id: rule}))
    for candidate in found.matches:
        edited = candidate.apply()
        if edited is not None:
            return edited.source, candidate.site.label
    return None


def _refusals(path: str, text: str, targets: Sequence[str], diagnostics: Sequence[Diagnostic]) -> Sequence[PortRefusal]:
    grouped: dict[tuple[int, str, str, str], list[str]] = {}
    library = Library({rule.id: rule for rule in port_rules()})
    for name in targets:
        target = load_target(name)
        for r in match(_kernel(path, text), _facts(target, diagnostics), target, library).refusals:
            grouped.setdefault((r.line, r.reason, r.route, r.skill_id), []).append(name)
    return [
        PortRefusal(path, line, reason, route, rule, tuple(names))
        for (line, reason, route, rule), names in grouped.items()
    ]


def by_file(diagnostics: Sequence[Diagnostic]) -> Mapping[str, list[Diagnostic]]:
    """Errors of the project's own files, the first of each identifier (the rest are cascades)."""
    grouped: dict[str, list[Diagnostic]] = {}
    for d in diagnostics:
        if d.severity == "error" and d.file and not d.file.startswith("/"):
            grouped.setdefault(d.file, []).append(d)
    return grouped
