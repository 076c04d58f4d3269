"""A stored job done again without a network: same files, same seed, the model's stored replies, so the same patch."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from agent.events import Progress
from agent.job import Meter
from agent.job_record import digest_of, load_job
from agent.model_work import TRANSCRIPT_NAME, Helper, load_remembered
from agent.orchestrator import optimize
from agent.report import REPORT_NAME, Report, load_report
from agent.transcript import ReplayModel
from sandbox.errors import InputError


@dataclass(frozen=True, slots=True)
class Replayed:
    """What came out, and whether it is the patch of the stored job byte for byte."""

    report: Report
    same_patch: bool
    difference: str = ""
    """One sentence when it is not: what else changed."""


def replay_job(stored: Path, folder: Path, progress: Progress) -> Replayed:
    """Do the job that left `stored` again and write its result to `folder`. No model is asked.

    Raises `InputError` when `stored` holds no finished job or `folder` is the same one.
    """
    if folder.resolve() == stored.resolve():
        raise InputError("a replay does not overwrite the job it replays.", file=folder, remedy="Give another --out.")
    request, record = load_job(stored)
    helper = None
    if record.model is not None:
        model = ReplayModel(stored / TRANSCRIPT_NAME, record.model.name)
        helper = Helper(model, record.model.price, remembered=load_remembered(stored))
    report = optimize(request, folder, progress, helper, Meter(stop_after=record.stop_after))
    patch = (folder / report.artifacts.patch).read_bytes() if report.artifacts.patch else None
    same = digest_of(patch) == record.patch_sha256
    return Replayed(report, same, "" if same else _difference(stored, report))


def _difference(stored: Path, now: Report) -> str:
    """What differs between the stored job and its replay, the most likely cause first."""
    before = load_report((stored / REPORT_NAME).read_text(encoding="utf-8"))
    versions = {v.name: v.version for v in before.toolchain}
    changed = [
        f"{v.name} {versions.get(v.name, 'missing')} -> {v.version}"
        for v in now.toolchain
        if v.version != versions.get(v.name)
    ]
    if changed:
        return f"The tools changed: {', '.join(changed)}."
    if now.model is not None and now.model.failed:
        return f"The stored conversation does not fit: {now.model.ended.rstrip('.')}."
    for old, new in zip(before.attempts, now.attempts, strict=False):
        if (old.id, old.fate) != (new.id, new.fate):
            return f"Attempt {old.number} was {old.id}, {old.fate}; now it is {new.id}, {new.fate} ({new.reason})."
    return f"It made {len(now.attempts)} attempts; the stored job made {len(before.attempts)}."
