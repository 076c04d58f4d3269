"""Which answers of the clock count: a gain only when other processes see it too."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sandbox import timed
from sandbox.benchmark import PairTiming, TimingPlan, median_ratio_interval
from sandbox.kernel import Kernel, parse_kernel
from sandbox.target import load_target
from sandbox.tensor_file import TensorFile
from sandbox.timed import CallTimer, RecordedCall, timed_gain
from sandbox.workload import HarnessOutcome, StoredWorkload, Workload

STORED = StoredWorkload(
    Workload("k.py", "", "gfx950", "MI350X", (), (), (), HarnessOutcome("main", "passed"), {}), TensorFile({}, {})
)


def kernel(text: str) -> Kernel:
    return parse_kernel(f"import triton\n{text}\n".encode(), "k.py")


def timing(candidate_us: float, *suspicions: str) -> PairTiming:
    us = [[t + i % 3 * 0.1 for i in range(20)] for t in (100.0, candidate_us)]
    interval = median_ratio_interval(us[0], us[1], 0)
    return PairTiming("H", interval, 0.02, tuple(us[0]), tuple(us[1]), tuple(us[0]), 0, suspicions)


DOUBT = "candidate: work on another stream or thread"


@pytest.mark.parametrize(
    ("answers", "looks", "outcome"),
    [
        ([timing(50.0), timing(60.0)], 2, "gain 1.67x"),
        ([timing(90.0), timing(100.0)], 2, "no difference"),
        ([timing(100.0, DOUBT), timing(100.0)], 2, "no difference"),
        ([timing(100.0)], 1, "no difference"),
        ([timing(120.0), timing(110.0)], 2, "slower: 0.91x"),
        ([timing(120.0), timing(100.0)], 2, "no difference"),
        ([timing(120.0), timing(80.0)], 2, "no difference"),
        ([timing(80.0), timing(120.0)], 2, "no difference"),
        ([timing(50.0, DOUBT), timing(50.0), timing(55.0)], 3, "gain 1.82x"),
        ([timing(50.0, DOUBT), timing(50.0), timing(100.0)], 3, "no difference"),
        ([timing(50.0, DOUBT), timing(50.0, DOUBT), timing(50.0)], 3, "no difference"),
        ([timing(50.0, DOUBT)] * 3, 3, "the times cannot be believed"),
        ([replace(timing(50.0), wrong_results=("candidate: wrong result: 3 elements",))], 1, "in a timed call"),
    ],
)
def test_a_gain_has_to_be_seen_by_new_processes_too(monkeypatch, answers, looks, outcome):
    """The timings are made by hand, all else is the product's."""
    races = []

    class Race:
        def __init__(self, baseline, plan, cases):
            races.append(plan.seed)
            self.compiled = baseline.environment["TRITON_CACHE_DIR"]
            self.timings = [answers[len(races) - 1]]

        def enter(self, candidate):
            assert candidate.environment["TRITON_CACHE_DIR"] != self.compiled, "neither sees what the other compiled"

        def time(self, cases, own_errors):
            assert (cases, own_errors) == ([0], {0: 0.25})
            return self.timings

        def leave(self): ...

        def close(self): ...

    monkeypatch.setattr(timed, "Race", Race)
    timer = CallTimer(STORED, [RecordedCall(0, own_error=0.25)], TimingPlan())
    found = timed_gain(timer.time(kernel("a = 1"), kernel("a = 2")), load_target("gfx950"))
    timer.close()
    assert races == list(range(looks)), "other processes, other inputs"
    said = f"gain {found.gain.interval.ratio:.2f}x" if found.gain and found.gain.interval else found.reason
    assert said.startswith(outcome)


def test_a_call_that_only_the_second_look_timed_shows_no_gain():
    first, second = [timing(120.0)], [timing(100.0), timing(50.0), timing(200.0)]
    assert [(t.gain, t.loss) for t in timed._seen_twice(first, second)] == [(False, False)] * 3
    assert [t.gain for t in timed._seen_twice([timing(100.0), timing(60.0)], second[:2])] == [False, True]
