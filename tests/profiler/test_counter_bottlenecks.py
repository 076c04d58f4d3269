"""What counters say is wrong, and what they must not say: the known misfires of simpler rules."""

from __future__ import annotations

from pathlib import Path

import pytest

from sandbox.counter_bottlenecks import RunFacts, classify_counters, thresholds
from sandbox.profiler.counters import metrics_of
from sandbox.profiler.metrics import Metric, Profile
from sandbox.profiler.rocprof import read_rocprof
from sandbox.target import load_target

DATA = Path(__file__).parent.parent / "data" / "rocprof"
GOOD = {
    "duration_us": 500.0, "hbm_read_bytes": 1e9, "hbm_write_bytes": 2e8, "l2_hit_percent": 60.0, "wait_share": 0.4,
    "waves_per_active_cu": 20.0, "valu_active_lanes_percent": 95.0, "atomic_share": 0.0,
    "lds_conflicts_per_access": 0.0, "lds_utilisation_percent": 30.0, "read_bytes_per_lane": 4.0,
    "write_bytes_per_lane": 4.0,
}  # fmt: skip


def profile(**changes: float | None) -> Profile:
    values = {**GOOD, **changes}
    return Profile("k", "gfx942", {n: Metric(n, v, source="rocprofv3") for n, v in values.items()})


def names(found: object) -> list[str]:
    return [b.name for b in found]  # type: ignore[attr-defined]


@pytest.mark.parametrize(("folder", "board"), [("MI300X_rocpd", "MI300X"), ("MI300X", "MI300X"), ("MI350", "MI350X")])
def test_a_perfect_copy_is_not_blamed(folder: str, board: str) -> None:
    """34% L2 hit, "25% coalescing" and no atomic latency are normal there: none of them is a finding."""
    data = read_rocprof(DATA / folder)
    target = load_target(board)
    run = RunFacts(unique_read_bytes=8_388_608, element_bytes=8)
    for dispatch in data.dispatches[:3]:
        metrics = metrics_of(dispatch, data.agent(dispatch.agent_id), target, "rocprofv3")
        found = names(classify_counters(Profile("vecCopy", target.arch, metrics), target, run))
        assert not {"l2-locality", "uncoalesced", "atomics", "lds-bank-conflicts", "divergence"} & set(found), found


def test_every_threshold_has_a_source() -> None:
    assert all(len(t.source) > 10 for t in thresholds().values())


@pytest.mark.parametrize(
    ("changes", "run", "expected"),
    [
        ({"hbm_read_bytes": 2e9}, RunFacts(), "memory-bound"),
        ({"hbm_read_bytes": 8e8}, RunFacts(unique_read_bytes=1e8), "l2-locality"),
        ({"waves_per_active_cu": 4.0}, RunFacts(), "low-occupancy"),
        ({"valu_active_lanes_percent": 20.0}, RunFacts(), "divergence"),
        ({"instructions_mfma": 1e6, "mfma_utilisation_percent": 8.0}, RunFacts(), "idle-matrix-units"),
        ({"atomic_share": 0.4, "atomic_latency_cycles": 5000.0}, RunFacts(), "atomics"),
        ({"atomic_share": 0.4, "atomic_latency_cycles": None}, RunFacts(), "atomics"),
        ({"lds_conflicts_per_access": 3.0}, RunFacts(), "lds-bank-conflicts"),
        ({"read_bytes_per_lane": 128.0}, RunFacts(), "uncoalesced"),
        ({"write_bytes_per_lane": 8.0}, RunFacts(element_bytes=4), "uncoalesced"),
        ({"wait_share": 0.9}, RunFacts(), "latency-bound"),
        ({"duration_us": 4.0, "hbm_read_bytes": 1e6, "hbm_write_bytes": 0.0}, RunFacts(), "launch-bound"),
        ({}, RunFacts(workgroups=305 * 2, workgroups_per_cu=2), "wave-quantisation"),
    ],
)
def test_one_planted_fault_is_named_first(changes: dict[str, float | None], run: RunFacts, expected: str) -> None:
    found = classify_counters(profile(**changes), load_target("MI300X"), run)
    assert names(found)[0] == expected, names(found)
    assert found[0].evidence


def test_nothing_wrong_and_nothing_known() -> None:
    assert classify_counters(profile(), load_target("MI300X")) == ()
    assert classify_counters(Profile("k", "gfx942", {}), load_target("MI300X")) == ()


def test_conflicts_in_idle_lds_do_not_matter() -> None:
    found = classify_counters(profile(lds_conflicts_per_access=5.0, lds_utilisation_percent=1.0), load_target("MI300X"))
    assert "lds-bank-conflicts" not in names(found)


def test_upper_bounds() -> None:
    (memory,) = classify_counters(profile(hbm_read_bytes=2.45e9), load_target("MI300X"))
    assert memory.at_most == pytest.approx(1.0)  # 2.65 GB in 500 us is the whole 5.3 TB/s
    (tail,) = classify_counters(profile(), load_target("MI300X"), RunFacts(workgroups=305, workgroups_per_cu=1))
    assert tail.at_most == pytest.approx(2 * 304 / 305)
