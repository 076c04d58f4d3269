"""What `benchmarks/resources.py` holds patches to, and that the patches of the suite keep to it on both targets."""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks import resources
from benchmarks.cases import Case, load_suite
from benchmarks.resources import Comparison, Compiler, Resources, complaints, lane_atomics, line, read_reports
from sandbox.kernel import Kernel, load_kernel
from sandbox.target import load_target
from skills.skill import Site, load_library
from skills.source_facts import collect_facts

CASES = {c.name: c for c in load_suite()}
CALM = Resources("", 0, 0, 0, 0, 1024, 1024)
SAME = Comparison("k", "gfx950", "gfx950", "own", CALM, CALM)
ELSEWHERE = replace(SAME, arch="gfx942")


def test_a_patch_that_changes_nothing_is_fine() -> None:
    assert complaints(SAME, "atomics") == [] and line(SAME, []).startswith("ok   k ")
    assert complaints(replace(SAME, after=None), "atomics") == []


@pytest.mark.parametrize(
    ("row", "bottleneck", "said"),
    [
        (replace(SAME, before=replace(CALM, vgpr_spill_count=9), after=None), "", "9 VGPR spills are left"),
        (replace(ELSEWHERE, after=replace(CALM, vgpr_spill_count=20)), "", "vgpr_spill_count 0 -> 20"),
        (replace(ELSEWHERE, after=replace(CALM, sgpr_spill_count=2)), "", "sgpr_spill_count 0 -> 2"),
        (replace(ELSEWHERE, after=replace(CALM, lds_bytes=81920)), "", "LDS 1024 -> 81920 bytes, over the limit"),
        (replace(ELSEWHERE, after=replace(CALM, failure="k: no such name")), "", "no longer builds: k: no such name"),
        (replace(SAME, before=replace(CALM, lds_bytes=2**18), after=None), "", "LDS overflow is left: 262144 bytes"),
        (replace(SAME, after=replace(CALM, atomic_cas_count=2)), "atomic-cas-loops", "2 compare-and-swap instructions"),
        (replace(SAME, name="bounds_check", lane_atomics=(140, 10)), "", "less than 14.4 times fewer"),
        (replace(SAME, name="bounds_check"), "", "lane atomics None"),
    ],
)
def test_what_does_not_hold_is_named(row: Comparison, bottleneck: str, said: str) -> None:
    (wrong,) = complaints(row, bottleneck)
    assert said in wrong and line(row, [wrong]).startswith("MISS")


def test_what_is_not_of_the_patch_is_not_held_against_it() -> None:
    broken = replace(CALM, failure="tf32", lds_bytes=0)
    assert complaints(replace(ELSEWHERE, before=broken, after=broken), "") == []
    assert complaints(replace(ELSEWHERE, before=broken, after=replace(CALM, sgpr_spill_count=40)), "") == []
    assert complaints(replace(ELSEWHERE, before=broken, after=replace(CALM, vgpr_spill_count=1)), "") != []
    spilled = replace(CALM, vgpr_spill_count=9, lds_bytes=2**18)
    assert complaints(replace(ELSEWHERE, before=spilled, after=spilled), "") == []
    assert complaints(replace(ELSEWHERE, after=replace(CALM, atomic_cas_count=2)), "atomic-cas-loops") == []
    assert complaints(replace(SAME, name="bounds_check", lane_atomics=(144, 10)), "") == []


def report(arch: str, patched: str | None, metrics: list[dict[str, Any]]) -> dict[str, Any]:
    """What of a report is read."""
    return {
        "target": {"arch": arch}, "exit_code": 0 if patched else 3, "outcome": "improved" if patched else "nothing",
        "artifacts": {"patched_file": patched} if patched else {}, "speed": {"metrics": metrics}, "waterfall": [],
    }  # fmt: skip


def job(folder: Path, case: Case, content: dict[str, Any], *edits: tuple[str, str]) -> None:
    """A job's folder as `patch_suite.py` leaves it."""
    path = folder / case.name / "job"
    path.mkdir(parents=True)
    (path / "report.json").write_text(json.dumps(content))
    text = case.kernel.read_text()
    for edit in edits:
        assert edit[0] in text
        text = text.replace(*edit)
    (path / "kernel.py").write_text(text)


def test_loops_of_the_bf16_scatter_are_counted_on_both_targets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    case, counted = CASES["scatter_add"], [{"name": "lane_atomics", "before": 4.0, "after": 2.0}]
    edits = (
        ("grad, mask=mask)", 'grad, mask=mask, sem="relaxed")'),
        ("dtype=torch.bfloat16)\n", "dtype=torch.float32)\n"),
    )
    job(tmp_path / "a", case, report("gfx950", "kernel.py", counted), *edits)
    job(tmp_path / "b", case, report("gfx942", None, []))
    assert lane_atomics(read_reports([tmp_path / "a"])["scatter_add"]["gfx950"][0]) == (4.0, 2.0)
    words = ["resources", "--reports", str(tmp_path / "a"), str(tmp_path / "b"), "--only", "scatter_add"]
    monkeypatch.setattr(sys, "argv", words)
    assert resources.main() == 1
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("ok ") and "CAS loops 2 -> 0, lane atomics 4 -> 2 (2.0x)" in said[0]
    assert said[1].startswith("ok ") and "gfx950 on gfx942" in said[1] and "CAS loops 2 -> 0" in said[1]
    assert said[3].startswith("MISS") and "compare-and-swap instructions are left" in said[4]
    shutil.rmtree(tmp_path / "b" / "scatter_add")
    assert resources.main() == 1 and "not compared" in capsys.readouterr().out


def first_edit(skill_id: str, kernel: Kernel, arch: str) -> Kernel:
    module, target = load_library()[skill_id].module, load_target(arch)
    site = next(s for s in module.find(kernel, collect_facts(kernel, target, observed={}), target))
    assert isinstance(site, Site)
    edited = module.transform(kernel, site, target)
    assert edited is not None
    return edited


def test_tf32_replaced_for_gfx950_brings_gfx942_no_spills(tmp_path: Path) -> None:
    case, own, other = CASES["hstu_backward"], load_target("gfx950"), load_target("gfx942")
    compiler = Compiler(case, own, large=False)
    patched, split = tmp_path / "patched.py", tmp_path / "split.py"
    patched.write_text(first_edit("dot-precision", load_kernel(case.kernel), "gfx950").source)
    split.write_text(case.kernel.read_text().replace('"tf32"', '"bf16x3"'))
    assert "tf32" in compiler.compile(case.kernel, own).failure
    before, after = compiler.compile(case.kernel, other), compiler.compile(patched, other)
    assert before == after and after.vgpr_spill_count == 0
    assert compiler.compile(split, other).vgpr_spill_count > 0
    assert compiler.compile(patched, own) == compiler.compile(split, own)
