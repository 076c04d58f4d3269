"""The recorded launches of a file, run as compiled code in the CPU emulator: findings and counts, no comparison."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from agent.baseline import Baseline, take_baseline
from agent.events import Phase, Progress
from agent.job import JobRequest
from sandbox.correctness import compare
from sandbox.errors import InputError
from sandbox.isolation import Limits
from sandbox.trials import Call, Request, TrialLaunch, run_trial
from sandbox.variants import RECORDED, Step

LIMITS = Limits(wall_s=600.0, launch_s=120.0)


_FORBIDDEN = ("trapped: ", "deadlock: ")
"""How the reason of a launch starts that did not end because of what the kernel does."""
SCHEDULES = ("lockstep", "sequential", "reverse", "random")


def parse_schedules(text: str) -> tuple[str, ...]:
    """`lockstep`, `sequential`, `reverse`, `random` or `random:SEED`, or `all` four. Raises `InputError` otherwise."""
    if text == "all":
        return (*SCHEDULES[:3], "random:0")
    name, colon, seed = text.partition(":")
    fits = name in SCHEDULES and (not colon or (name == "random" and seed.isdecimal()))
    if not fits:
        raise InputError(
            f"{text!r} is no schedule.", remedy="Choose lockstep, sequential, reverse, random, random:SEED or all."
        )
    return (text if name != "random" else f"random:{int(seed or 0)}",)


@dataclass(frozen=True, slots=True)
class Emulated:
    """What the emulator made of each launch; `reason` says why there is none."""

    baseline: Baseline
    runs: Mapping[str, tuple[TrialLaunch, ...]]
    """Launches by schedule, in the order asked for."""
    reason: str | None = None
    disagreements: tuple[str, ...] = ()
    """Results that depend on the schedule, one sentence each; floats may differ in their last bits without being here.
    """

    @property
    def launches(self) -> tuple[TrialLaunch, ...]:
        return tuple(launch for launches in self.runs.values() for launch in launches)

    @property
    def complete(self) -> bool:
        """Every launch ran to its end under every schedule and did nothing forbidden; the results are the same."""
        ended = bool(self.launches) and all(launch.executed for launch in self.launches)
        return ended and not self.findings and not self.disagreements

    @property
    def wrong(self) -> bool:
        """Something was shown to be wrong, which is more than not having ended."""
        forbidden = any((launch.reason or "").startswith(_FORBIDDEN) for launch in self.launches)
        builds = self.baseline.measurement.builds
        return bool(self.findings or self.disagreements) or forbidden or not builds

    @property
    def findings(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(f for launch in self.launches for f in launch.findings))


def emulate_file(request: JobRequest, progress: Progress, schedules: Sequence[str] = ("lockstep",)) -> Emulated:
    """Record the file's launches, then repeat its host calls with every launch emulated, once for each schedule.

    Errors as in `optimize`.
    """
    with progress.phase(Phase.BENCHMARK):
        baseline = take_baseline(request, progress)
    stored = baseline.stored
    recorded = [Step(entry.index, RECORDED) for entry in stored.workload.entries]
    if not recorded:
        return Emulated(baseline, {}, "no host call was recorded that could be repeated")
    with progress.phase(Phase.VALIDATE):
        progress.step(f"emulating {len(recorded)} calls, {', '.join(schedules)}")
        requests = [
            Request(step, number, compile=schedule == schedules[0], again=schedule != schedules[0], schedule=schedule)
            for schedule in schedules
            for number, step in enumerate(recorded)
        ]
        trial = run_trial(request.kernel, stored, request.target, requests, executor="emulator", limits=LIMITS, seed=0)
    runs = {
        schedule: tuple(x for call in trial.calls if call.request.schedule == schedule for x in call.launches)
        for schedule in schedules
    }
    skipped = next((c.skipped or str(c.error) for c in trial.calls if c.skipped or c.error), None)
    return Emulated(baseline, runs, trial.failure or skipped, tuple(_disagreements(trial.calls, schedules[0])))


def _disagreements(calls: Sequence[Call], first: str) -> Iterator[str]:
    """Where a call's results differ from those under the first schedule by more than roundings."""
    reference = {c.request.number: c for c in calls if c.request.schedule == first and c.executed}
    for call in calls:
        against = reference.get(call.request.number)
        if against is None or call is against or not call.executed:
            continue
        for mismatch in compare(call.results, against.results).mismatches:
            yield f"{mismatch.place} differs between {first} and {call.request.schedule}: {mismatch.message}"
