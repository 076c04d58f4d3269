"""The HIP suite: what is made of each kernel, beside a version by hand, in counts of the same launches."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.hip_suite import SUITE, cases, run_case

TARGETS = {"bounds_check": ("gfx942", "gfx950")}
"""Every case runs for gfx950; the script runs all for both."""
RUNS = [(case, arch) for case in cases() for arch in TARGETS.get(case["name"], ("gfx950",))]


SHORT = ("bounds_check", "register_rows", "transpose")
"""Cases of the usual run, one per kind of evidence; `make test-long` has the others."""


@pytest.mark.parametrize(
    ("case", "arch"),
    [
        pytest.param(c, a, id=f"{c['name']}-{a}", marks=[] if c["name"] in SHORT else [pytest.mark.long])
        for c, a in RUNS
    ],
)
def test_a_kernel_of_the_suite_comes_out_like_the_one_by_hand(case: dict[str, Any], arch: str, tmp_path: Path) -> None:
    row = run_case(case, arch, tmp_path)
    assert case["expects"] in row.skills, row
    assert row.good and row.outcome == "improved", row
    assert row.ours is not None and row.expert is not None, row
    assert row.ours <= 1.1 * row.expert or row.ours == 0, row


@pytest.mark.long
@pytest.mark.parametrize("name", ["embedding_backward", "index_select_backward"])
def test_fewer_atomics_cost_hardly_more_instructions_than_by_hand(name: str, tmp_path: Path) -> None:
    case = next(c for c in cases() if c["name"] == name)
    row = run_case({**case, "counter": "SQ_INSTS"}, "gfx950", tmp_path)
    assert row.ours is not None and row.expert is not None, row
    assert row.ours <= 1.02 * row.expert, row


def test_every_folder_of_the_suite_is_listed() -> None:
    assert sorted(p.name for p in SUITE.iterdir() if p.is_dir()) == sorted(c["name"] for c in cases())
