"""Kernels of other projects: fetched by digest or not at all; and the rules by which the results page counts."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from benchmarks.cases import HARNESSES, load_cases
from benchmarks.external import FetchError, described, digest, fetch
from benchmarks.results_page import Shown, Timed, best_of, rows_of, timed, totals, write

ROOT = Path(__file__).resolve().parent.parent
PINNED = yaml.safe_load((ROOT / "benchmarks" / "external.yaml").read_text())


@pytest.fixture
def mirror(tmp_path: Path) -> tuple[Path, dict[str, Any]]:
    """A folder of git directories with one repository, and how it is pinned."""
    repository = tmp_path / "mirror" / "owner" / "name"
    repository.mkdir(parents=True)
    (repository / "kernel.py").write_text("x = 1\n")
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    for words in (["init", "-q"], ["add", "."], [*identity, "commit", "-qm", "first"]):
        subprocess.run(["git", *words], cwd=repository, check=True)
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=repository, capture_output=True, text=True, check=True)
    return tmp_path / "mirror", {"name": {"github": "owner/name", "commit": head.stdout.strip(), "licence": "MIT"}}


def case_of(sha256: str) -> dict[str, Any]:
    files = [{"path": "kernel.py", "as": "kernel.py", "sha256": sha256}]
    return {"name": "one", "repository": "name", "kernel": "kernel.py", "files": files}


def test_a_file_comes_out_of_the_mirror_with_its_digest(mirror: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    folder, repositories = mirror
    fetch(case_of(digest(b"x = 1\n")), repositories, tmp_path / "out", folder)
    assert (tmp_path / "out" / "kernel.py").read_bytes() == b"x = 1\n"


def test_another_file_than_the_pinned_one_is_refused(mirror: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    folder, repositories = mirror
    with pytest.raises(FetchError, match="pinned is 0000"):
        fetch(case_of("0000"), repositories, tmp_path / "out", folder)
    assert not (tmp_path / "out" / "kernel.py").exists()
    with pytest.raises(FetchError, match="holds no git directory"):
        fetch(case_of("0000"), repositories, tmp_path / "out", tmp_path / "nothing")


def test_every_pinned_kernel_has_a_harness_of_ours_and_a_full_pin() -> None:
    assert len(PINNED["cases"]) >= 12
    for case in PINNED["cases"]:
        assert (HARNESSES / case["harness"]).is_file() and case["files"][0]["as"] == case["kernel"]
        assert all(len(f["sha256"]) == 64 for f in case["files"])
        used = {f.get("repository", case["repository"]) for f in case["files"]}
        assert all(len(PINNED["repositories"][r]["commit"]) == 40 for r in used)


def test_cases_are_chosen_by_name_or_kind(tmp_path: Path) -> None:
    (tmp_path / "cases.json").write_text(json.dumps(list(described(PINNED["cases"], PINNED["repositories"]))))
    assert {c.name for c in load_cases(tmp_path, ["external"])} == {c["name"] for c in PINNED["cases"]}
    assert [c.name for c in load_cases(tmp_path, ["gemm", "fla_hgrn"])] == ["gemm", "fla_hgrn"]
    with pytest.raises(ValueError, match="no case gem"):
        load_cases(tmp_path, ["gem"])


@pytest.mark.parametrize("module", ["benchmarks.cases", "benchmarks.results_page"])
def test_what_runs_beside_the_gpu_needs_the_standard_library_only(module: str) -> None:
    said = f"import sys, {module}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", said], cwd=ROOT, capture_output=True, text=True, check=True)
    assert not {"yaml", "pydantic", "numpy"} & {name.split(".")[0] for name in done.stdout.split()}


def measured(ratio: float, half: float, suspicions: tuple[str, ...] = ()) -> dict[str, Any]:
    interval = {"ratio": ratio, "low": ratio - half, "high": ratio + half, "pairs": 20}
    gain = interval["low"] > 1.02 and not suspicions
    times = {"baseline_median_us": 100.0, "candidate_median_us": 100.0 / ratio}
    return {"interval": interval, "gain": gain, "noise_floor": 0.02, "suspicions": suspicions, "device": "D"} | times


def test_only_what_a_clock_believes_is_counted() -> None:
    assert timed(measured(1.5, 0.1)).counted == 1.5  # type: ignore[union-attr]
    assert timed(measured(1.01, 0.1)).counted == 1.0  # type: ignore[union-attr]
    assert timed(measured(0.8, 0.05)).counted == 0.8  # type: ignore[union-attr]
    assert timed(measured(9.0, 0.1, ("wrong result",))) == Timed(
        "suspect", 9.0, 8.9, 9.1, 100.0, 100.0 / 9.0, "wrong result"
    )
    assert timed({"fault": "a\nno memory"}) == Timed("not-timed", note="no memory")


def test_a_variant_is_ours_where_it_is_surely_faster() -> None:
    def row(ours: dict[str, Any] | None, **variants: dict[str, Any]) -> dict[str, Any]:
        listed = [{"edit": name, "timing": timing} for name, timing in variants.items()]
        return {"bottleneck": "latency", "variants": listed} | ({"ours": ours} if ours else {})

    patch = measured(1.5, 0.1)
    assert best_of(row(patch, close=measured(1.6, 0.05), wrong=measured(3.0, 0.1, ("wrong",)))) == (patch, "")
    assert best_of(row(patch, good=measured(1.8, 0.1), better=measured(2.0, 0.1)))[1] == "better"
    assert best_of(row(measured(0.7, 0.01), good=measured(1.2, 0.1)))[1] == "good"
    assert best_of(row(None, slow=measured(0.9, 0.01), gone={"fault": "no memory"})) == (None, "")
    shown = {"k": {"gfx950": Shown("gfx950", "builds-now", "emulated", "none", "", ("a",), amd_only=True)}}
    (tuned,) = rows_of({"k": row(measured(0.7, 0.01), good=measured(1.2, 0.1))}, shown)
    assert tuned.counted == 1.2 and not tuned.says_nothing and tuned.tuned == "good"


def test_unimproved_kernels_pull_the_means_to_one(tmp_path: Path) -> None:
    named = {"bottleneck": "atomics", "origin": ""}
    results = {
        "better": named | {"ours": measured(4.0, 0.1), "expert": measured(2.0, 0.1)},
        "same": named | {"expert": measured(2.0, 0.1)},
        "alone": named | {"baseline": measured(1.0, 0.01)},
        "hip": named | {"ours": measured(0.5, 0.01)},
    }
    report = tmp_path / "amd" / "hip" / "job"
    report.mkdir(parents=True)
    said = {"level": "static", "statement": "VGPR spills 9 -> 0"}
    content = {"target": {"arch": "gfx950"}, "outcome": "improved", "correctness": {"level": "emulated"}, "speed": said}
    (report / "report.json").write_text(json.dumps(content | {"summary": "Better."}))
    (report / "waterfall.svg").write_text("<svg/>")
    (report.parent / "summary.json").write_text(json.dumps({"skills": {"spill-relief": False}}))
    numbers = write(tmp_path, results, [tmp_path / "amd"])["totals"]
    assert numbers["n"] == 4 and numbers["improved_by_clock"] == 1 and numbers["improved_amd_only"] == 1
    assert numbers["geomean"] == pytest.approx(4.0**0.25) and numbers["median"] == 1.0
    assert numbers["ours_over_expert"] == pytest.approx(1.0) and numbers["ours_over_expert_n"] == 2
    page = (tmp_path / "results.md").read_text()
    assert "0.50x [0.49, 0.51] (slower), not counted: for AMD only" in page and numbers["slower"] == 0
    assert "| hip | spill-relief | gfx950 | emulated, static | VGPR spills 9 -> 0 |" in page
    assert (tmp_path / "waterfalls" / "hip-gfx950.svg").is_file() and "<svg" in (tmp_path / "results.svg").read_text()
    assert totals(rows_of({}, {}))["n"] == 0
