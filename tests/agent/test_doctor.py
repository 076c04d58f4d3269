"""The doctor says what is there, what is missing and what can be proven."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent import doctor
from agent.doctor import Gpu, findings, reach, visible_gpus
from sandbox.verdict import Correctness, Speed


def test_every_check_answers_and_what_is_wrong_has_a_remedy() -> None:
    found = {f.name: f for f in findings()}
    assert {"python", "torch", "triton", "isolation", "gpu", "hip compiler", "emulator", "cache", "git"} <= found.keys()
    assert all(f.detail for f in found.values())
    assert all(f.remedy for f in found.values() if not f.ok)


def test_levels_follow_from_the_devices() -> None:
    alone = {r.arch: r for r in reach(())}
    assert (alone["gfx950"].correctness, alone["gfx950"].speed) == (Correctness.EMULATED, Speed.COUNTED)
    assert (alone["sm_90"].correctness, alone["sm_90"].speed) == (Correctness.INTERPRETED, Speed.STATIC)
    with_h200 = {r.arch: r for r in reach((Gpu("NVIDIA H200", "sm_90"),))}
    assert with_h200["sm_90"].speed is Speed.MEASURED
    assert with_h200["gfx950"].speed is Speed.MEASURED_ELSEWHERE
    assert {r.arch: r for r in reach((Gpu("AMD GPU", "gfx942"),))}["gfx942"].correctness is Correctness.EXECUTED


@pytest.mark.parametrize(("version", "arch"), [("90402", "gfx942"), ("90500", "gfx950"), ("90010", "gfx90a")])
def test_amd_devices_are_read_from_the_topology(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, arch: str
) -> None:
    for number, text in enumerate(["simd_count 0\ngfx_target_version 0\n", f"gfx_target_version {version}\n", "junk"]):
        (tmp_path / str(number)).mkdir()
        (tmp_path / str(number) / "properties").write_text(text)
    monkeypatch.setattr(doctor, "_KFD_NODES", tmp_path)
    assert [g.arch for g in visible_gpus() if g.arch.startswith("gfx")] == [arch]
