"""Which parts of the engine a file's language needs: Triton runs its own harness, HIP gets drivers and the emulator."""

from __future__ import annotations

from agent.baseline import Baseline, take_baseline
from agent.bench import SandboxBench
from agent.events import Progress
from agent.hip.baseline import HipBaseline, take_hip_baseline
from agent.hip.bench import HipBench
from agent.job import JobRequest
from agent.search import Bench
from sandbox.capture import choose_executor, gpu_vendor
from sandbox.errors import InputError
from sandbox.kernel import Language
from sandbox.target import Vendor

AnyBaseline = Baseline | HipBaseline


def baseline_of(request: JobRequest, progress: Progress) -> AnyBaseline:
    """The user's file as it is, run and profiled. Raises `InputError` for input that cannot be used."""
    if request.kernel.language is Language.TRITON:
        return take_baseline(request, progress)
    if request.options.model is not None:
        raise InputError(
            "a language model proposes for Triton files only.", file=request.kernel.filename,
            remedy="Leave out --model: skills for HIP need none.",
        )  # fmt: skip
    return take_hip_baseline(request, progress)


def bench_for(request: JobRequest, baseline: AnyBaseline, progress: Progress) -> Bench:
    """What measures and judges candidates of `baseline`."""
    if isinstance(baseline, HipBaseline):
        return HipBench(request, baseline, progress)
    return SandboxBench(request, baseline, progress)


def clock_of(request: JobRequest) -> Vendor | None:
    """Whose GPU candidates can be timed on here: HIP candidates are run in the emulator, whatever is attached."""
    timed = request.kernel.language is Language.TRITON and choose_executor(request.options.executor) == "gpu"
    return gpu_vendor() if timed else None
