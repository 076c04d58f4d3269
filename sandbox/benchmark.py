"""Time two programs against each other on one device, and say how sure the ratio is.

Each program lives in a process of its own (`sandbox/child_timing.py`); the parent lets them run in turn, A B B A, a
cache flush before every timed call, so that drift of clocks and temperature falls on both. Times are device timestamps
taken by code that was loaded before the program. The ratio of medians carries a 95% percentile bootstrap interval over
pairs, and counts as a gain only when its lower end clears 1 + the noise floor, which is the same procedure run on A
against A. Results of timed calls, chosen after they ran, are compared too.

Runs as a script too, where only torch, triton and numpy are installed:
    python sandbox/benchmark.py baseline.py candidate.py --entry run --inputs inputs.py
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import weakref
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from sandbox import device_lock
from sandbox.correctness import Results, TensorValue, Yardsticks, compare, largest_noise
from sandbox.number_formats import is_float
from sandbox.timing_session import ProgramSpec, Sample, TimingError, TimingProcess
from sandbox.verdict import Interval

Floats = npt.NDArray[np.float64]

RESAMPLES = 4000
MIN_PAIRS = 12
_UNSTEADY = "the machine was not steady"
CHECKED_SHARE = 0.2
"""Share of timed rounds whose results are compared."""
MIN_NOISE_FLOOR = 0.01
"""No difference below 1% is ever called a gain, however quiet the machine seems."""


def median_ratio_interval(baseline: Sequence[float], candidate: Sequence[float], seed: int = 0) -> Interval:
    """Ratio of medians baseline/candidate with its 95% percentile bootstrap interval; runs are paired by position.

    Pairs are resampled together (Efron and Tibshirani, An Introduction to the Bootstrap, ch. 13), because neighbours
    share the state of the machine. Raises `ValueError` for unequal or fewer than two runs.
    """
    a, b = np.asarray(baseline, dtype=np.float64), np.asarray(candidate, dtype=np.float64)
    if a.shape != b.shape or a.ndim != 1 or a.size < 2:
        raise ValueError("need two equally long series of at least two runs")
    rng = np.random.default_rng(seed)
    picks = rng.integers(0, a.size, size=(RESAMPLES, a.size))
    ratios = np.median(a[picks], axis=1) / np.median(b[picks], axis=1)
    low, high = np.quantile(ratios, [0.025, 0.975])
    ratio = float(np.median(a) / np.median(b))
    return Interval(ratio, min(float(low), ratio), max(float(high), ratio), int(a.size))


def noise_floor(first: Sequence[float], second: Sequence[float], seed: int = 0) -> float:
    """How far from 1 the ratio of a program to itself may lie: the farther end of its interval, at least 1%."""
    interval = median_ratio_interval(first, second, seed)
    return max(MIN_NOISE_FLOOR, interval.high - 1.0, 1.0 / interval.low - 1.0)


def is_gain(interval: Interval, floor: float) -> bool:
    return interval.pairs >= MIN_PAIRS and interval.low > 1.0 + floor


def is_loss(interval: Interval, floor: float) -> bool:
    return interval.pairs >= MIN_PAIRS and interval.high < 1.0 / (1.0 + floor)


def roofline_floor_us(
    bytes_moved: float, flops: Mapping[str, float], hbm_gb_per_s: float, peaks: Mapping[str, float]
) -> float:
    """The least time any program can take: max(bytes / bandwidth, flops / peak of their type), in microseconds.

    `peaks` in TFLOP/s by dtype (`sandbox.target.Board.peak_tflop_per_s`). Williams et al., Roofline, CACM 52(4), 2009.
    """
    times = [bytes_moved / (hbm_gb_per_s * 1e3)]
    times += [count / (peaks[dtype] * 1e6) for dtype, count in flops.items() if dtype in peaks]
    return max(times)


@dataclass(frozen=True, slots=True)
class PairTiming:
    """What `time_pair` measured. `suspicions` name why the times must not be believed; empty when they may be."""

    device: str
    interval: Interval
    noise_floor: float
    baseline_us: tuple[float, ...]
    candidate_us: tuple[float, ...]
    repeat_us: tuple[float, ...]
    """A second process of the baseline, run in the same rotation: A against A."""
    flush_bytes: int
    suspicions: tuple[str, ...] = ()
    wrong_results: tuple[str, ...] = ()
    """Where timed calls of the candidate gave something else than the baseline's; empty where they did not."""
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def gain(self) -> bool:
        return not self.doubts and is_gain(self.interval, self.noise_floor)

    @property
    def loss(self) -> bool:
        return is_loss(self.interval, self.noise_floor)

    @property
    def doubts(self) -> tuple[str, ...]:
        """All that stands against these times."""
        return (*self.suspicions, *self.wrong_results)

    @property
    def unsteady(self) -> bool:
        """Whether nothing is wrong but that the machine changed meanwhile: worth a second, longer look."""
        return bool(self.suspicions) and all(s.endswith(_UNSTEADY) for s in self.suspicions)

    def to_json(self) -> dict[str, Any]:
        medians = {"baseline_median_us": self.baseline_us, "candidate_median_us": self.candidate_us}
        return {
            **dataclasses.asdict(self),
            "suspicions": self.doubts,
            "gain": self.gain,
            **{name: float(np.median(times)) for name, times in medians.items()},
        }


@dataclass(frozen=True, slots=True)
class TimingPlan:
    """How to time. `flush_bytes` None takes four times the last-level cache the device reports, at least 512 MiB."""

    rounds: int = 30
    warmup_calls: int = 5
    warmup_s: float = 0.5
    seed: int = 0
    flush_bytes: int | None = None
    device: str = "cuda"
    """`cpu` times with the host's clock: for machines without a GPU, and for the tests of this module."""
    call_timeout_s: float = 120.0
    start_timeout_s: float = 300.0
    lock_timeout_s: float = 600.0
    """Added to the time for loading and for warming up on a GPU: both wait while other clocks have it."""


class Race:
    """One baseline against candidates that come one after another, on the same calls.

    The baseline's two processes are loaded and warmed once, with the first candidate; the process of the next one
    imports torch while the one before is judged. Every method raises `TimingError` when a process ends, hangs or
    answers nonsense; the race is over then. `close` it, or let it go: its processes end with it.
    """

    def __init__(self, baseline: ProgramSpec, plan: TimingPlan | None = None, cases: Sequence[int] = (0,)) -> None:
        self._baseline = baseline
        self._plan = plan or TimingPlan()
        self._cases = cases
        self._on_gpu = self._plan.device == "cuda"
        self._processes: dict[str, TimingProcess] = {}
        self.close = weakref.finalize(self, _close_all, self._processes)

    def enter(self, candidate: ProgramSpec) -> None:
        """Load and warm a candidate, and the baseline where this is the first."""
        new = {"candidate": candidate}
        if "baseline" not in self._processes:
            new |= {"baseline": self._baseline, "repeat": self._baseline}
        for name in new:
            self._processes[name] = self._processes.pop("spare") if "spare" in self._processes else self._start()
        # Most of the start is importing and compiling: side by side it takes a third.
        with ThreadPoolExecutor(len(new)) as pool:
            list(pool.map(self._load, new, new.values()))

    def time(
        self,
        cases: Sequence[int] = (0,),
        own_errors: Mapping[int, float] | None = None,
        *,
        floor_us: float | None = None,
    ) -> list[PairTiming]:
        """Time the candidate that entered last on these cases, in interleaved calls, and the baseline against itself
        beside them; twice as long where the machine was not steady, and no further after a case that became slower.

        `own_errors`: how far the baseline's results of a case are from the exact ones, relative to |value| + scale of
        the row; two programs that round differently may be so far apart. `floor_us` is the roofline floor
        (`roofline_floor_us`): a median below it is a measuring error or a cheat. The GPU is had alone for all cases
        together: getting it takes longer than using it.
        """
        processes = {name: self._processes[name] for name in ("baseline", "candidate", "repeat")}
        heats: list[_Heat] = []
        slowest_ms = max(process.host_ms for process in processes.values())
        for process in processes.values():
            process.queued_in(slowest_ms, self._plan.call_timeout_s)
        with device_lock.alone() if self._on_gpu else nullcontext():
            for case in cases:
                heat = _run(processes, case, self._plan, floor_us)
                if heat.timing.unsteady:
                    longer = replace(self._plan, rounds=2 * self._plan.rounds, seed=self._plan.seed + 1)
                    heat = _run(processes, case, longer, floor_us)
                heats.append(heat)
                if heat.timing.loss and not heat.timing.suspicions:
                    break
        known = own_errors or {}
        return [heat.compared(known.get(case, 0.0)) for case, heat in zip(cases, heats, strict=False)]

    def leave(self) -> None:
        """End the candidate, give up the memory of the calls, and get a process ready for the next candidate."""
        self._processes.pop("candidate").close()
        for name in ("baseline", "repeat"):
            self._processes[name].rest(self._plan.call_timeout_s)
        self._processes["spare"] = self._start()

    def _start(self) -> TimingProcess:
        with device_lock.offered() if self._on_gpu else nullcontext(()) as lock:
            return TimingProcess(self._plan.device, lock)

    def _load(self, name: str, spec: ProgramSpec) -> None:
        plan, process = self._plan, self._processes[name]
        waiting_s = plan.lock_timeout_s if self._on_gpu else 0.0
        process.load(spec, plan.flush_bytes, plan.start_timeout_s + waiting_s)
        for case in self._cases:
            process.select(case, plan.call_timeout_s)
            seconds = plan.warmup_s / len(self._cases)
            process.warm_up(plan.warmup_calls, seconds, plan.call_timeout_s + waiting_s)
        process.leave_device(plan.call_timeout_s)


def _close_all(processes: dict[str, TimingProcess]) -> None:
    for process in processes.values():
        process.close()
    processes.clear()


def time_pair(
    baseline: ProgramSpec,
    candidate: ProgramSpec,
    plan: TimingPlan | None = None,
    *,
    floor_us: float | None = None,
) -> PairTiming:
    """Time two programs in interleaved calls, and the baseline against itself beside them.

    See `Race.time`. Raises `TimingError` when a process ends, hangs or returns no results.
    """
    race = Race(baseline, plan)
    try:
        race.enter(candidate)
        return race.time(floor_us=floor_us)[0]
    finally:
        race.close()


@dataclass(frozen=True, slots=True)
class _Heat:
    """The times of one case, and what some of its calls returned."""

    timing: PairTiming
    checked: list[dict[str, Results]]

    def compared(self, own_error: float) -> PairTiming:
        """The timing, in doubt where the candidate returned something else than the baseline."""
        wrong = tuple(f"candidate: wrong result: {m}" for m in _mismatches(self.checked, own_error)[:3])
        return replace(self.timing, wrong_results=wrong)


def _run(processes: Mapping[str, TimingProcess], case: int, plan: TimingPlan, floor_us: float | None) -> _Heat:
    """Time one case. The first call of each does not count: the programs may have waited since they were warm."""
    rng = np.random.default_rng(plan.seed)
    variant = int(rng.integers(2**31))
    for process in processes.values():
        process.select(case, plan.call_timeout_s)
        process.prepare(variant, plan.call_timeout_s)
        process.timed_call(plan.call_timeout_s)
    samples, checked = _rotate(processes, plan, rng)
    times = {name: [s.device_us for s in taken] for name, taken in samples.items()}
    seed = int(rng.integers(2**31))
    timing = PairTiming(
        device=processes["baseline"].device_name,
        interval=median_ratio_interval(times["baseline"], times["candidate"], seed),
        noise_floor=noise_floor(times["baseline"], times["repeat"], seed),
        baseline_us=tuple(times["baseline"]),
        candidate_us=tuple(times["candidate"]),
        repeat_us=tuple(times["repeat"]),
        flush_bytes=processes["baseline"].flush_bytes,
        suspicions=suspicions_of(samples, floor_us),
        details={"floor_us": floor_us, "rounds": plan.rounds, "seed": plan.seed},
    )
    return _Heat(timing, checked)


def _rotate(
    processes: Mapping[str, TimingProcess], plan: TimingPlan, rng: np.random.Generator
) -> tuple[dict[str, list[Sample]], list[dict[str, Results]]]:
    """Rounds in a new random order each, and its mirror image after it; and what some of the calls returned.

    Inputs are drawn anew for every round, the same for all three, so a program that remembers its last call computes
    the wrong thing; which calls are compared is decided after they ran.
    """
    samples: dict[str, list[Sample]] = {name: [] for name in processes}
    checked: list[dict[str, Results]] = []
    with ThreadPoolExecutor(len(processes)) as pool:
        for _ in range(-(-plan.rounds // 2)):
            order = [str(n) for n in rng.permutation(list(processes))]
            for names in (order, order[::-1]):
                variant = int(rng.integers(2**31))
                # Side by side, and all before the first is timed: drawing large inputs takes longer than most kernels.
                list(pool.map(lambda p, v=variant: p.prepare(v, plan.call_timeout_s), processes.values()))
                for name in names:
                    samples[name].append(processes[name].timed_call(plan.call_timeout_s))
                if rng.random() < CHECKED_SHARE or not checked:
                    part = int(rng.integers(2**31))
                    checked.append({n: p.results(part, plan.call_timeout_s) for n, p in processes.items()})
    return samples, checked


def _mismatches(checked: Sequence[Mapping[str, Results]], own_error: float = 0.0) -> list[str]:
    """Where the candidate's timed calls returned something else than the baseline's.

    How far the baseline's second process is from its first is what no candidate can be asked to do better; integers
    that it gives otherwise itself (whichever came first) say nothing here, where only times are taken. `own_error`:
    see `Race.time`.
    """
    noise = largest_noise((results["baseline"], results["repeat"]) for results in checked)
    noise = {place: max(apart, own_error) for place, apart in noise.items()}
    open_places = {
        m.place
        for results in checked
        for m in compare(_integers(results["repeat"]), _integers(results["baseline"])).mismatches
        if m.check == "exact"
    }
    found = []
    for results in checked:
        agreement = compare(results["candidate"], results["baseline"], yardsticks=Yardsticks(noise=noise))
        wrong = (m for m in agreement.mismatches if m.check != "exact" or m.place not in open_places)
        found += [f"{m.place}: {m.message} [{m.check}]" for m in wrong]
    return found


def _integers(results: Results) -> Results:
    return {p: v for p, v in results.items() if not isinstance(v, TensorValue) or not is_float(v.dtype)}


def suspicions_of(samples: Mapping[str, Sequence[Sample]], floor_us: float | None) -> tuple[str, ...]:
    """Why these times must not be believed: impossible, spent elsewhere, or taken on a machine that changed."""
    found = []
    for name in ("baseline", "candidate"):
        taken = [s.device_us for s in samples[name]]
        middle = float(np.median(taken))
        if middle <= 0 or not np.isfinite(middle):
            found.append(f"{name}: {middle} us is no time")
        elif floor_us is not None and middle < floor_us:
            found.append(f"{name}: {middle:.2f} us is below the roofline floor of {floor_us:.2f} us")
    found += _spent_elsewhere(samples)
    if any("is no time" in text for text in found):
        return tuple(found)
    first, second = _halves(samples)
    if first.low > second.high or second.low > first.high:
        found.append(f"the first half of the runs gives {first}, the second {second}: {_UNSTEADY}")
    return tuple(found)


def _spent_elsewhere(samples: Mapping[str, Sequence[Sample]]) -> list[str]:
    """Whether what the candidate saves between the timestamps surely comes back outside of them.

    Surely: the lower end of the 95% interval counts, and what the baseline differs from itself by is not held against
    it, since a busy host adds a hundred microseconds to any request. Work done elsewhere is there in every call. Who
    saves nothing that could count as a gain hides nothing.
    """
    saved = -_extra(samples, "candidate", "device_us")[0]
    if saved <= MIN_NOISE_FLOOR * float(np.median([s.device_us for s in samples["baseline"]])):
        return []
    for what in ("late_us", "host_us"):
        outside, surely = _extra(samples, "candidate", what)
        own = abs(_extra(samples, "repeat", what)[0]) if "repeat" in samples else 0.0
        if surely > max(saved, 50.0, own):
            return [
                f"candidate: the {saved:.1f} us saved between the timestamps are spent outside of them "
                f"({outside:.1f} us more): work on another stream or thread"
            ]
    return []


def _extra(samples: Mapping[str, Sequence[Sample]], name: str, what: str) -> tuple[float, float]:
    """One number of a program's samples minus the baseline's, in microseconds: the difference of medians, and the
    lower end of its 95% bootstrap interval."""
    program, baseline = (np.asarray([getattr(s, what) for s in samples[n]]) for n in (name, "baseline"))
    picks = np.random.default_rng(0).integers(0, len(baseline), size=(RESAMPLES, len(baseline)))
    differences = np.median(program[picks], axis=1) - np.median(baseline[picks], axis=1)
    return float(np.median(program) - np.median(baseline)), float(np.quantile(differences, 0.025))


def _halves(samples: Mapping[str, Sequence[Sample]]) -> tuple[Interval, Interval]:
    a, b = ([s.device_us for s in samples[n]] for n in ("baseline", "candidate"))
    half = len(a) // 2
    return median_ratio_interval(a[:half], b[:half]), median_ratio_interval(a[half:], b[half:])


def main(argv: Sequence[str] | None = None) -> int:
    """Time two files from the command line; prints JSON. Exit status 0 gain, 3 no gain, 1 not measurable."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("baseline", type=Path)
    parser.add_argument("candidate", type=Path)
    parser.add_argument("--entry", required=True, help="function to call in both files")
    parser.add_argument(
        "--inputs", type=Path, required=True, help="trusted file with make(seed, device) -> (args, kwargs)"
    )
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    parser.add_argument("--floor-us", type=float, default=None)
    options = parser.parse_args(argv)
    a, b = (
        ProgramSpec(path.resolve(), options.entry, options.inputs.resolve())
        for path in (options.baseline, options.candidate)
    )
    try:
        timing = time_pair(a, b, TimingPlan(rounds=options.rounds, device=options.device), floor_us=options.floor_us)
    except TimingError as fault:
        print(json.dumps({"fault": str(fault)}))
        return 1
    print(json.dumps(timing.to_json()))
    return 0 if timing.gain else 3


if __name__ == "__main__":
    sys.exit(main())
