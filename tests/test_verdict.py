"""The two evidence scales are ordered, and only the words of the design are used for them."""

import pytest

from sandbox.statements import static_statement
from sandbox.verdict import Correctness, Interval, Speed


def test_scales_are_ordered_weakest_first() -> None:
    assert [str(c) for c in sorted(Correctness)] == [
        "none", "compiled", "interpreted", "executed-elsewhere", "emulated", "executed",
    ]  # fmt: skip
    assert [str(s) for s in sorted(Speed, reverse=True)] == [
        "measured", "measured-elsewhere", "counted", "static", "modelled", "none",
    ]  # fmt: skip


def test_validated_starts_at_interpreted() -> None:
    assert [c for c in Correctness if c.validated] == [c for c in Correctness if c >= Correctness.INTERPRETED]
    assert not Correctness.COMPILED.validated


def test_the_two_scales_do_not_compare() -> None:
    with pytest.raises(TypeError):
        assert Correctness.COMPILED < Speed.STATIC  # type: ignore[operator]


def test_an_interval_reads_as_a_ratio() -> None:
    assert str(Interval(1.4312, 1.391, 1.474, 40)) == "1.43x [1.39, 1.47]"


def test_names_of_kernels_are_left_as_they_are() -> None:
    moved = {"_group_norm_bwd: cache_maintenance_count": (4.0, 0.0), "vgpr_spill_count": (3.0, 0.0)}
    assert static_statement(moved) == "_group_norm_bwd: cache maintenance 4 -> 0, VGPR spills 3 -> 0"
