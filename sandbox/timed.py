"""Time a candidate against its baseline on the recorded calls of a workload, where there is a GPU."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from pathlib import Path
from typing import Literal

import numpy as np

from sandbox import triton_cache
from sandbox.benchmark import PairTiming, Race, TimingPlan, roofline_floor_us
from sandbox.correctness import Results, TensorValue, noise_between
from sandbox.gain import Improvement
from sandbox.kernel import Kernel
from sandbox.oracle import Reference
from sandbox.statements import timed_statement
from sandbox.target import Board, Target, known_archs, load_target
from sandbox.timing_session import ProgramSpec, TimingError
from sandbox.trials import inputs_only
from sandbox.verdict import Gain
from sandbox.workload import StoredWorkload, save

MAX_ENTRIES = 3

Clock = Literal["heard", "alone", "absent"]
"""What the clock of another GPU than the target may say. `heard`: a gain there counts, a loss refuses, and where it
shows neither, the target's code objects and counts speak. `alone`: nothing else can show a gain. `absent`: what the
candidate changes does not exist on that GPU, so its clock is not asked."""


@dataclass(frozen=True, slots=True)
class TimedCall:
    """One recorded call, timed on both sides."""

    entry: int
    timing: PairTiming


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """A recorded call to be timed. `own_error`: see `Race.time`."""

    entry: int
    results: Results = field(default_factory=dict)
    own_error: float = 0.0

    @classmethod
    def of(cls, reference: Reference) -> RecordedCall:
        apart = noise_between(reference.results, reference.oracle) if reference.oracle is not None else {}
        return cls(reference.step.entry, reference.results, max(apart.values(), default=0.0))


class CallTimer:
    """Times kernels on recorded calls of one workload, `MAX_ENTRIES` of them at most.

    A search asks about one baseline after another, each against many candidates: the processes of the last baseline
    stay for the next question. A difference is asked for once more in new processes, and the last answer counts, for
    the fastest of several candidates is often the luckiest, and a process can be lucky as a whole: of 200 times that a
    file was timed against itself on an H200, one look found 12 slower. What only one of two looks sees is noise.
    `close` it, or let it go.
    """

    def __init__(self, stored: StoredWorkload, calls: Sequence[RecordedCall], plan: TimingPlan | None = None) -> None:
        self._calls = calls[:MAX_ENTRIES]
        self._plan = plan or TimingPlan()
        self._folder = tempfile.TemporaryDirectory(prefix="wavesmith-")
        self._workload = save(inputs_only(stored), Path(self._folder.name) / "workload")
        self._race: tuple[str, Race] | None = None
        self._races = 0

    def time(self, baseline: Kernel, candidate: Kernel) -> list[TimedCall]:
        """Each call on both sides; none after one that became slower. Raises `TimingError` when a process cannot be
        timed."""
        timings = self._looks(baseline, candidate)
        return [
            TimedCall(call.entry, _above_the_roofline(timing, call.results))
            for call, timing in zip(self._calls, timings, strict=False)
        ]

    def close(self) -> None:
        self._end_race()
        self._folder.cleanup()

    def _looks(self, baseline: Kernel, candidate: Kernel) -> list[PairTiming]:
        """One look where that sees no difference, else two; a look that is doubted does not count, once."""
        timings = self._look(baseline, candidate)
        for _ in range(2):
            if not _worth_another_look(timings):
                return timings
            self._end_race()
            before, timings = timings, self._look(baseline, candidate)
            if not any(t.suspicions for t in before):
                break
        return _seen_twice(before, timings)

    def _look(self, baseline: Kernel, candidate: Kernel) -> list[PairTiming]:
        if not self._calls:
            return []
        race = self._race_of(baseline)
        try:
            race.enter(self._spec(candidate))
            timings = race.time([c.entry for c in self._calls], {c.entry: c.own_error for c in self._calls})
            race.leave()
        except TimingError:
            self._end_race()
            raise
        return timings

    def _race_of(self, baseline: Kernel) -> Race:
        if self._race is None or self._race[0] != baseline.digest:
            self._end_race()
            plan = replace(self._plan, seed=self._plan.seed + self._races)
            self._races += 1
            self._race = baseline.digest, Race(self._spec(baseline), plan, [c.entry for c in self._calls])
        return self._race[1]

    def _end_race(self) -> None:
        if self._race is not None:
            self._race[1].close()
        self._race = None

    def _spec(self, kernel: Kernel) -> ProgramSpec:
        folder = Path(tempfile.mkdtemp(dir=self._folder.name))
        inputs = Path(__file__).with_name("child_workload_inputs.py")
        compiled = str(triton_cache.folder_of(kernel))  # by its trial; another program's process never saw it
        environment = {"WAVESMITH_WORKLOAD": str(self._workload), "TRITON_CACHE_DIR": compiled}
        return ProgramSpec(kernel.write_to(folder), "", inputs, environment)


def _worth_another_look(timings: Sequence[PairTiming]) -> bool:
    """Whether there is a difference to confirm, or a doubt that others may not share; wrong results settle it."""
    if any(t.wrong_results for t in timings):
        return False
    return any(t.gain or t.loss or t.suspicions for t in timings)


def _seen_twice(first: Sequence[PairTiming], second: Sequence[PairTiming]) -> list[PairTiming]:
    """The second look. A call that only this look found faster or slower shows how large the noise is."""
    found = []
    for before, after in zip_longest(first[: len(second)], second):
        again = before is not None and (before.gain, before.loss) == (after.gain, after.loss)
        if (after.gain or after.loss) and not again:
            apart = max(after.interval.high, 1.0 / after.interval.low) - 1.0
            after = replace(after, noise_floor=max(after.noise_floor, apart))
        found.append(after)
    return found


def timed_gain(calls: Sequence[TimedCall], target: Target) -> Improvement:
    """A gain when some call is faster and none is slower; else why not. The slowest call of the baseline speaks."""
    wrong = [text for c in calls for text in c.timing.wrong_results]
    if wrong:
        return Improvement(None, f"in a timed call, {wrong[0]}", calls[0].timing.device)
    doubts = [s for c in calls for s in c.timing.suspicions]
    if doubts:
        return Improvement(None, f"the times cannot be believed: {doubts[0]}", doubted=True)
    if not calls:
        return Improvement(None, "nothing was timed")
    slower = [c for c in calls if c.timing.loss]
    if slower:
        device = slower[0].timing.device
        return Improvement(None, f"slower: {slower[0].timing.interval} on {device}", device, slower=True)
    faster = [c for c in calls if c.timing.gain]
    if not faster:
        device = calls[0].timing.device
        return Improvement(None, f"no difference above the noise: {calls[0].timing.interval} on {device}", device)
    main = max(faster, key=lambda c: float(np.median(c.timing.baseline_us)))
    level, statement = timed_statement(main.timing.interval, main.timing.device, target)
    times = (float(np.median(main.timing.baseline_us)), float(np.median(main.timing.candidate_us)))
    return Improvement(Gain(level, statement, main.timing.interval, main.timing.device, {"median_us": times}))


def heard(timed: Improvement, untimed: Callable[[], Improvement]) -> Improvement:
    """What another GPU's clock and, where it saw no difference, the target's code objects and counts say together."""
    if timed.gain is not None or timed.slower or timed.timed_on is None:
        return timed
    other = untimed()
    if other.gain is None:
        return timed
    return Improvement(replace(other.gain, statement=f"{other.gain.statement}; {timed.reason}"))


def _above_the_roofline(timing: PairTiming, results: Results) -> PairTiming:
    """Writing the results once takes a least time on a known board; medians below it are no times.

    Results that fit into the last-level cache need not reach memory before the last timestamp: they set no floor.
    """
    board = _board(timing.device)
    written = sum(v.data.nbytes for v in results.values() if isinstance(v, TensorValue))
    if board is None or written <= board.last_level_cache_bytes:
        return timing
    floor = roofline_floor_us(written - board.last_level_cache_bytes, {}, board.hbm_gb_per_s, {})
    medians = {"baseline": float(np.median(timing.baseline_us)), "candidate": float(np.median(timing.candidate_us))}
    below = [
        f"{name}: {median:.2f} us is below the roofline floor of {floor:.2f} us"
        for name, median in medians.items()
        if median < floor
    ]
    return replace(timing, suspicions=(*timing.suspicions, *below))


def _board(device: str) -> Board | None:
    for arch in known_archs():
        for board in load_target(arch).boards.values():
            if board.device_name.lower() == device.lower():
                return board
    return None
