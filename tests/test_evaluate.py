"""Verdicts other than "wrong": builds now, does not build, crashes, hangs, unknown, better by its code object."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from sandbox.capture import capture
from sandbox.errors import InputError
from sandbox.evaluate import EvaluateOptions, Evaluator, evaluate
from sandbox.gain import Improvement
from sandbox.isolation import Limits
from sandbox.kernel import Kernel, Language, parse_kernel
from sandbox.profiler.metrics import Metric, Profile
from sandbox.target import load_target
from sandbox.timed import heard
from sandbox.verdict import (
    Accepted,
    CompileFailed,
    Correctness,
    Crashed,
    Gain,
    Inconclusive,
    Incorrect,
    NoGain,
    Speed,
    TimedOut,
)

TARGET = load_target("gfx942")

SPILLS = """
import torch
import triton
import triton.language as tl


@triton.jit
def scale_kernel(x_ptr, y_ptr, n, factor, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=0.0)
    acc = x
    for i in range(8):
        acc = acc * factor + tl.sum(acc, axis=0) / BLOCK
    tl.store(y_ptr + offsets, acc + x, mask=offsets < n)


def scale(x, factor):
    y = torch.empty_like(x)
    n = x.numel()
    scale_kernel[(triton.cdiv(n, BLOCK),)](x, y, n, factor, BLOCK=BLOCK, num_warps=WARPS)
    return y


BLOCK = 2048
WARPS = 1

if __name__ == "__main__":
    torch.manual_seed(0)
    scale(torch.randn(3000, device="cuda"), 0.5)
"""
TOO_MANY_WARPS = SPILLS.replace("WARPS = 1", "WARPS = 32")


def kernel(source: str) -> Kernel:
    return parse_kernel(source.encode(), "scale.py")


def make(source: str, **options) -> Evaluator:
    base = kernel(source)
    recorded = capture(base, TARGET, executor=options.get("executor", "interpreter"))
    return Evaluator(
        base, recorded.stored, TARGET, EvaluateOptions(**{"executor": "interpreter", "seed": 5, **options})
    )


@pytest.fixture(scope="module")
def plain() -> Evaluator:
    return make(SPILLS)


def test_the_baseline_itself_is_no_gain(plain):
    verdict = plain.evaluate(plain.baseline).verdict
    assert isinstance(verdict, NoGain)
    assert "byte for byte" in verdict.reason


def test_a_candidate_that_does_not_compile(plain):
    broken = SPILLS.replace("    acc = x\n", "    acc = x + tl.no_such_function(x)\n")
    verdict = plain.evaluate(kernel(broken)).verdict
    assert isinstance(verdict, CompileFailed)
    assert "no_such_function" in verdict.message
    assert verdict.line == 11


def test_a_candidate_over_a_launch_limit(plain):
    verdict = plain.evaluate(kernel(TOO_MANY_WARPS)).verdict
    assert isinstance(verdict, CompileFailed)
    assert "2048" in verdict.message


def test_a_candidate_that_raises(plain):
    verdict = plain.evaluate(kernel(SPILLS.replace("    n = x.numel()\n", "    n = x.numel() // 0\n"))).verdict
    assert isinstance(verdict, Crashed)
    assert "ZeroDivisionError" in verdict.message
    assert verdict.line == 19


def test_a_candidate_that_raises_on_other_sizes_only(plain):
    narrow = SPILLS.replace("    n = x.numel()\n", "    n = x.numel()\n    assert n % 1000 == 0\n")
    verdict = plain.evaluate(kernel(narrow)).verdict
    assert isinstance(verdict, Incorrect)
    assert verdict.check == "held-out-shapes"


def test_a_resource_gain_is_static_and_says_nothing_about_time(plain):
    """More warps for the same block: fewer registers in each lane, more waves."""
    better = SPILLS.replace("WARPS = 1", "WARPS = 4")
    evaluation = plain.evaluate(kernel(better))
    verdict = evaluation.verdict
    assert isinstance(verdict, Accepted), verdict
    assert verdict.speed is Speed.STATIC
    assert verdict.gain is not None
    assert "->" in verdict.gain.statement
    assert "x [" not in " ".join(evaluation.statements)
    assert set(evaluation.baseline_profiles) == {"scale_kernel"}


DRAWS = (
    SPILLS.replace(
        "def scale(x, factor):\n",
        """def scale(n, factor):
    x = torch.randn(n, device="cuda") + random.random() + numpy.random.rand()
    x *= torch.rand(1, generator=torch.Generator("cuda").manual_seed(int(torch.randint(9, ())))).item()
""",
    )
    .replace('scale(torch.randn(3000, device="cuda"), 0.5)', "scale(3000, 0.5)")
    .replace("import torch\n", "import random\n\nimport numpy\nimport torch\n", 1)
)
"""Its host code draws the numbers that its kernel computes with."""


@pytest.mark.parametrize("executor", ["interpreter", "emulator"])
def test_what_host_code_draws_is_the_same_for_every_version(executor: str) -> None:
    judge = make(DRAWS, executor=executor)
    better = judge.evaluate(kernel(DRAWS.replace("WARPS = 1", "WARPS = 4"))).verdict
    assert isinstance(better, Accepted), better
    wrong = judge.evaluate(kernel(DRAWS.replace("acc * factor", "acc * factor * 1.01"))).verdict
    assert isinstance(wrong, Incorrect) and wrong.check == "tolerance"


def test_a_clock_of_another_vendor_is_not_asked_about_spills_of_the_target(plain, monkeypatch):
    better = kernel(SPILLS.replace("WARPS = 1", "WARPS = 4"))
    expected, before = plain.references, plain.baseline_trial
    after = replace(plain._candidate_trial(better, expected, "interpreter"), executor="gpu", device_arch="sm_90")

    def reason(arch: str, spills: int, **expects: str) -> str:
        spilled = {"k": Profile("k", "gfx942", {"vgpr_spill_count": Metric("vgpr_spill_count", spills)})}
        mended = {"k": Profile("k", "gfx942", {"vgpr_spill_count": Metric("vgpr_spill_count", 0)})}
        monkeypatch.setattr("sandbox.evaluate.profiles_of", lambda t, _: mended if t.executor == "gpu" else spilled)
        monkeypatch.setattr(plain, "options", replace(plain.options, expects=expects))
        trial = replace(after, device_arch=arch)
        return plain._improvement(plain.baseline, before, better, trial, expected).reason

    monkeypatch.setattr(plain, "_timed", lambda *_: Improvement(None, "the clock was asked", slower=True))
    monkeypatch.setattr(plain, "_untimed", lambda *_: Improvement(None, "it was not"))
    assert reason("sm_90", 29) == "it was not"
    for other in (reason("sm_90", 0), reason("gfx90a", 29), reason("sm_90", 29, vgpr_spill_count="down")):
        assert other == "the clock was asked"


def test_a_candidate_that_hangs_is_timed_out(plain):
    hanging = SPILLS.replace("    n = x.numel()\n", "    n = x.numel()\n    while n > 0:\n        n = n + 1\n")
    quick = Evaluator(
        plain.baseline, plain.workload, TARGET, EvaluateOptions(executor="interpreter", limits=Limits(wall_s=20.0))
    )
    quick.steps = plain.steps
    quick._baseline_trial = plain.baseline_trial
    assert isinstance(quick.evaluate(kernel(hanging)).verdict, TimedOut)


@pytest.mark.long
def test_a_baseline_over_a_limit_is_built_now():
    evaluator = make(TOO_MANY_WARPS)
    evaluation = evaluator.evaluate(kernel(SPILLS.replace("WARPS = 1", "WARPS = 16")))
    verdict = evaluation.verdict
    assert isinstance(verdict, Accepted), verdict
    assert verdict.built_now
    assert verdict.correctness is Correctness.EMULATED, "a change of options only is nothing the interpreter can see"
    both = SPILLS.replace("WARPS = 1", "WARPS = 16").replace("acc + x, mask", "x + acc, mask")
    assert evaluator.evaluate(kernel(both)).verdict.correctness is Correctness.EMULATED


def test_without_any_execution_nothing_is_called_equal():
    evaluator = make(SPILLS, executor="none")
    verdict = evaluator.evaluate(kernel(SPILLS.replace("acc + x, mask", "x + acc, mask"))).verdict
    assert isinstance(verdict, Inconclusive)
    assert "unknown" in verdict.reason or "no call" in verdict.reason


PTX = """
import torch
import triton
import triton.language as tl


@triton.jit
def extend_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=0)
    y = tl.inline_asm_elementwise("szext.wrap.s32 $0, $1, 8;", "=r,r", [x], dtype=tl.int32, is_pure=True, pack=1)
    tl.store(y_ptr + offsets, y, mask=offsets < n)


def extend(x):
    y = torch.empty_like(x)
    extend_kernel[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), BLOCK=256)
    return y


def reference(x):
    return (x << 24) >> 24


def test_extend():
    x = torch.randint(-(2**31), 2**31 - 1, (300,), device="cuda", dtype=torch.int32)
    assert torch.equal(extend(x), reference(x))


if __name__ == "__main__":
    torch.manual_seed(0)
    test_extend()
"""
ASM = PTX[PTX.index("    y = tl.inline") : PTX.index("    tl.store")]


def test_where_the_baseline_answers_nothing_the_harness_judges():
    evaluator = make(PTX)
    assert evaluator.workload.workload.launches[0].execution.status != "executed"
    right = PTX.replace(ASM, "    y = (x << 24) >> 24\n")
    evaluation = evaluator.evaluate(kernel(right))
    verdict = evaluation.verdict
    assert isinstance(verdict, Accepted), (verdict, evaluation.statements)
    assert verdict.built_now
    assert verdict.correctness is Correctness.INTERPRETED
    assert "the harness's own comparisons" in evaluation.statements[0]
    wrong = evaluator.evaluate(kernel(PTX.replace(ASM, "    y = (x << 24) >> 25\n"))).verdict
    assert isinstance(wrong, Incorrect), wrong
    assert "harness" in wrong.message


def test_other_languages_are_refused():
    cuda = Kernel("__global__ void f() {}", "f.cu", Language.CUDA)
    with pytest.raises(InputError):
        evaluate(cuda, cuda, make_nothing(), TARGET)


def make_nothing():
    from sandbox.workload import HarnessOutcome, StoredWorkload, Workload

    outcome = HarnessOutcome("static", "none")
    workload = Workload("f.cu", "", TARGET.arch, TARGET.board.name, (), (), (), outcome, {})
    return StoredWorkload(workload, {})


def test_importing_the_validator_needs_no_torch():
    import subprocess
    import sys

    code = (
        "import sys, sandbox.evaluate, sandbox.benchmark; sys.exit('torch' in sys.modules or 'triton' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parent.parent, check=False).returncode == 0


def test_recorded_calls_are_timed_in_processes_of_their_own(plain):
    """Triton's own interpreter stands for a device here: the path from a workload to an interval is the real one."""
    from sandbox.benchmark import TimingPlan
    from sandbox.timed import CallTimer, RecordedCall, timed_gain

    slow = SPILLS.replace("range(8)", "range(80)")
    plan = TimingPlan(rounds=12, device="cpu", warmup_calls=1, warmup_s=0.0, flush_bytes=1 << 20)
    os.environ["TRITON_INTERPRET"] = "1"
    try:
        timer = CallTimer(plain.workload, [RecordedCall(0)], plan)
        calls = timer.time(kernel(slow), plain.baseline)
        timer.close()
    finally:
        del os.environ["TRITON_INTERPRET"]
    timing = calls[0].timing
    assert timing.interval.ratio > 1.5
    assert bool(timing.wrong_results), "80 turns do not compute what 8 do"
    doubted = timed_gain(calls, TARGET)
    assert (doubted.gain, doubted.timed_on) == (None, "CPU")
    assert doubted.reason.startswith("in a timed call, candidate: wrong result")
    unsteady = replace(calls[0], timing=replace(timing, suspicions=("the machine was not steady",), wrong_results=()))
    doubted = timed_gain([unsteady], TARGET)
    assert (doubted.gain, doubted.timed_on) == (None, None)
    assert "cannot be believed" in doubted.reason
    clean = [replace(calls[0], timing=replace(timing, suspicions=(), wrong_results=()))]
    gain = timed_gain(clean, TARGET).gain
    assert gain is not None
    assert gain.level is Speed.MEASURED_ELSEWHERE
    assert gain.statement.endswith("on CPU; not timed on gfx942")


def test_where_another_gpu_sees_no_difference_the_targets_counts_speak():
    gain = Gain(Speed.COUNTED, "lane atomics 64 -> 1")
    noise = Improvement(None, "no difference above the noise: 1.00x [0.99, 1.01] on H", timed_on="H")
    said = heard(noise, lambda: Improvement(gain)).gain
    assert said is not None and said.level is Speed.COUNTED
    assert said.statement == "lane atomics 64 -> 1; no difference above the noise: 1.00x [0.99, 1.01] on H"
    assert heard(noise, lambda: Improvement(None, "nothing moved")) == noise

    def never() -> Improvement:
        raise AssertionError("not asked")

    for timed in (Improvement(gain), Improvement(None, "slower", "H", slower=True), Improvement(None, "not believed")):
        assert heard(timed, never) == timed
