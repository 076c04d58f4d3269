"""The folder a job leaves: its patch applies, its report reads back, and no word claims more than was shown."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from pydantic import ValidationError

from agent.baseline import Baseline
from agent.candidate import NEEDS_CLOCK, Attempt, Candidate, Failure, Fate, Judgement, Measurement, Proposal, Unmatched
from agent.conclusion import conclude
from agent.job import JobRequest, Options, Outcome
from agent.report import Report, load_report
from agent.report_build import build_report
from agent.report_folder import write_folder
from agent.search import Found
from agent.stats import hit_rates, wilson
from sandbox.errors import InputError
from sandbox.kernel import Kernel, parse_kernel
from sandbox.profiler.metrics import Metric, Profile
from sandbox.target import load_target
from sandbox.tensor_file import TensorFile
from sandbox.verdict import Accepted, Check, Correctness, Gain, Interval, NoGain, Speed, Verdict
from sandbox.workload import HarnessOutcome, StoredWorkload, Workload
from skills.facts import Facts
from skills.skill import Refusal

ORIGINAL = b"import triton\r\n\r\nx = 1\r\n# <script>alert(1)</script>\r\ny = 2"
TARGET = load_target("gfx950")


def make_request() -> JobRequest:
    return JobRequest(parse_kernel(ORIGINAL, "k.py"), TARGET, "src/k.py", ORIGINAL, options=Options(seed=3))


def profile(spills: int) -> Profile:
    return Profile("k", "gfx950", {"vgpr_spill_count": Metric("vgpr_spill_count", spills)})


def make_baseline(request: JobRequest, *failures: Failure) -> Baseline:
    harness = HarnessOutcome("main", "passed")
    workload = Workload("k.py", "d", "gfx950", "MI350X", (), (), (), harness, {"triton": "3.6.0"})
    measured = Measurement(request.kernel, Facts({}), failures, {"k": profile(37)}, ("register spills",))
    return Baseline(measured, StoredWorkload(workload, TensorFile({})), "interpreter", versions={"llvm": "22"})


def attempt(
    kernel: Kernel, parent: Kernel, verdict: Verdict, fate: Fate, name: str = "fit-lds:num_stages=2"
) -> Attempt:
    proposal = Proposal(name, name.split(":")[0], "Fit the LDS", "lds_bytes = 98304 | > 65536", kernel, line=3)
    return Attempt(proposal, parent, fate, "VGPR spills 37 -> 0", 1.25, Judgement(verdict), parent)


def finish(folder: Path, verdict: Verdict, fate: Fate = Fate.KEPT, *failures: Failure) -> Report:
    request = make_request()
    baseline = make_baseline(request, *failures)
    better = request.kernel.with_source(request.kernel.source.replace("x = 1", "x = 3"))
    tried = attempt(better, request.kernel, verdict, fate)
    best = Candidate(request.kernel).extend(tried) if fate is Fate.KEPT else Candidate(request.kernel)
    measured = Measurement(best.kernel, Facts({}), profiles={"k": profile(0)})
    final = tried.judgement if fate is Fate.KEPT else None
    refusals = (Refusal("dot_scaled has no counterpart", 4, "Decode one operand", "fp4"),)
    unmatched = (Unmatched("pid-swizzle", "Swizzle", "grid = 1, not > 8"),)
    found = Found(best, measured, final, (tried,), refusals, unmatched)
    conclusion = conclude(baseline.measurement, found, TARGET, request.options.require)
    report = build_report(request, baseline, found, conclusion, seconds=12.34)
    return write_folder(folder, request, conclusion, report)


GAIN = Gain(Speed.STATIC, "VGPR spills 37 -> 0", metrics={"vgpr_spill_count": (37.0, 0.0)})
ACCEPTED = Accepted(Correctness.INTERPRETED, Speed.STATIC, GAIN, checks=(Check("values", True, "3 seeds"),))


def test_the_patch_applies_to_the_file_as_it_lies_on_disk(tmp_path: Path) -> None:
    report = finish(tmp_path / "out", ACCEPTED)
    assert report.outcome == Outcome.IMPROVED and report.artifacts.patch
    repo = tmp_path / "repo"
    subprocess.run(["git", "init", "-q", repo], check=True)
    (repo / "src").mkdir()
    (repo / "src/k.py").write_bytes(ORIGINAL)
    subprocess.run(["git", "apply", tmp_path / "out" / report.artifacts.patch], cwd=repo, check=True)
    assert (repo / "src/k.py").read_bytes() == ORIGINAL.replace(b"x = 1", b"x = 3")
    patched = tmp_path / "out" / str(report.artifacts.patched_file)
    assert patched.read_bytes() == (repo / "src/k.py").read_bytes()


def test_the_report_reads_back_and_forbids_what_it_does_not_know(tmp_path: Path) -> None:
    report = finish(tmp_path, ACCEPTED)
    text = (tmp_path / "report.json").read_text()
    assert load_report(text) == report and report.exit_code == 0
    assert report.speed.metrics[0].before == 37 and report.speed.ratio is None
    assert report.attempts[0].diff.startswith("diff --git a/src/k.py b/src/k.py")
    assert {"triton", "llvm", "python"} <= {v.name for v in report.toolchain}
    data = json.loads(text)
    with pytest.raises(ValidationError):
        load_report(json.dumps({**data, "more": 1}))
    with pytest.raises(ValidationError):
        load_report(json.dumps({**data, "schema_version": 2}))
    assert json.dumps(Report.model_json_schema())


def test_words_are_never_stronger_than_the_evidence(tmp_path: Path) -> None:
    report = finish(tmp_path, ACCEPTED)
    markdown = (tmp_path / "report.md").read_text()
    assert (
        "faster" not in markdown and "did not run on a gfx950" in markdown and "Not timed on gfx950" in report.summary
    )
    compiled = finish(tmp_path, Accepted(Correctness.COMPILED, Speed.STATIC, GAIN))
    assert compiled.outcome == Outcome.INCONCLUSIVE and compiled.artifacts.patch is None
    assert "validated" not in (tmp_path / "report.md").read_text().replace("not validated", "")


def test_measured_gains_carry_interval_and_device(tmp_path: Path) -> None:
    gain = Gain(Speed.MEASURED, "1.43x [1.39, 1.47] on MI350X", Interval(1.43, 1.39, 1.47, 30), "AMD Instinct MI350X")
    report = finish(tmp_path, Accepted(Correctness.EXECUTED, Speed.MEASURED, gain))
    assert (report.speed.ratio, report.speed.low, report.speed.pairs) == (1.43, 1.39, 30)
    assert "Not timed" not in report.summary and report.waterfall[0].ratio == 1.43


def test_the_waterfall_is_an_accessible_picture(tmp_path: Path) -> None:
    finish(tmp_path, ACCEPTED)
    root = ElementTree.parse(tmp_path / "waterfall.svg").getroot()
    assert root.get("role") == "img" and root.get("aria-labelledby") == "t d"
    words = " ".join(root.itertext())
    assert "Fit the LDS" in words and "37 → 0" in words


def test_markdown_keeps_tables_whole_and_shows_no_markup_of_others(tmp_path: Path) -> None:
    failure = Failure("k", "boom |\n<img src=x>", 3, "x = 1")
    finish(tmp_path, NoGain(Correctness.INTERPRETED, "nothing | moved"), Fate.DROPPED, failure)
    markdown = (tmp_path / "report.md").read_text()
    assert "<img" not in markdown and "&lt;img src=x>" in markdown
    rows = [line for line in markdown.splitlines() if line.startswith("| 1 |")]
    assert rows and rows[0].replace("\\|", "").count("|") == 7


def test_an_offer_has_its_own_patch_and_an_old_result_is_cleared(tmp_path: Path) -> None:
    finish(tmp_path, ACCEPTED)
    unshown = finish(tmp_path, NoGain(Correctness.INTERPRETED, "unmeasured"), Fate.UNSHOWN)
    assert unshown.outcome == Outcome.INCONCLUSIVE and unshown.exit_code == 5
    assert not (tmp_path / "wavesmith.patch").exists() and not (tmp_path / "waterfall.svg").exists()
    assert b"+x = 3\r\n" in (tmp_path / unshown.offers[0].patch).read_bytes()
    finish(tmp_path, NoGain(Correctness.INTERPRETED, "no"), Fate.DROPPED)
    assert not list(tmp_path.glob("offer-*"))


def test_hit_rates_count_reports(tmp_path: Path) -> None:
    finish(tmp_path / "a", ACCEPTED)
    finish(tmp_path / "b", NoGain(Correctness.INTERPRETED, "no"), Fate.DROPPED)
    (rate,) = hit_rates([tmp_path])
    counted = (rate.skill, rate.tried, rate.compiled, rate.equivalent, rate.effective, rate.kept)
    assert counted == ("fit-lds", 2, 2, 2, 1, 1)
    with pytest.raises(InputError):
        hit_rates([tmp_path / "nothing"])


def test_wilson_interval_against_published_values() -> None:
    low, high = wilson(81, 263)  # Newcombe 1998, table I
    assert (round(low, 4), round(high, 4)) == (0.2553, 0.3662)
    assert wilson(0, 0) == (0.0, 1.0)


def test_what_waits_for_a_clock_is_named() -> None:
    request = make_request()
    start = make_baseline(request).measurement
    waiting = (Unmatched("config-retune", "Retune", NEEDS_CLOCK), Unmatched("fit-lds", "Fit", "lds_bytes = 0, not > 1"))
    found = Found(Candidate(request.kernel), start, None, (), (), waiting)
    said = conclude(start, found, TARGET, request.options.require).summary
    assert said.endswith("Untried without a GPU's clock: config-retune.") and "no skill applies" not in said


def test_a_library_that_a_file_beside_brings_in_is_named() -> None:
    beside = {
        "a.py": "from triton.language.extra.cuda import libdevice\n",
        "lib/k/utils.py": "import triton\n\nfrom triton.language.extra.cuda import libdevice\n",
        "lib/k/other.py": "# triton.language.extra.cuda\n",
    }
    request = make_request()
    kernel = replace(request.kernel, filename="lib/k/gelu.py", source="from .utils import tanh\n", companions=beside)
    failure = Failure("gelu", "Implicit conversion of CUDA __nv_tanhf device function has been dropped", 9)
    start = Measurement(kernel, Facts({}), (failure,))
    found = Found(Candidate(kernel), start, None, (), (), ())
    said = conclude(start, found, TARGET, request.options.require).summary
    assert "lib/k/utils.py line 3 imports CUDA's library, and edits are made to gelu.py only" in said
    alone = replace(start, kernel=replace(kernel, companions={}))
    said = conclude(alone, found, TARGET, request.options.require).summary
    assert said.endswith("No skill repairs this kind of failure.")
