"""How far a count has to fall before it is a gain."""

import pytest

from sandbox.gain import improvement_in_counts, static_improvement
from sandbox.profiler.metrics import Metric, Profile
from sandbox.target import load_target


@pytest.mark.parametrize(
    ("direction", "before", "after", "gain"),
    [
        ("down", 100, 89, True),
        ("down", 100, 90, False),
        ("halved", 100, 51, False),
        ("halved", 100, 50, True),
        ("halved", 100, 0, True),
        ("halved", 0, 0, False),
        ("down", 0, 0, False),
    ],
)
def test_a_tenth_or_half(direction: str, before: int, after: int, gain: bool) -> None:
    counts = ({"lane_atomics": before}, {"lane_atomics": after})
    found = improvement_in_counts(*counts, {"executed_lane_atomics": direction}, load_target("gfx950"))
    assert (found.gain is not None) is gain
    if found.gain is not None:
        assert found.gain.metrics == {"lane_atomics": (before, after)}


@pytest.mark.parametrize(
    ("after", "gain"),
    [
        ({"cas_loop_count": 0, "global_atomic_count": 2, "instructions": 90}, True),
        ({"cas_loop_count": 2, "global_atomic_count": 2, "instructions": 40}, False),
        ({"cas_loop_count": 0, "global_atomic_count": 3, "instructions": 90}, False),
        ({"cas_loop_count": 0, "global_atomic_count": 2, "vgpr_spill_count": 1}, False),
    ],
    ids=["no-loops", "only-shorter", "more-atomics", "spills"],
)
def test_code_that_nobody_promised_anything_of(after: dict[str, int], gain: bool) -> None:
    def profiles(values: dict[str, int]) -> dict[str, Profile]:
        full = {"vgpr_spill_count": 0, **values}
        return {"k": Profile("k", "gfx950", {name: Metric(name, value) for name, value in full.items()})}

    before = profiles({"cas_loop_count": 2, "global_atomic_count": 2, "instructions": 100})
    found = static_improvement(before, profiles(after), {}, load_target("gfx950"))
    assert (found.gain is not None) is gain, found
