"""Phase 2, Match & Fix: what is known about a kernel, matched against the skill library; each match is one proposal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agent.candidate import NEEDS_CLOCK, NEEDS_CLOCK_OF_TARGET, Attempt, Fate, Measurement, Offers, Proposal, Unmatched
from sandbox.target import Target, Vendor, load_target
from skills.match import Match, Unmet, match
from skills.skill import CLOCK_METRICS, Library, Skill

TIMED_METRICS = CLOCK_METRICS | {"l2_hit_rate", "hbm_bandwidth_share", "mfma_busy_share", "memory_stall_share"}
"""Metrics that only a run on a device can show. An edit with a named cause among them is offered as unmeasured."""


@dataclass(frozen=True, slots=True)
class SkillProposer:
    """Proposes what the skill library matches: repairs while the file does not build, tunes once it does."""

    target: Target
    library: Library
    clock: Vendor | None
    """Whose GPU is at hand to time candidates on."""

    def propose(self, measured: Measurement, history: Sequence[Attempt]) -> Offers:
        """Deterministic: the order is that of the library. `history` decides requirements and conflicts."""
        matches = match(measured.kernel, measured.facts, self.target, self.library)
        kept = {a.proposal.origin for a in history if a.fate in (Fate.KEPT, Fate.STEP)}
        matched = {m.skill.id for m in matches.matches}
        unmatched = list(_nearest([u for u in matches.unmet if u.skill.id not in matched]))
        untried = {m.skill.id for m in matches.matches if not self._untimed(m)} - {a.proposal.origin for a in history}
        proposals: list[Proposal] = []
        for found in sorted(matches.matches, key=lambda m: _turns(m, history)):
            obstacle = _obstacle(found, measured, kept, matched, untried) or self._untimed(found)
            if obstacle:
                unmatched.append(Unmatched(found.skill.id, found.skill.data.title, obstacle))
            else:
                proposals += _proposal(found, self._is_foreign(found.skill))
        return Offers(proposals, matches.refusals, unmatched)

    def _untimed(self, found: Match) -> str:
        """Why an edit that only a clock can rank is not tried; empty when it may be."""
        if not (found.site.needs_timing or found.skill.needs_clock):
            return ""
        if self.clock is None:
            return NEEDS_CLOCK
        return NEEDS_CLOCK_OF_TARGET if self._is_foreign(found.skill) else ""

    def _is_foreign(self, skill: Skill) -> bool:
        """Whether the skill is about nothing that the GPU at hand has."""
        return self.clock is not None and all(load_target(name).vendor != self.clock for name in skill.data.targets)


def _turns(found: Match, history: Sequence[Attempt]) -> int:
    """How often a guess about this kernel was kept: the file's other kernels have their turn before a second one."""
    group = found.id.split(":", 1)[0]
    return sum(a.fate is Fate.KEPT and a.proposal.id.startswith(f"{group}:") for a in history) * found.skill.needs_clock


def _nearest(unmet: Sequence[Unmet]) -> Iterator[Unmatched]:
    """One per skill: the kernel that it came closest to fitting, named where there are several."""
    nearest: dict[str, Unmet] = {}
    for one in unmet:
        known = nearest.setdefault(one.skill.id, one)
        if len(one.outcomes) < len(known.outcomes):
            nearest[one.skill.id] = one
    several = len({u.kernel for u in unmet if u.kernel}) > 1
    for one in nearest.values():
        place = f"{one.kernel}: " if several and one.kernel else ""
        yield Unmatched(one.skill.id, one.skill.data.title, place + one.reason)


def _obstacle(found: Match, measured: Measurement, kept: set[str], matched: set[str], untried: set[str]) -> str:
    """Why a match is not proposed now; empty when it is."""
    data = found.skill.data
    if data.kind == "repair" and measured.builds and not found.site.latent:
        return "the file builds, so there is nothing to repair"
    conflicts = sorted(kept & set(data.conflicts))
    if conflicts:
        return f"it conflicts with {', '.join(conflicts)}, which was kept"
    waiting = sorted(((set(data.requires) & matched) - kept) | (set(data.after) & untried))
    if waiting:
        return f"it comes after {', '.join(waiting)}"
    return ""


def _proposal(found: Match, foreign: bool) -> Iterator[Proposal]:
    edited = found.apply()
    if edited is None:
        return
    data = found.skill.data
    yield Proposal(
        id=found.id,
        origin=found.skill.id,
        title=data.title,
        why=found.why,
        kernel=edited,
        repair=data.kind == "repair",
        needs_timing=found.needs_timing or all(e.metric in TIMED_METRICS for e in data.expects),
        foreign=foreign,
        invisible=found.invisible_to_interpreter,
        expects=tuple(f"{e.metric} {e.direction}" for e in data.expects),
        line=found.site.line,
        latent=found.site.latent,
    )
