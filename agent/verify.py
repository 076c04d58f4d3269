"""The validator as a tool: one candidate against one baseline, with no search around it."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from agent.candidate import Proposal, correctness_of, describe, speed_of
from agent.events import Phase, Progress
from agent.job import JobRequest, Outcome, Requirement
from agent.languages import baseline_of, bench_for
from agent.report import CorrectnessPart, FailurePart, SpeedPart
from agent.report_build import correctness_part, failure_parts, speed_part
from sandbox.errors import InputError
from sandbox.kernel import Kernel
from sandbox.verdict import Accepted, Inconclusive, NoGain, Verdict


class Verification(BaseModel):
    """What `wavesmith verify --json` prints. `message` is one sentence."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    schema_version: Literal[1] = 1
    verdict: str = Field(description="Accepted, NoGain, CompileFailed, Crashed, TimedOut, Incorrect or Inconclusive.")
    outcome: str
    exit_code: int
    message: str
    check: str | None = Field(default=None, description="The check that rejected the candidate.")
    built_now: bool = False
    correctness: CorrectnessPart
    speed: SpeedPart
    statements: tuple[str, ...] = ()
    baseline_failures: tuple[FailurePart, ...] = ()


def verify(request: JobRequest, candidate: Kernel, progress: Progress) -> Verification:
    """Judge `candidate` as a replacement of `request.kernel`. Faults and bad input are raised as in `optimize`."""
    with progress.phase(Phase.BENCHMARK):
        baseline = baseline_of(request, progress)
    candidate = replace(candidate, filename=baseline.measurement.kernel.filename)
    if candidate.language is not baseline.measurement.kernel.language:
        raise InputError(
            f"the candidate is {candidate.language}, and it is compared with {baseline.measurement.kernel.language}.",
            remedy="Give the candidate of a CUDA file in HIP, of any other file in its own language.",
        )
    with progress.phase(Phase.VALIDATE):
        proposal = Proposal("candidate", "candidate", "The candidate", "it was given", candidate)
        judgement = bench_for(request, baseline, progress).judge(baseline.measurement, proposal)
    outcome = outcome_of(judgement.verdict, request.options.require)
    return Verification(
        verdict=type(judgement.verdict).__name__,
        outcome=outcome,
        exit_code=outcome.exit_code,
        message=describe(judgement.verdict),
        check=getattr(judgement.verdict, "check", None),
        built_now=isinstance(judgement.verdict, Accepted) and judgement.verdict.built_now,
        correctness=correctness_part(judgement.verdict),
        speed=speed_part(judgement),
        statements=judgement.statements,
        baseline_failures=failure_parts(baseline.measurement),
    )


def outcome_of(verdict: Verdict, require: Requirement) -> Outcome:
    """Equivalent and better; equivalent; rejected; or not shown. Below the required correctness nothing is shown."""
    match verdict:
        case Accepted() | NoGain() if correctness_of(verdict) < require.correctness:
            return Outcome.INCONCLUSIVE
        case Accepted(built_now=built_now, mended=mended) if built_now or mended:
            return Outcome.BUILDS_NOW
        case Accepted():
            return Outcome.IMPROVED if speed_of(verdict) >= require.speed else Outcome.INCONCLUSIVE
        case NoGain():
            return Outcome.NOTHING
        case Inconclusive():
            return Outcome.INCONCLUSIVE
        case _:
            return Outcome.REFUSED
