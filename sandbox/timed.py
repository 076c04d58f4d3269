"""Time a candidate against its baseline on the recorded calls of a workload, where there is a GPU."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from sandbox.benchmark import WRONG_RESULT, PairTiming, TimingPlan, roofline_floor_us, time_pair
from sandbox.correctness import Results, TensorValue
from sandbox.gain import Improvement
from sandbox.kernel import Kernel
from sandbox.statements import timed_statement
from sandbox.target import Board, Target, known_archs, load_target
from sandbox.timing_session import ProgramSpec
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


def time_calls(
    baseline: Kernel,
    candidate: Kernel,
    stored: StoredWorkload,
    calls: Sequence[tuple[int, Results]],
    plan: TimingPlan | None = None,
) -> list[TimedCall]:
    """Time the entries of `calls` (entry, what it returns); once more, twice as long, where the machine was not steady.

    Raises `TimingError` when a process cannot be timed.
    """
    plan = plan or TimingPlan()
    inputs = Path(__file__).with_name("child_workload_inputs.py")
    found = []
    with tempfile.TemporaryDirectory(prefix="wavesmith-") as name:
        folder = save(inputs_only(stored), Path(name) / "workload")
        sources = []
        for kernel, part in ((baseline, "baseline"), (candidate, "candidate")):
            (Path(name) / part).mkdir()
            sources.append(kernel.write_to(Path(name) / part))
        for entry, results in calls[:MAX_ENTRIES]:
            environment = {"WAVESMITH_WORKLOAD": str(folder), "WAVESMITH_ENTRY": str(entry)}
            a, b = (ProgramSpec(source, "", inputs, environment) for source in sources)
            timing = time_pair(a, b, plan)
            if timing.unsteady:
                timing = time_pair(a, b, replace(plan, rounds=2 * plan.rounds, seed=plan.seed + 1))
            found.append(TimedCall(entry, _above_the_roofline(timing, results)))
    return found


def timed_gain(calls: Sequence[TimedCall], target: Target) -> Improvement:
    """A gain when some call is faster and none is slower; else why not. The slowest call of the baseline speaks."""
    doubts = [s for c in calls for s in c.timing.suspicions]
    wrong = [s for s in doubts if WRONG_RESULT in s]
    if wrong:
        return Improvement(None, f"in a timed call, {wrong[0]}", calls[0].timing.device)
    if doubts or not calls:
        return Improvement(None, f"the times cannot be believed: {doubts[0]}" if doubts else "nothing was timed")
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
