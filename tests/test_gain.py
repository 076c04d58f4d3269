"""How far a count has to fall before it is a gain."""

import pytest

from sandbox.gain import improvement_in_counts
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
