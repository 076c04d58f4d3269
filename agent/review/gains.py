"""The last step of a review: what the optimizer makes of a kernel that the change affects, at its evidence level."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from agent.events import Progress
from agent.report import PATCH_NAME, PATCHED_FOLDER, Report
from agent.review.changes import ChangedFile
from agent.review.compiled import Side
from agent.review.config import ReviewConfig
from agent.review.finding import Finding, Fix, fingerprint
from agent.review.fixes import make_fix
from agent.review.source import owner_of_python
from sandbox.kernel import Kernel, Language
from sandbox.target import Target

_MENDED = ("does-not-build", "lds-overflow", "launch-limit", "cuda-only")
"""Rules whose findings a file that builds now no longer has."""


def find_gain(
    file: ChangedFile,
    kernels: Sequence[str],
    side: Side,
    target: Target,
    wall_s: float,
    findings: list[Finding],
    config: ReviewConfig,
) -> list[Finding]:
    """The findings with a verified fix where there is one, and one more when the file is only made better."""
    from agent.orchestrator import optimize

    request = side.request(target, executor="auto", wall_s=wall_s)
    # What mends a finding holds the repair alone: small enough to be a suggestion.
    request = replace(request, options=replace(request.options, tune_repaired=False))
    with tempfile.TemporaryDirectory(prefix="wavesmith-gain-") as scratch:
        report = optimize(request, Path(scratch), Progress())
        if report.exit_code != 0:
            return findings
        patched = Path(scratch) / PATCHED_FOLDER / side.path
        if not patched.is_file():
            return findings
        source = patched.read_text(encoding="utf-8-sig").replace("\r\n", "\n")
        patch = (Path(scratch) / PATCH_NAME).read_text(encoding="utf-8", errors="replace")
    fix = _fix(file, source, report, patch)
    if fix is None:
        return findings
    if report.outcome == "builds-now":
        return [f.model_copy(update={"fix": fix, "remedy": _REMEDY}) if f.rule in _MENDED else f for f in findings]
    return [*findings, _gain(file, kernels, report, fix, config)]


_REMEDY = "The fix below was found and checked by the optimizer."


def _fix(file: ChangedFile, source: str, report: Report, patch: str) -> Fix | None:
    kept = [a.title for a in report.attempts if a.fate == "kept"]
    said = " ".join([report.summary, *report.statements])
    kernel = Kernel(source, file.path.rsplit("/", 1)[-1], Language.TRITON)
    return make_fix(
        file,
        kernel,
        "; ".join(kept),
        report.correctness.level,
        speed=report.speed.level,
        statement=said[:4000],
        whole_patch=patch,
    )


def _gain(file: ChangedFile, kernels: Sequence[str], report: Report, fix: Fix, config: ReviewConfig) -> Finding:
    kept = [a for a in report.attempts if a.fate == "kept"]
    owner = owner_of_python(file.after_text)
    kernel = next((k for k in kernels if owner.lines_of(k)), kernels[0])
    line = next(iter(owner.lines_of(kernel)), 1)
    level = config.level_of("gain")
    assert level is not None
    return Finding(
        fingerprint=fingerprint("gain", file.path, kernel, ",".join(sorted(a.origin for a in kept))),
        rule="gain",
        level=level,
        origin="introduced",
        path=file.path,
        line=line,
        end_line=line,
        kernel=kernel,
        targets=(report.target.arch,),
        evidence=report.correctness.level,
        message=report.summary[:4000],
        remedy="Apply the patch, or leave it: nothing is wrong with the change.",
        fix=fix,
    )
