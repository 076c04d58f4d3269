"""From the values of a finished job to its report."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Protocol

from agent.candidate import Attempt, Judgement, Measurement, correctness_of, speed_of
from agent.conclusion import Conclusion
from agent.job import JobRequest
from agent.patch import FileChange, restore_bytes, unified_diff
from agent.report import (
    AttemptPart,
    BaselinePart,
    CheckPart,
    CorrectnessPart,
    FailurePart,
    FilePart,
    KernelMetrics,
    MetricChange,
    OfferPart,
    RefusalPart,
    Report,
    SkippedPart,
    SpeedPart,
    TargetPart,
    ToolVersion,
    WaterfallStep,
)
from agent.search import Found
from agent.versions import toolchain_versions
from sandbox.kernel import Kernel
from sandbox.verdict import Accepted, Gain, Inconclusive, NoGain, Verdict


class ReportedBaseline(Protocol):
    """What the report says of the user's file as it was."""

    @property
    def measurement(self) -> Measurement: ...
    @property
    def launch_count(self) -> int: ...
    @property
    def executor(self) -> str: ...
    @property
    def notes(self) -> tuple[str, ...]: ...
    @property
    def versions(self) -> Mapping[str, str]: ...
    @property
    def suggested_harness(self) -> str | None: ...


def build_report(
    request: JobRequest, baseline: ReportedBaseline, found: Found, conclusion: Conclusion, *, seconds: float
) -> Report:
    """The report of one job. Artifact names are filled in by whoever writes the folder."""
    judgement = found.final if conclusion.kernel is not None else None
    verdict = judgement.verdict if judgement else None
    versions = {**toolchain_versions(), **baseline.versions}
    return Report(
        wavesmith_version=toolchain_versions().get("wavesmith", "unknown"),
        created_at=datetime.now(UTC).isoformat(timespec="seconds"),
        outcome=conclusion.outcome,
        exit_code=conclusion.outcome.exit_code,
        summary=conclusion.summary,
        target=TargetPart(arch=request.target.arch, board=request.target.board.name, title=request.target.title),
        file=FilePart(
            path=request.path,
            language=request.kernel.language,
            sha256=hashlib.sha256(request.original).hexdigest(),
        ),
        requirement=str(request.options.require),
        correctness=correctness_part(verdict),
        speed=speed_part(judgement),
        statements=judgement.statements if judgement else (),
        baseline=_baseline(baseline),
        result=_metrics(found.measured) if conclusion.kernel is not None else (),
        attempts=tuple(_attempt(request, n, a) for n, a in enumerate(found.attempts, 1)),
        skipped=tuple(SkippedPart(origin=u.origin, title=u.title, reason=u.reason) for u in found.unmatched),
        refusals=tuple(
            RefusalPart(origin=r.skill_id, line=r.line, reason=r.reason, route=r.route) for r in found.refusals
        ),
        offers=tuple(
            OfferPart(
                title=o.title,
                reason=o.reason,
                correctness=str(o.correctness),
                speed=str(o.speed),
                patch=offer_name(n),
            )
            for n, o in enumerate(conclusion.offers, 1)
        ),
        waterfall=_waterfall(found) if conclusion.kernel is not None else (),
        toolchain=tuple(ToolVersion(name=n, version=v) for n, v in sorted(versions.items())),
        reproduce=reproduce_line(request),
        stopped=found.stopped,
        seconds=round(seconds, 1),
    )


def offer_name(number: int) -> str:
    return f"offer-{number}.patch"


def reproduce_line(request: JobRequest) -> str:
    """The command that does this job again."""
    words = ["wavesmith", "optimize", request.path, "--target", request.target.board.name]
    if request.harness is not None:
        words += ["--harness", request.harness.filename]
    if request.workload is not None:
        words += ["--workload", request.workload.name]
    if request.options.allow_approx:
        words.append("--allow-approx")
    if request.options.model is not None:
        words += ["--model", str(request.options.model)]
    if request.options.seed is not None:
        words += ["--seed", str(request.options.seed)]
    return shlex.join(words)


def file_changes(request: JobRequest, kernel: Kernel) -> list[FileChange]:
    """What the patch does to the user's file and to the files beside it."""
    ported = kernel.filename != request.kernel.filename
    renamed = (
        PurePosixPath(request.path).with_suffix(PurePosixPath(kernel.filename).suffix).as_posix() if ported else None
    )
    after = restore_bytes(request.original, kernel.source)
    changes = [FileChange(request.path, request.original, after, new_path=renamed)]
    for name, text in sorted(kernel.companions.items()):
        before = request.kernel.companions.get(name)
        if text != before:
            path = _beside(request, name)
            changes.append(FileChange(path, None if before is None else before.encode(), text.encode()))
    return changes


def _beside(request: JobRequest, name: str) -> str:
    """Path in the repository of a companion: from where the file's package lies, perhaps above the root."""
    place, depth = PurePosixPath(request.path).parts, len(PurePosixPath(request.kernel.filename).parts)
    return PurePosixPath(*place[:-depth], *PurePosixPath(name).parts[max(0, depth - len(place)) :]).as_posix()


def correctness_part(verdict: Verdict | None) -> CorrectnessPart:
    level = correctness_of(verdict)
    checks = verdict.checks if isinstance(verdict, Accepted | NoGain | Inconclusive) else ()
    parts = tuple(CheckPart(name=c.name, passed=c.passed, detail=c.detail) for c in checks)
    return CorrectnessPart(level=str(level), validated=level.validated, checks=parts)


def speed_part(judgement: Judgement | None) -> SpeedPart:
    verdict = judgement.verdict if judgement else None
    gain = verdict.gain if isinstance(verdict, Accepted) else None
    if gain is None:
        return SpeedPart(level=str(speed_of(verdict)), statement="", metrics=_changes(judgement))
    interval = gain.interval
    return SpeedPart(
        level=str(gain.level),
        statement=gain.statement,
        ratio=interval.ratio if interval else None,
        low=interval.low if interval else None,
        high=interval.high if interval else None,
        pairs=interval.pairs if interval else None,
        device=gain.device,
        metrics=_gain_changes(gain) or _changes(judgement),
    )


def _gain_changes(gain: Gain) -> tuple[MetricChange, ...]:
    return tuple(MetricChange(name=n, before=b, after=a) for n, (b, a) in gain.metrics.items())


def _changes(judgement: Judgement | None) -> tuple[MetricChange, ...]:
    """Metrics that differ between baseline and candidate."""
    pairs: Mapping[str, tuple[float, float]] = judgement.metrics if judgement else {}
    return tuple(MetricChange(name=n, before=b, after=a) for n, (b, a) in pairs.items() if a != b)


def _baseline(baseline: ReportedBaseline) -> BaselinePart:
    measured = baseline.measurement
    return BaselinePart(
        builds=measured.builds,
        launches=baseline.launch_count,
        executor=baseline.executor,
        failures=failure_parts(measured),
        kernels=_metrics(measured),
        bottlenecks=measured.bottlenecks,
        notes=baseline.notes,
        suggested_harness=baseline.suggested_harness,
    )


def failure_parts(measured: Measurement) -> tuple[FailurePart, ...]:
    return tuple(
        FailurePart(kernel=f.kernel, message=f.message, line=f.line, source_line=f.source_line)
        for f in measured.failures
    )


def _metrics(measured: Measurement) -> tuple[KernelMetrics, ...]:
    return tuple(KernelMetrics(kernel=k, metrics=dict(m)) for k, m in sorted(measured.metrics.items()))


def _attempt(request: JobRequest, number: int, attempt: Attempt) -> AttemptPart:
    verdict = attempt.judgement.verdict if attempt.judgement else None
    before = restore_bytes(request.original, attempt.parent.source)
    after = restore_bytes(request.original, attempt.proposal.kernel.source)
    diff = unified_diff([FileChange(request.path, before, after)])
    return AttemptPart(
        number=number,
        id=attempt.proposal.id,
        origin=attempt.proposal.origin,
        title=attempt.proposal.title,
        why=attempt.proposal.why,
        line=attempt.proposal.line,
        fate=attempt.fate,
        reason=attempt.reason,
        verdict=type(verdict).__name__ if verdict else None,
        correctness=str(correctness_of(verdict)),
        speed=str(speed_of(verdict)),
        metrics=_changes(attempt.judgement),
        seconds=round(attempt.seconds, 2),
        diff=diff.decode(),
    )


def _waterfall(found: Found) -> tuple[WaterfallStep, ...]:
    steps = []
    for attempt in found.best.steps:
        verdict = attempt.judgement.verdict if attempt.judgement else None
        gain = verdict.gain if isinstance(verdict, Accepted) else None
        steps.append(
            WaterfallStep(
                label=attempt.proposal.title,
                speed=str(speed_of(verdict)),
                statement=attempt.reason,
                ratio=gain.interval.ratio if gain and gain.interval else None,
                metrics=_gain_changes(gain) if gain else (),
            )
        )
    return tuple(steps)
