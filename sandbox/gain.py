"""Whether a candidate is better: from its code objects and from counts of an emulated run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sandbox.compiling import Compiled
from sandbox.emulator.cycles import alu_cycles
from sandbox.profiler.metrics import Profile
from sandbox.profiler.static import compare_static, resource_gains, static_profile
from sandbox.statements import counted_statement, predicted_statement, static_statement
from sandbox.target import Target
from sandbox.trials import Trial
from sandbox.verdict import CompileFailed, Gain, Speed


@dataclass(frozen=True, slots=True)
class Improvement:
    """A gain, or the reason why there is none to claim."""

    gain: Gain | None
    reason: str = ""
    timed_on: str | None = None
    """The GPU that timed it, where that showed no gain."""
    slower: bool = False
    doubted: bool = False
    """Whether a clock was asked and not believed; `reason` says why."""


def builds(trial: Trial) -> bool:
    """Whether every launch of the recorded calls builds for the target and keeps to its launch limits."""
    return bool(trial.compiled) and all(c.record.launches for c in trial.compiled) and trial.import_error is None


def build_failure(trial: Trial) -> CompileFailed | None:
    """The first launch that does not build, or that the runtime would refuse."""
    for launch in trial.compiled:
        record = launch.record
        if not record.ok:
            return CompileFailed(record.message or "it does not compile", launch.kernel, record.file, record.line)
        if record.limit is not None:
            return CompileFailed(record.limit, launch.kernel)
    return None


def profiles_of(trial: Trial, target: Target) -> dict[str, Profile]:
    """Static profile of each kernel, the heaviest launch of each name: most registers, then most LDS."""
    found: dict[str, Profile] = {}
    for launch in trial.compiled:
        if isinstance(launch.result, Compiled):
            profile = static_profile(launch.result, target)
            known = found.get(launch.kernel)
            if known is None or _weight(profile) > _weight(known):
                found[launch.kernel] = profile
    return found


def _weight(profile: Profile) -> tuple[float, float]:
    return profile.number("vgpr_count") or 0.0, profile.number("lds_bytes") or 0.0


def improvement(baseline: Trial, candidate: Trial, expects: Mapping[str, str], target: Target) -> Improvement:
    """`static_improvement` of two trials."""
    return static_improvement(profiles_of(baseline, target), profiles_of(candidate, target), expects, target)


def static_improvement(
    before: Mapping[str, Profile], after: Mapping[str, Profile], expects: Mapping[str, str], target: Target
) -> Improvement:
    """What got better in the code objects while nothing got worse.

    Kernels are compared by name; kernels that only one side has are compared with the other side's only other one, and
    make a static comparison impossible where there are more.
    """
    pairs = pairs_of(before, after)
    if not pairs:
        return Improvement(None, "the kernels of baseline and candidate cannot be compared one by one")
    moved: dict[str, tuple[float, float]] = {}
    for name, (old, new) in pairs.items():
        judged = compare_static(old, new, expects or unnamed_gains(old, new), target)
        if judged.worsened:
            return Improvement(None, f"{name}: {static_statement(judged.worsened)} is worse")
        for metric, values in judged.improved.items():
            moved[metric if len(pairs) == 1 else f"{name}: {metric}"] = values
    if not moved:
        return Improvement(None, "no resource of the code object moved the right way; not timed")
    return Improvement(Gain(Speed.STATIC, static_statement(moved), metrics=moved))


def unnamed_gains(old: Profile, new: Profile) -> dict[str, str]:
    """What got better where nobody said what should: resources, and what the code no longer has to do around its
    atomics, as far as there are no more of these."""
    more = new.count("global_atomic_count") > old.count("global_atomic_count")
    around = {} if more else {"cas_loop_count": "down", "cache_maintenance_count": "down"}
    return {**resource_gains(old, new), **around}


_COUNTERS = {
    "executed_lane_atomics": "lane_atomics",
    "executed_atomics_on_one_address": "lane_atomics_one_address",
    "executed_instructions": "SQ_INSTS",
    "executed_lds_atomics": "lds_lane_atomics",
    "executed_vector_loads": "SQ_INSTS_VMEM_RD",
    "lds_bank_conflicts": "SQ_LDS_BANK_CONFLICT",
}
ENOUGH = 0.9
"""What a count has to fall below, of what it was, to be a gain."""
MODELLED = frozenset({"lds_bank_conflicts"})
"""Metrics that the emulator predicts with a model of the hardware."""
COUNTED = frozenset({*_COUNTERS, "executed_alu_cycles"}) - MODELLED
"""Metrics that an emulated run counts."""


def _count(name: str, counters: Mapping[str, int], target: Target) -> float | None:
    if name == "executed_alu_cycles":
        return alu_cycles(counters, target)
    return float(counters.get(_COUNTERS[name], 0))


def counts_of(trial: Trial) -> dict[str, int] | None:
    """What all launches of a trial counted together; None when one was not emulated to its end."""
    launches = [launch for call in trial.calls for launch in call.launches]
    if not launches or any(not launch.executed or not launch.counters for launch in launches):
        return None
    return summed(launch.counters for launch in launches)


def summed(counters: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Counters of several launches together."""
    total: dict[str, int] = {}
    for one in counters:
        for name, value in one.items():
            total[name] = total.get(name, 0) + value
    return total


def counted_improvement(baseline: Trial, candidate: Trial, expects: Mapping[str, str], target: Target) -> Improvement:
    """`improvement_in_counts` of two trials."""
    before, after = counts_of(baseline), counts_of(candidate)
    if before is None or after is None:
        return Improvement(None, "not every launch could be emulated, so nothing was counted")
    return improvement_in_counts(before, after, expects, target)


def improvement_in_counts(
    before: Mapping[str, int], after: Mapping[str, int], expects: Mapping[str, str], target: Target
) -> Improvement:
    """Counts of the same calls, emulated on both sides; one of the named metrics has to move its way: by a tenth at
    least, by half where `expects` says `halved`."""
    moved = _moved_down(before, after, {n: d for n, d in expects.items() if n in COUNTED}, target)
    if not moved:
        return Improvement(None, "no count of the emulated run moved the right way; not timed")
    return Improvement(Gain(Speed.COUNTED, counted_statement(moved), metrics=moved))


def modelled_improvement(
    before: Mapping[str, int], after: Mapping[str, int], expects: Mapping[str, str], target: Target
) -> Improvement:
    """As `improvement_in_counts`, of what the emulator only predicts."""
    moved = _moved_down(before, after, {n: d for n, d in expects.items() if n in MODELLED}, target)
    if not moved:
        return Improvement(None, "nothing that the emulator predicts moved the right way; not timed")
    return Improvement(Gain(Speed.MODELLED, predicted_statement(moved), metrics=moved))


def _moved_down(
    before: Mapping[str, int], after: Mapping[str, int], expects: Mapping[str, str], target: Target
) -> dict[str, tuple[float, float]]:
    moved: dict[str, tuple[float, float]] = {}
    for name, direction in expects.items():
        old, new = (_count(name, c, target) for c in (before, after))
        if old and new is not None and (new <= 0.5 * old if direction == "halved" else new < ENOUGH * old):
            moved[name.removeprefix("executed_")] = (old, new)
    return moved


def more_spills(baseline: Trial, candidate: Trial, target: Target) -> str:
    """`more_spills_in` of two trials."""
    return more_spills_in(profiles_of(baseline, target), profiles_of(candidate, target))


def more_spills_in(before: Mapping[str, Profile], after: Mapping[str, Profile]) -> str:
    """Which of spills and scratch the candidate's kernels need more of, all together; empty when none.

    Occupancy is left out: a count may fall because each lane holds more.
    """
    worse: dict[str, tuple[float, float]] = {}
    for name in ("vgpr_spill_count", "sgpr_spill_count", "scratch_bytes"):
        old, new = (sum(p.number(name) or 0.0 for p in side.values()) for side in (before, after))
        if new > old:
            worse[name] = (old, new)
    return f"{static_statement(worse)} is worse" if worse else ""


def pairs_of(before: Mapping[str, Profile], after: Mapping[str, Profile]) -> dict[str, tuple[Profile, Profile]]:
    """Which kernel of the candidate stands for which of the baseline; empty where that cannot be told."""
    common = {n: (before[n], after[n]) for n in before if n in after}
    old, new = [n for n in before if n not in after], [n for n in after if n not in before]
    if len(old) == len(new) == 1:
        return {**common, new[0]: (before[old[0]], after[new[0]])}
    return common if not old and not new else {}
