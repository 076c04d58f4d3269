"""Repairs of what fails on the target although the recorded run, without a GPU, builds."""

from dataclasses import replace
from textwrap import dedent

import pytest

from agent.baseline import take_baseline
from agent.bench import SandboxBench
from agent.companions import load_candidate, load_with_companions
from agent.events import Progress
from agent.fix import SkillProposer
from agent.job import JobRequest, Options
from agent.orchestrator import optimize
from agent.verify import verify
from sandbox.kernel import parse_kernel
from sandbox.target import load_target
from sandbox.verdict import Accepted, NoGain
from skills.skill import load_library

FILE = """
import torch
import triton
import triton.language as tl

{above}
@triton.jit
def scale(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) * 2.0, mask=mask)


def run(x):
    out = torch.empty_like(x)
    n = x.numel()
    scale[(triton.cdiv(n, 1024),)](x, out, n, BLOCK=1024{given})
    return out


if __name__ == "__main__":
    run(torch.randn(3000, device="cuda"))
"""
TUNED = "@triton.autotune(configs=[triton.Config({{}}, num_warps=w) for w in {warps}], key=['n'])"
SIZED = ", num_warps=32 if n > 2**20 else 8"


def optimized(tmp_path, *, above="", given="", target="gfx950"):
    file = tmp_path / "f.py"
    file.write_text(dedent(FILE).format(above=above, given=given))
    options = Options(executor="interpreter", seed=3)
    request = JobRequest(
        load_with_companions(file), load_target(target), "f.py", file.read_bytes(), None, options=options
    )
    report = optimize(request, tmp_path / "out", Progress())
    patch = tmp_path / "out" / report.artifacts.patch if report.artifacts.patch else None
    return report, patch.read_text() if patch is not None else ""


@pytest.mark.parametrize("target", ["gfx942", "gfx950"])
def test_a_config_that_the_tuner_would_meet_leaves_the_list(tmp_path, target):
    report, patch = optimized(tmp_path, above=TUNED.format(warps=[4, 8, 32]), target=target)
    assert report.baseline.builds and report.outcome == "builds-now", report.summary
    assert f"2048 threads per workgroup > 1024 on {target}" in report.summary
    assert "did not build" not in report.summary
    assert report.correctness.level == "emulated" and report.speed.level == "none"
    request = JobRequest(
        load_with_companions(tmp_path / "f.py"),
        load_target(target),
        "f.py",
        b"",
        None,
        options=Options(executor="interpreter"),
    )
    for patched, outcome in ((report.artifacts.patched_file, "builds-now"), ("same.py", "nothing")):
        (tmp_path / "out" / "same.py").write_text((tmp_path / "f.py").read_text() + "# the same\n")
        verified = verify(request, load_candidate(tmp_path / "out" / patched, request.kernel), Progress())
        assert (verified.outcome, verified.correctness.validated) == (outcome, True), verified.message
    changed = [line for line in patch.splitlines() if line[:1] in "+-" and line[:3] not in ("+++", "---")]
    assert len(changed) == 2 and "[4, 8]" in changed[1], changed


def test_a_number_that_no_recorded_launch_reached_is_named_and_offered_only(tmp_path):
    report, patch = optimized(tmp_path, given=SIZED)
    assert report.outcome == "inconclusive" and not patch
    assert "32 warps x 64 lanes = 2048 threads per workgroup > 1024 on gfx950" in report.summary
    assert "line 17" in report.summary and "no recorded launch" in report.summary
    (offer,) = report.offers
    assert "num_warps=16 if n > 2**20 else 8" in (tmp_path / "out" / offer.patch).read_text()


def test_nothing_is_said_of_lists_within_the_limit(tmp_path):
    report, patch = optimized(tmp_path, above=TUNED.format(warps=[4, 8, 16]))
    assert not patch and "threads per workgroup" not in report.summary
    assert not any(a.origin == "cap-num-warps" for a in report.attempts)


def test_a_launch_above_the_limit_still_counts_as_not_building(tmp_path):
    report, patch = optimized(tmp_path, given=", num_warps=32")
    assert not report.baseline.builds and report.outcome == "builds-now", report.summary
    assert "did not build for gfx950; with cap-num-warps it does" in report.summary
    assert "+    scale[(triton.cdiv(n, 1024),)](x, out, n, BLOCK=1024, num_warps=16)" in patch


def test_a_recording_that_knows_no_configs_is_compiled_for_them(tmp_path):
    """As on a GPU, whose own tuner runs there."""
    file = tmp_path / "f.py"
    file.write_text(dedent(FILE).format(above=TUNED.format(warps=[4, 8, 32]), given=""))
    options = Options(executor="interpreter", seed=3)
    target = load_target("gfx950")
    request = JobRequest(load_with_companions(file), target, "f.py", file.read_bytes(), options=options)
    baseline = take_baseline(request, Progress())
    assert baseline.measurement.unlaunchable
    blind = replace(baseline.measurement, unlaunchable=())
    offers = SkillProposer(target, load_library(), None).propose(blind, ())
    (proposal,) = (p for p in offers.proposals if p.origin == "cap-num-warps")
    bench = SandboxBench(request, baseline, Progress())
    verdict = bench.judge(blind, proposal).verdict
    assert isinstance(verdict, Accepted) and "num_warps=32" in verdict.mended
    # Handed in as a file, it gets the same answer; what promises something else is not asked.
    given = replace(proposal, id="given", latent="", expects=())
    assert bench.judge(blind, given).verdict == verdict
    assert isinstance(bench.judge(blind, replace(given, expects=("lds_bytes down",))).verdict, NoGain)
    same = replace(given, kernel=parse_kernel(file.read_bytes() + b"# the same\n", "f.py"))
    assert isinstance(bench.judge(blind, same).verdict, NoGain)
