"""Every corpus kernel, compiled for both architectures, is right under all four schedules."""

from __future__ import annotations

import pytest
from compile_corpus import find_clang
from corpus.case import HipSource
from corpus.catalogue import all_cases
from run_corpus import check_case

from sandbox.emulator import fast

SCHEDULES = ("lockstep", "sequential", "reverse", "random")
CASES = {case.name: case for case in all_cases()}
RUNS = [(name, arch) for name, case in CASES.items() for arch in case.archs]


@pytest.mark.parametrize(("name", "arch"), RUNS, ids=[f"{name}-{arch}" for name, arch in RUNS])
def test_kernel_is_right_under_every_schedule(name: str, arch: str) -> None:
    case = CASES[name]
    if isinstance(case.source, HipSource) and find_clang() is None:
        pytest.skip("no clang with the amdgcn back end")
    core = "fast" if fast.available() else "reference"
    for schedule in SCHEDULES if core == "fast" else SCHEDULES[:1]:
        check_case(case, arch, schedule, core, seed=7)


def test_corpus_is_large_enough() -> None:
    assert len(CASES) >= 60
    assert sum(isinstance(case.source, HipSource) for case in CASES.values()) >= 30
