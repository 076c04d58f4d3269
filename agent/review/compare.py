"""Base against head: which sightings a change introduces, which it only touches, and which are none of its business."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from agent.review.changes import ChangedFile
from agent.review.config import ReviewConfig
from agent.review.finding import Finding, fingerprint
from agent.review.fixes import make_fix
from agent.review.source import Sighting


def compare(
    file: ChangedFile,
    kernels: Sequence[str],
    base: Sequence[Sighting],
    head: Sequence[Sighting],
    config: ReviewConfig,
) -> list[Finding]:
    """The findings of one file. `kernels` are those that the change affects."""
    known = Counter(s.key for s in _merged(base))
    values = {s.key: s.value for s in _merged(base)}
    ordinals: Counter[tuple[str, str, str]] = Counter()
    findings: list[Finding] = []
    for s in sorted(_grouped(_without_echo(_merged(head)), known, file), key=lambda s: (s.line, s.rule, s.code)):
        was_there = known[s.key] > 0
        known[s.key] -= was_there
        before = values.get(s.key)
        worse = was_there and s.value is not None and before is not None and s.value > before
        origin: Literal["introduced", "touched"] = "touched" if was_there and not worse else "introduced"
        if origin == "touched" and s.kernel not in kernels:
            continue
        level = config.level_of(s.rule)
        if level is not None:
            ordinals[s.key] += 1
            findings.append(_finding(file, s, origin, ordinals[s.key], before if worse else None, config))
    return findings


def _merged(sightings: Sequence[Sighting]) -> list[Sighting]:
    """The same sighting for several targets as one."""
    merged: dict[tuple[tuple[str, str, str], int], Sighting] = {}
    for s in sightings:
        place = (s.key, s.line)
        if place in merged:
            first = merged[place]
            targets = tuple(dict.fromkeys([*first.targets, *s.targets]))
            value = max((v for v in (first.value, s.value) if v is not None), default=None)
            merged[place] = replace(first, targets=targets, value=value, repaired=first.repaired or s.repaired)
        else:
            merged[place] = s
    return list(merged.values())


def _without_echo(sightings: list[Sighting]) -> list[Sighting]:
    """A build failure that a more telling sighting already explains is that sighting, now seen compiled.

    It explains it when it names the failing line, or when its own repair is what makes the file build.
    """
    constructs = [s for s in sightings if s.rule == "cuda-only"]
    pairs = [(f, s) for f in sightings if f.rule == "does-not-build" for s in constructs if _explains(s, f)]
    found = []
    for s in sightings:
        if any(s is f for f, _ in pairs):
            continue
        failures = [f for f, c in pairs if c is s]
        if failures:
            mended = next((f for f in failures if f.repaired is not None), None)
            s = replace(s, evidence="compiled")
            if mended is not None:
                s = replace(s, repaired=mended.repaired, builds=True, remedy=mended.remedy)
        found.append(s)
    return found


def _explains(construct: Sighting, failure: Sighting) -> bool:
    if construct.line <= failure.line <= construct.end_line:
        return True
    both = construct.repaired, failure.repaired
    return both[0] is not None and both[1] is not None and both[0].source == both[1].source


def _grouped(sightings: list[Sighting], known: Counter[tuple[str, str, str]], file: ChangedFile) -> list[Sighting]:
    """New uses of one construct as one sighting: the first inside a kernel, with the others counted."""
    groups: dict[str, list[Sighting]] = {}
    rest: list[Sighting] = []
    left = Counter(known)
    for s in sorted(sightings, key=lambda s: (file.touches(s.line, s.end_line), s.line)):
        if s.rule == "cuda-only" and s.repaired is not None and not left[s.key] > 0:
            groups.setdefault(s.title, []).append(s)
        else:
            left[s.key] -= 1
            rest.append(s)
    for members in groups.values():
        ordered = sorted(members, key=lambda s: (s.kernel == "", s.line))
        first = ordered[0]
        others = sorted({m.line for m in ordered[1:]} - {first.line})
        lines = ", ".join(map(str, others[:8])) + (" and more" if len(others) > 8 else "")
        more = f" Also in line{'s' if len(others) > 1 else ''} {lines}." if others else ""
        best = next((m for m in ordered if m.builds), first)
        evidence = "compiled" if any(m.evidence == "compiled" for m in ordered) else first.evidence
        rest.append(
            replace(
                first,
                message=first.message + more,
                evidence=evidence,
                repaired=best.repaired,
                builds=best.builds,
                remedy=best.remedy,
            )
        )
    return rest


def _finding(
    file: ChangedFile,
    s: Sighting,
    origin: Literal["introduced", "touched"],
    ordinal: int,
    before: float | None,
    config: ReviewConfig,
) -> Finding:
    level = config.level_of(s.rule)
    assert level is not None
    last = max(1, file.after_text.count("\n") + (not file.after_text.endswith("\n")))
    line = min(max(1, s.line), last)
    message = f"{s.message} It was {before:g} before the change." if before is not None else s.message
    fix = make_fix(file, s.repaired, s.title, "compiled" if s.builds else "none") if s.repaired is not None else None
    return Finding(
        fingerprint=fingerprint(s.rule, file.path, s.kernel, s.code, ordinal),
        rule=s.rule,
        level=level,
        origin=origin,
        path=file.path,
        line=line,
        end_line=min(max(line, s.end_line), last),
        kernel=s.kernel[:300],
        targets=s.targets,
        evidence=s.evidence,
        message=message[:4000],
        remedy=(s.remedy or _REMEDIES.get(s.rule, ""))[:4000],
        fix=fix,
    )


_REMEDIES = {
    "lane-32": "Write the lane count as a parameter, or pin the code to 32 lanes as `wavesmith port` does.",
    "lock-step": "Synchronise explicitly; do not rely on the schedule.",
    "lds-overflow": "Smaller tiles or fewer pipeline stages need less LDS.",
    "launch-limit": "Use fewer warps, or give each program more work.",
}
