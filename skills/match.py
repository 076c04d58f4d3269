"""Which skills apply to a kernel, where, and why; which constructs have no counterpart on the target."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sandbox.kernel import Kernel
from sandbox.target import Target
from skills.condition import Outcome, Truth
from skills.facts import Facts
from skills.skill import Library, Refusal, Site, Skill

TIMED_METRICS = frozenset({"median_us", "l2_hit_rate", "hbm_bandwidth_share", "mfma_busy_share"})
"""Metrics that only a run on the target can show."""


@dataclass(frozen=True, slots=True)
class Match:
    """One applicable edit: `apply()` gives the edited kernel."""

    skill: Skill
    site: Site
    why: str
    """The conditions that held, with their values."""
    kernel: Kernel
    target: Target

    @property
    def id(self) -> str:
        """Names the edit in reports and logs: skill, jit kernel and variant."""
        place = f"@{self.site.kernel}" if self.site.kernel else ""
        return f"{self.skill.id}{place}:{self.site.label}"

    @property
    def needs_timing(self) -> bool:
        """Whether only a clock can tell if the edit is worth keeping."""
        return self.site.needs_timing or all(e.metric in TIMED_METRICS for e in self.skill.data.expects)

    @property
    def invisible_to_interpreter(self) -> bool:
        """Whether the edit touches only what the Triton interpreter ignores."""
        return self.skill.data.invisible_to_interpreter or self.site.invisible_to_interpreter

    def apply(self) -> Kernel | None:
        """The edited kernel; None when the transformation found that it cannot be made, or changes nothing."""
        edited = self.skill.module.transform(self.kernel, self.site, self.target)
        return None if edited is None or edited.digest == self.kernel.digest else edited


@dataclass(frozen=True, slots=True)
class Unmet:
    """A skill that was not tried, and the conditions that stood against it; none where the source gives it no site."""

    skill: Skill
    kernel: str | None
    outcomes: tuple[Outcome, ...]

    @property
    def reason(self) -> str:
        return (
            "; ".join(o.explanation for o in self.outcomes)
            or "its conditions hold, but the source holds nothing for it to edit"
        )


@dataclass(frozen=True, slots=True)
class Matches:
    """Repairs before tunes; first skills for what holds the kernel back most, then for its other bottlenecks.

    Of equals, those whose effect has a name come before guesses that only a clock can rank: launch numbers are best
    tuned for the code that stays. Then by id and each skill's own preference.
    """

    matches: tuple[Match, ...]
    refusals: tuple[Refusal, ...]
    unmet: tuple[Unmet, ...]

    def __iter__(self) -> Iterator[Match]:
        return iter(self.matches)

    def __len__(self) -> int:
        return len(self.matches)


def match(kernel: Kernel, facts: Facts, target: Target, library: Library) -> Matches:
    """Every edit of the library that applies to `kernel` on `target`, given what is known about it."""
    matches: list[Match] = []
    refusals: list[Refusal] = []
    unmet: list[Unmet] = []
    for skill in sorted(library, key=lambda s: _urgency(s, facts)):
        if kernel.language not in skill.data.languages or target.arch not in skill.data.targets:
            continue
        for name, subject in _subjects(skill, facts):
            outcomes = [c.check(subject, subject.reason) for c in skill.conditions]
            against = tuple(o for o in outcomes if o.truth is not Truth.TRUE)
            if against:
                unmet.append(Unmet(skill, name, against))
                continue
            why = "; ".join(o.explanation for o in outcomes) or "the source holds the construct"
            sites = list(skill.module.find(kernel, subject, target))
            if not sites:
                unmet.append(Unmet(skill, name, ()))
            for found in sites:
                if isinstance(found, Refusal):
                    refusals.append(Refusal(found.reason, found.line, found.route, skill.id))
                elif not found.approximate or subject["request.allow_approx"]:
                    matches.append(Match(skill, found, why, kernel, target))
    return Matches(tuple(matches), _distinct(refusals), tuple(unmet))


def _urgency(skill: Skill, facts: Facts) -> tuple[bool, bool, bool, bool, str]:
    """Sorts skills; lowest first."""
    data = skill.data
    helps = set(data.bottlenecks)
    worst, hot = facts["bottleneck.worst"], set(facts.names("bottlenecks"))
    return data.kind != "repair", worst not in helps, not hot & helps, skill.needs_clock, skill.id


def _subjects(skill: Skill, facts: Facts) -> list[tuple[str | None, Facts]]:
    """The file itself, or each jit kernel that was launched; each that is known where none was.

    Nothing could be shown of an edit to a kernel that the harness leaves out.
    """
    if skill.data.scope == "file":
        return [(None, facts)]
    launched = [name for name, known in facts.kernels.items() if known["launch.count"] is not None]
    return [(name, facts.for_kernel(name)) for name in launched or facts.kernels]


def _distinct(refusals: list[Refusal]) -> tuple[Refusal, ...]:
    return tuple(sorted(dict.fromkeys(refusals), key=lambda r: (r.line, r.reason)))
