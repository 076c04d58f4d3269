"""The recorded launches of a file, run as compiled code in the CPU emulator: findings and counts, no comparison."""

from __future__ import annotations

from dataclasses import dataclass

from agent.baseline import Baseline, take_baseline
from agent.events import Phase, Progress
from agent.job import JobRequest
from sandbox.isolation import Limits
from sandbox.trials import Request, TrialLaunch, run_trial
from sandbox.variants import RECORDED, Step

LIMITS = Limits(wall_s=600.0, launch_s=120.0)


@dataclass(frozen=True, slots=True)
class Emulated:
    """What the emulator made of each launch; `reason` says why there is none."""

    baseline: Baseline
    launches: tuple[TrialLaunch, ...]
    reason: str | None = None

    @property
    def complete(self) -> bool:
        """Every launch ran to its end and did nothing forbidden."""
        return bool(self.launches) and all(launch.executed for launch in self.launches) and not self.findings

    @property
    def findings(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(f for launch in self.launches for f in launch.findings))


def emulate_file(request: JobRequest, progress: Progress) -> Emulated:
    """Record the file's launches, then repeat its host calls with every launch emulated. Errors as in `optimize`."""
    with progress.phase(Phase.BENCHMARK):
        baseline = take_baseline(request, progress)
    stored = baseline.stored
    recorded = [Step(entry.index, RECORDED) for entry in stored.workload.entries]
    if not recorded:
        return Emulated(baseline, (), "no host call was recorded that could be repeated")
    with progress.phase(Phase.VALIDATE):
        progress.step(f"emulating {len(recorded)} calls")
        requests = [Request(step, number, compile=True) for number, step in enumerate(recorded)]
        trial = run_trial(request.kernel, stored, request.target, requests, executor="emulator", limits=LIMITS, seed=0)
    launches = tuple(launch for call in trial.calls for launch in call.launches)
    skipped = next((c.skipped or str(c.error) for c in trial.calls if c.skipped or c.error), None)
    return Emulated(baseline, launches, trial.failure or skipped)
