"""The classifier on profiles with known numbers: what it names, in which order, and when it stays silent."""

import pytest

from sandbox.bottleneck import Bottleneck, LaunchShape, classify
from sandbox.profiler.metrics import Metric, Profile
from sandbox.target import load_target

GFX942 = load_target("gfx942")


def found(launch: LaunchShape | None = None, **values: float | str) -> dict[str, Bottleneck]:
    profile = Profile("k", "gfx942", {name: Metric(name, value) for name, value in values.items()})
    ranked = classify(profile, GFX942, launch)
    assert [b.severity for b in ranked] == sorted((b.severity for b in ranked), reverse=True)
    return {b.name: b for b in ranked}


def test_nothing_is_concluded_from_nothing() -> None:
    assert found() == {}
    assert found(LaunchShape(has_dot=True)) == {}


def test_spills_in_loops_weigh_more() -> None:
    outside = found(vgpr_spill_count=39, scratch_bytes=160)["vgpr-spills"]
    inside = found(vgpr_spill_count=39, scratch_bytes=160, scratch_count_in_loops=24)["vgpr-spills"]
    assert inside.severity > outside.severity
    assert "39 vector registers" in inside.statement and inside.evidence["scratch_count_in_loops"] == 24


def test_occupancy_names_its_limiter() -> None:
    low = found(occupancy_waves_per_simd=1, occupancy_limiter="vgpr", vgpr_count=420)["low-occupancy"]
    assert "1 of 8 waves" in low.statement and "vgpr_count 420" in low.statement
    matrix = found(occupancy_waves_per_simd=1, occupancy_limiter="vgpr", vgpr_count=420, mfma_count=64)
    assert matrix["low-occupancy"].severity < low.severity
    assert found(occupancy_waves_per_simd=8, occupancy_limiter="waves") == {}
    assert found(occupancy_waves_per_simd=4, occupancy_limiter="vgpr", vgpr_count=120) == {}


def test_atomics_loops_fences_and_contention() -> None:
    names = found(global_atomic_count=3, cas_loop_count=2, cache_maintenance_count=6)
    assert list(names) == ["atomic-cas-loops", "atomics", "fences"]
    calm = found(global_atomic_count=1)["atomics"]
    contended = found(global_atomic_count=1, atomic_contention=10_000)["atomics"]
    assert contended.severity > calm.severity and "10000 lanes" in contended.statement
    assert found(cache_maintenance_count=6) == {}


def test_transcendentals_count_by_issue_slots() -> None:
    heavy = found(valu_count_in_loops=60, transcendental_count_in_loops=30)["transcendental"]
    assert "95%" in heavy.statement and heavy.at_most == pytest.approx(20)
    assert found(valu_count_in_loops=1000, transcendental_count_in_loops=30) == {}


def test_instructions_that_hide_behind_memory_are_no_bottleneck() -> None:
    """AdamW: 28 bytes an element against two divisions and a root. Twenty times the arithmetic is another matter."""
    adamw = {
        "global_load_count": 4,
        "global_load_mean_bytes": 16,
        "global_store_count": 3,
        "global_store_mean_bytes": 16,
    }
    assert "transcendental" not in found(valu_count=160, transcendental_count=20, **adamw)
    assert "transcendental" in found(valu_count=1600, transcendental_count=400, **adamw)
    assert "transcendental" in found(valu_count=160, transcendental_count=20, mfma_count=8, **adamw), (
        "data from a cache"
    )
    inner = {"valu_count_in_loops": 160, "transcendental_count_in_loops": 20}
    assert "transcendental" in found(**inner, **adamw), "a loop that reads nothing"


def test_narrow_accesses() -> None:
    narrow = found(global_load_count=8, global_load_mean_bytes=2.0, global_store_count=8, global_store_mean_bytes=4.0)[
        "narrow-accesses"
    ]
    assert "3.0 bytes per lane" in narrow.statement
    assert found(global_load_count=8, global_load_mean_bytes=16.0) == {}


def test_dot_without_matrix_instructions() -> None:
    assert "no-matrix-instructions" in found(LaunchShape(has_dot=True), mfma_count=0, valu_count=900)
    assert found(LaunchShape(has_dot=False), mfma_count=0, valu_count=900) == {}


def test_operands_converted_in_software() -> None:
    assert "software-conversion" in found(mfma_count=32, mfma_count_in_loops=16, valu_count_in_loops=3400)
    assert "software-conversion" not in found(mfma_count=32, mfma_count_in_loops=16, valu_count_in_loops=200)


def test_grid_pipeline_doubles_and_moves() -> None:
    small = found(LaunchShape(programs=64))["small-grid"]
    assert "64 workgroups for 304 compute units" in small.statement
    deep = found(LaunchShape(num_stages=4), occupancy_limiter="lds", lds_bytes=65536, occupancy_waves_per_simd=4)
    assert "deep-pipeline" in deep
    assert "fp64" in found(fp64_count=20, fp64_count_in_loops=10)
    assert "register-moves" in found(accvgpr_move_count_in_loops=200, mfma_count_in_loops=64)


def test_a_few_spills_among_thousands_of_instructions_weigh_little() -> None:
    few = found(vgpr_spill_count=28, scratch_count_in_loops=5, valu_count_in_loops=1500)["vgpr-spills"]
    many = found(vgpr_spill_count=28, scratch_count_in_loops=200, valu_count_in_loops=1500)["vgpr-spills"]
    assert few.severity < 0.5 < many.severity


def test_a_small_grid_matters_where_waves_are_long() -> None:
    brief = found(LaunchShape(programs=64), waves=256, instructions_executed=256 * 300)["small-grid"]
    long = found(LaunchShape(programs=64), waves=256, instructions_executed=256 * 90_000)["small-grid"]
    assert brief.severity < long.severity and long.at_most == 304 / 64
