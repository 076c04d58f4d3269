"""The interval, the noise floor and the decision; and real processes timed against each other with the host's clock."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, repeat
from pathlib import Path

import numpy as np
import pytest

import sandbox.benchmark
from sandbox.benchmark import (
    PairTiming,
    Race,
    TimingPlan,
    _mismatches,
    is_gain,
    is_loss,
    median_ratio_interval,
    noise_floor,
    roofline_floor_us,
    suspicions_of,
    time_pair,
)
from sandbox.correctness import TensorValue
from sandbox.timing_session import CHECKED_ELEMENTS, ProgramSpec, Sample, TimingError, TimingProcess, checked_part
from sandbox.verdict import Interval


def times(rng: np.random.Generator, pairs: int, ratio: float, spread: float = 0.05) -> tuple[np.ndarray, np.ndarray]:
    """Two noisy series with common drift, as an interleaved session gives them."""
    drift = 1 + 0.1 * np.sin(np.linspace(0, 3, pairs))
    a = 100 * drift * np.exp(spread * rng.standard_normal(pairs))
    b = 100 / ratio * drift * np.exp(spread * rng.standard_normal(pairs))
    return a, b


@pytest.mark.parametrize("ratio", [1.0, 1.43])
def test_interval_covers_the_true_ratio_about_95_percent_of_the_time(ratio):
    rng = np.random.default_rng(7)
    inside = 0
    for i in range(120):
        interval = median_ratio_interval(*times(rng, 30, ratio), seed=i)
        inside += interval.low <= ratio <= interval.high
    assert 0.88 <= inside / 120 <= 1.0


def test_no_false_gain_between_equal_programs():
    rng = np.random.default_rng(11)
    wins = 0
    for i in range(150):
        a, b = times(rng, 30, 1.0)
        again = times(rng, 30, 1.0)[0]
        wins += is_gain(median_ratio_interval(a, b, i), noise_floor(a, again, i))
    assert wins <= 3


def test_a_real_gain_of_ten_percent_is_found():
    rng = np.random.default_rng(13)
    a, b = times(rng, 60, 1.1, spread=0.02)
    again = times(rng, 60, 1.0, spread=0.02)[0]
    interval = median_ratio_interval(a, b)
    assert is_gain(interval, noise_floor(a, again))
    assert not is_gain(Interval(interval.ratio, interval.low, interval.high, 5), 0.01), "five pairs show nothing"
    assert is_loss(median_ratio_interval(b, a), 0.01)


def test_the_same_runs_give_the_same_interval():
    a, b = times(np.random.default_rng(3), 20, 1.2)
    assert median_ratio_interval(a, b, 5) == median_ratio_interval(a, b, 5)
    with pytest.raises(ValueError):
        median_ratio_interval([1.0], [1.0])


def test_one_lucky_run_is_no_gain():
    a = np.full(30, 100.0)
    b = a.copy()
    b[4] = 1.0
    interval = median_ratio_interval(a, b)
    assert not is_gain(interval, 0.01)


def test_roofline_floor():
    # 8 MB at 8000 GB/s take 1 us; 4.6 GFLOP at 2300 TFLOP/s take 2 us.
    assert roofline_floor_us(8e6, {}, 8000, {"bf16": 2300}) == pytest.approx(1.0)
    assert roofline_floor_us(8e6, {"bf16": 4.6e9, "fp6": 1e15}, 8000, {"bf16": 2300}) == pytest.approx(2.0)


INPUTS = """
import torch
torch.set_num_threads(1)
def make(seed, device):
    g = torch.Generator().manual_seed(seed)
    return (torch.randn(256, 64, generator=g),), {}
"""
SLOW = """
def run(x):
    for _ in range(40):
        y = x * 2.0
    return y
"""
FAST = """
def run(x):
    return x * 2.0
"""
LAST_CALL = """
seen = {}
def run(x):
    if "y" not in seen:
        seen["y"] = x * 2.0
    return seen["y"]
"""
PATCHED = """
import time
time.perf_counter_ns = lambda: 0
def run(x):
    for _ in range(40):
        y = x * 2.0
    return y
"""
PLAN = TimingPlan(rounds=24, device="cpu", warmup_s=0.05, flush_bytes=1 << 20)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("timing")
    for name, text in {"inputs": INPUTS, "slow": SLOW, "fast": FAST, "last": LAST_CALL, "patched": PATCHED}.items():
        (path / f"{name}.py").write_text(text)
    (path / "hangs.py").write_text("def run(x):\n    while True:\n        pass\n")
    (path / "dies.py").write_text("import os\ndef run(x):\n    os._exit(3)\n")
    return path


def measure(folder: Path, baseline: str, candidate: str) -> PairTiming:
    specs = [ProgramSpec(folder / f"{n}.py", "run", folder / "inputs.py") for n in (baseline, candidate)]
    return time_pair(*specs, plan=PLAN)


def told(timing: PairTiming) -> bool:
    """Whether a measurement says anything: on a busy machine it may be doubted, or hold everything possible."""
    return not timing.suspicions and timing.interval.high < 3 * timing.interval.low


def test_real_processes_fast_against_slow(folder):
    """Forty times the work is seen, by the first of six measurements that a busy machine does not spoil."""
    for _ in range(6):
        timing = measure(folder, "slow", "fast")
        if told(timing):
            break
    assert timing.gain or not told(timing), timing
    assert not timing.loss


def samples(device_us: float, late_us: float = 0.0, host_us: float = 0.0) -> list[Sample]:
    return [Sample(device_us + i % 3 * 0.1, late_us, device_us + host_us) for i in range(30)]


@pytest.mark.parametrize(
    ("candidate", "floor_us", "reason"),
    [
        (samples(5.0), 20.0, "roofline floor"),
        ([Sample(0.0, 0.0, 0.0)] * 30, None, "is no time"),
        (samples(5.0, late_us=300.0), None, "another stream"),
        (samples(5.0, host_us=900.0), None, "another stream or thread"),
        (samples(90.0)[:15] + samples(40.0)[:15], None, "not steady"),
        (samples(50.0), 20.0, None),
        (samples(99.9, host_us=900.0), None, None),
    ],
)
def test_times_that_must_not_be_believed(candidate, floor_us, reason):
    found = suspicions_of({"baseline": samples(100.0), "candidate": candidate}, floor_us)
    assert (reason is None and not found) or any(reason in s for s in found), found


@pytest.mark.parametrize(("extra_us", "found"), [(0.0, False), (600.0, True)])
def test_a_busy_host_is_no_work_on_another_thread(extra_us, found):
    rng = np.random.default_rng(3)

    def taken(device_us: float, more_us: float) -> list[Sample]:
        return [Sample(device_us, 0.0, device_us + more_us + wait) for wait in rng.exponential(200.0, 30)]

    runs = {"baseline": taken(84.0, 0.0), "candidate": taken(75.0, extra_us), "repeat": taken(84.0, 0.0)}
    assert bool(suspicions_of(runs, None)) == found


def test_replaying_the_last_call_and_patching_the_clock_do_not_pay(folder):
    replayed = measure(folder, "slow", "last")
    assert not replayed.gain
    assert bool(replayed.wrong_results)
    for _ in range(3):
        patched = measure(folder, "slow", "patched")
        if not patched.gain:
            break
    assert not patched.gain
    assert min(patched.candidate_us) > 1, "the clock that it stopped is not the one it is measured with"


CASES = """
import torch
case = 0
def select(number):
    global case
    case = number
def make(seed, device):
    return (torch.full((8,), float(case)), seed), {}
"""
TWICE = "def run(x, seed):\n    return x * 2.0\n"
TWICE_OF_ONE = "def run(x, seed):\n    return x * 2.0 if float(x[0]) == 1.0 else x\n"


def test_one_baseline_races_one_candidate_after_another(folder):
    race = Race(ProgramSpec(folder / "slow.py", "run", folder / "inputs.py"), PLAN)
    seen = []
    for candidate in ("last", "patched"):
        race.enter(ProgramSpec(folder / f"{candidate}.py", "run", folder / "inputs.py"))
        timing = race.time()[0]
        seen.append(frozenset(((n, p.pid) for n, p in race._processes.items())))
        assert bool(timing.wrong_results) == (candidate == "last")
        assert len(timing.baseline_us) == len(timing.candidate_us) >= PLAN.rounds
        race.leave()
    first, second = (dict(pids) for pids in seen)
    assert first["baseline"] == second["baseline"] and first["repeat"] == second["repeat"]
    assert first["candidate"] != second["candidate"]
    pids = [p.pid for p in race._processes.values()]
    assert all(runs(Path("/proc") / str(pid)) for pid in pids)
    del race
    assert not any(runs(Path("/proc") / str(pid)) for pid in pids), "let go of, its processes end"


DRAWS = """
import random
import numpy, torch
def run(x, seed):
    drawn = torch.rand(8) + float(numpy.random.rand()) + random.random()
    return x + {factor} * drawn
"""


def test_programs_that_draw_random_numbers_draw_the_same(tmp_path):
    (tmp_path / "inputs.py").write_text(CASES)
    specs = []
    for factor in ("1.0", "1.001"):
        (tmp_path / f"draws{factor[-1]}.py").write_text(DRAWS.format(factor=factor))
        specs.append(ProgramSpec(tmp_path / f"draws{factor[-1]}.py", "run", tmp_path / "inputs.py"))
    plan = replace(PLAN, rounds=12, warmup_s=0.0)
    assert not time_pair(specs[0], specs[0], plan).wrong_results
    assert time_pair(specs[0], specs[1], plan).wrong_results, "not lost in the noise of other draws"


def test_each_case_is_called_by_its_number(tmp_path):
    (tmp_path / "inputs.py").write_text(CASES)
    specs = []
    for name, text in {"twice": TWICE, "twice_of_one": TWICE_OF_ONE}.items():
        (tmp_path / f"{name}.py").write_text(text)
        specs.append(ProgramSpec(tmp_path / f"{name}.py", "run", tmp_path / "inputs.py"))
    race = Race(specs[0], replace(PLAN, rounds=12, warmup_s=0.0), cases=(3, 1))
    race.enter(specs[1])
    wrong = [bool(timing.wrong_results) for timing in race.time((3, 1))]
    race.close()
    assert wrong == [True, False]


class Scripted:
    """A warm process whose calls take what a script says, one call after another."""

    device_name, flush_bytes = "CPU", 0

    def __init__(self, device_us: Iterator[float], host_ms: float = 0.1) -> None:
        self._device_us = device_us
        self.calls = 0
        self.host_ms = host_ms
        self.spins_for_ms: list[float] = []

    def queued_in(self, host_ms: float, timeout_s: float) -> None:
        self.spins_for_ms.append(host_ms)

    def select(self, case: int, timeout_s: float) -> None: ...

    def prepare(self, variant: int, timeout_s: float) -> None: ...

    def close(self) -> None: ...

    def timed_call(self, timeout_s: float) -> Sample:
        self.calls += 1
        us = next(self._device_us) + self.calls % 3 * 0.1
        return Sample(us, 0.0, us)

    def results(self, seed: int, timeout_s: float) -> dict[str, TensorValue]:
        return {}


def scripted_race(candidate_us: Iterator[float]) -> tuple[Race, Scripted]:
    race = Race(ProgramSpec(Path("a.py"), "run", Path("inputs.py")), replace(PLAN, rounds=20))
    candidate = Scripted(candidate_us)
    steady = {name: Scripted(repeat(100.0)) for name in ("baseline", "repeat")}
    race._processes.update({**steady, "candidate": candidate})
    return race, candidate


@pytest.mark.parametrize(
    ("candidate_us", "rounds", "believed"),
    [
        (repeat(50.0), 20, True),
        (chain(repeat(50.0, 11), repeat(80.0, 10), repeat(50.0)), 40, True),
        (chain(repeat(50.0, 11), repeat(80.0, 10), repeat(50.0, 21), repeat(80.0)), 40, False),
    ],
)
def test_a_machine_that_was_not_steady_is_looked_at_once_more_and_longer(candidate_us, rounds, believed):
    race, candidate = scripted_race(candidate_us)
    (timing,) = race.time()
    assert candidate.calls == (21 if rounds == 20 else 21 + 41), "one call of each look does not count"
    assert (timing.interval.pairs, timing.gain) == (rounds, believed)


def test_the_device_spins_for_all_programs_as_long_as_for_the_slowest():
    """Who spins longer takes longer outside the timestamps: it looked like work on another stream."""
    race, candidate = scripted_race(repeat(50.0))
    candidate.host_ms = 0.4
    race.time()
    assert all(process.spins_for_ms == [0.4] for process in race._processes.values())


def test_after_a_case_that_became_slower_no_other_is_timed():
    race, candidate = scripted_race(chain(repeat(50.0, 21), repeat(200.0)))
    timings = race.time((0, 1, 2))
    assert [t.gain for t in timings] == [True, False]
    assert timings[1].loss and candidate.calls == 42


@pytest.mark.parametrize("name", ["hangs", "dies"])
def test_a_program_that_never_answers_is_a_named_fault(folder, name):
    spec = ProgramSpec(folder / f"{name}.py", "run", folder / "inputs.py")
    plan = TimingPlan(rounds=2, device="cpu", warmup_s=0.0, call_timeout_s=3.0, flush_bytes=1 << 20)
    with pytest.raises(TimingError, match=name):
        time_pair(spec, spec, plan)


LEAVING = """
import sys
from pathlib import Path
from sandbox.timing_session import ProgramSpec, TimingProcess
folder = Path(sys.argv[1])
process = TimingProcess("cpu")
process.load(ProgramSpec(folder / "endless.py", "run", folder / "inputs.py"), None, 120.0)
print(process.pid, flush=True)
process.warm_up(1, 0.0, 120.0)
"""


def test_a_program_that_never_returns_does_not_outlive_a_killed_parent(folder):
    (folder / "endless.py").write_text("def run(*args):\n    while True:\n        pass\n")
    with subprocess.Popen([sys.executable, "-c", LEAVING, str(folder)], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = Path("/proc") / parent.stdout.readline().strip()
        assert child.exists()
        parent.kill()
    deadline = time.monotonic() + 120.0
    while runs(child) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not runs(child)


def runs(process: Path) -> bool:
    """Whether a process of /proc is there and no zombie that nobody collects."""
    try:
        return (process / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_runs_as_a_script(folder):
    script = Path(sandbox.benchmark.__file__)
    command = [sys.executable, str(script), str(folder / "slow.py"), str(folder / "fast.py"), "--entry", "run"]
    command += ["--inputs", str(folder / "inputs.py"), "--device", "cpu", "--rounds", "14"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=200)
    assert done.returncode in (0, 3), done.stderr
    assert json.loads(done.stdout)["device"] == "CPU"


@pytest.mark.parametrize("shape", [(3, 1 << 20), (3 << 20,), (70_000, 5, 7), (2, 1 << 21), ((1 << 20) + 1, 1)])
def test_large_results_are_compared_in_the_same_part_on_all_sides(shape: tuple[int, ...]) -> None:
    part = checked_part(shape, 7)
    assert part is not None and part == checked_part(shape, 7)
    assert any(part != checked_part(shape, seed) for seed in range(12))
    rows = [row for first, count in part["spans"] for row in range(first, first + count)]
    assert len(set(rows)) == len(rows) and min(rows) >= 0 and max(rows) * part["width"] < math.prod(shape)
    assert 0.9 * CHECKED_ELEMENTS < len(rows) * part["width"] <= CHECKED_ELEMENTS
    assert checked_part((1 << 10, 1 << 10), 7) is None


def test_a_part_of_a_large_result_is_read_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("def run(x):\n    return x.T, x[:2]\n")
    (tmp_path / "inputs.py").write_text(
        "import torch\ndef make(seed, device):\n    return (torch.arange(3 << 20).reshape(-1, 1 << 10),), {}\n"
    )
    process = TimingProcess("cpu")
    try:
        process.load(ProgramSpec(tmp_path / "program.py", "run", tmp_path / "inputs.py"), None, 120.0)
        process.prepare(1, 120.0)
        process.timed_call(120.0)
        found = process.results(5, 120.0)
    finally:
        process.close()
    whole = np.arange(3 << 20).reshape(-1, 1 << 10)
    transposed, head, argument = (found[place] for place in sorted(found))
    for value, expected in ((transposed, whole.T), (argument, whole)):
        part = checked_part(expected.shape, 5)
        assert part is not None
        rows = np.concatenate([np.arange(first, first + count) for first, count in part["spans"]])
        np.testing.assert_array_equal(value.data, expected.reshape(-1, part["width"])[rows])
    np.testing.assert_array_equal(head.data, whole[:2])


def test_integers_that_the_baseline_gives_otherwise_itself_say_nothing_about_a_timed_candidate() -> None:
    def value(*numbers: int) -> dict[str, TensorValue]:
        return {
            "first": TensorValue("int64", (1,), (1,), np.array(numbers[:1])),
            "count": TensorValue("int64", (1,), (1,), np.array(numbers[1:])),
        }

    steady = {"baseline": value(3, 7), "repeat": value(3, 7)}
    unsteady = {"baseline": value(3, 7), "repeat": value(5, 7)}
    other_first, other_count = {"candidate": value(4, 7)}, {"candidate": value(3, 8)}
    assert [m.split(":")[0] for m in _mismatches([steady | other_first])] == ["first"]
    assert _mismatches([unsteady | other_first, steady | other_first]) == []
    assert [m.split(":")[0] for m in _mismatches([unsteady | other_count])] == ["count"]


def test_two_programs_that_round_differently_may_differ_by_what_the_baseline_is_off() -> None:
    rng = np.random.default_rng(0)
    exact = rng.standard_normal(4096)

    def off(by: float) -> dict[str, TensorValue]:
        return {"sum": TensorValue("float16", (4096,), (1,), (exact * (1 + by)).astype(np.float16))}

    calls = [{"baseline": off(0.0), "repeat": off(0.0), "candidate": off(0.003)}]
    assert [m.rpartition("[")[2] for m in _mismatches(calls)] == ["tolerance]"]
    assert _mismatches(calls, own_error=0.002) == []
    assert _mismatches([calls[0] | {"candidate": off(0.05)}], own_error=0.002)
