"""Launch limits: each finding says its numbers."""

import pytest

from sandbox.limits import check_launch
from sandbox.target import load_target

GFX942, GFX950, SM90 = load_target("gfx942"), load_target("gfx950"), load_target("sm_90")


def kinds(target, **launch):
    asked = {"lds_bytes": 0, "threads_per_workgroup": 256, "grid": (1, 1, 1), **launch}
    return [(f.kind, f.fatal) for f in check_launch(target, **asked)]


def test_an_ordinary_launch_has_no_finding() -> None:
    assert kinds(GFX942, lds_bytes=65536, threads_per_workgroup=1024, grid=(4096, 4, 2)) == []


@pytest.mark.parametrize(("target", "limit"), [(GFX942, 65536), (GFX950, 163840), (SM90, 232448)])
def test_lds(target, limit: int) -> None:
    assert kinds(target, lds_bytes=limit) == []
    finding = check_launch(target, lds_bytes=limit + 16, threads_per_workgroup=64, grid=(1,))[0]
    assert finding.kind == "lds" and finding.fatal
    assert str(limit) in finding.message and str(limit + 16) in finding.message and target.arch in finding.message


def test_threads_of_a_workgroup() -> None:
    finding = check_launch(GFX950, lds_bytes=0, threads_per_workgroup=2048, grid=(1,))[0]
    assert finding.kind == "threads_per_workgroup"
    assert finding.message == "32 warps x 64 lanes = 2048 threads per workgroup > 1024 on gfx950"
    assert kinds(SM90, threads_per_workgroup=1024) == []


def test_threads_of_a_grid() -> None:
    assert kinds(GFX942, grid=(17_187_500,)) == [("grid_threads", True)]
    assert kinds(GFX942, grid=(2**24,)) == [("grid_threads", True)]
    assert kinds(GFX942, grid=(2**24 - 1,)) == [("grid_threads", False)]
    assert kinds(GFX942, grid=(2**23 - 1,)) == []
    assert kinds(GFX942, grid=(4096, 4096, 2)) == [("grid_threads", True)]
    assert kinds(SM90, grid=(17_187_500,)) == []
    finding = check_launch(GFX942, lds_bytes=0, threads_per_workgroup=256, grid=(17_187_500,))[0]
    assert "17187500 workgroups x 256 threads = 4400000000" in finding.message


def test_axes_of_a_grid() -> None:
    assert kinds(SM90, grid=(1, 70000, 1)) == [("grid_axis", True)]
    assert kinds(GFX942, grid=(1, 70000, 1)) == []
    assert kinds(GFX942, grid=(0, 4, 1)) == [("grid_empty", False)]


def test_fatal_findings_come_first() -> None:
    found = kinds(GFX942, lds_bytes=98304, grid=(2**24 - 1,))
    assert found == [("lds", True), ("grid_threads", False)]
