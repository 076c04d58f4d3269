"""From a finished job to the draft of a skill: what a kept proposal of a model changed, as a folder to be finished.

A draft is never loaded: it lies outside the library, and its `skill.draft.yaml` has another name than the library
reads. It holds what the job knows (before and after as a golden case, what moved, the versions) and marks what
only a person can decide: when the change applies, and the transformation itself.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import yaml

from agent.job_record import REPLAY_FOLDER, load_record
from agent.report import REPORT_NAME, AttemptPart, Report, load_report
from sandbox.errors import InputError

DRAFT_NAME = "skill.draft.yaml"
_UNKNOWN = "TO DO"
_HEAD = f"""\
# A draft. Nothing loads it. To make it a skill: fill in every {_UNKNOWN}, write transform.py, rename this file to
# skill.yaml, move the folder into skills/library, and run `wavesmith skills test`. The case shows the whole patch;
# change.diff shows this step alone.
"""
_TRANSFORM = '''"""TO DO: the change as a pure transformation. See CONTRIBUTING.md and the skills beside this one."""

from __future__ import annotations

from collections.abc import Iterator

from sandbox.kernel import Kernel
from sandbox.target import Target
from skills.facts import Facts
from skills.skill import Refusal, Site


def find(kernel: Kernel, facts: Facts, target: Target) -> Iterator[Site | Refusal]:
    """Where the change applies."""
    raise NotImplementedError


def transform(kernel: Kernel, site: Site, target: Target) -> Kernel | None:
    """The changed kernel."""
    raise NotImplementedError
'''


@dataclass(frozen=True, slots=True)
class Draft:
    """Where a draft was written, and the attempt it was made from."""

    folder: Path
    attempt: AttemptPart


def propose_skills(job: Path, root: Path) -> list[Draft]:
    """Write one draft below `root` for each proposal of the model that became part of the job's result.

    Raises `InputError` when `job` is no finished job or no proposal of a model was kept in it.
    """
    record = load_record(job)
    report = load_report((job / REPORT_NAME).read_text(encoding="utf-8"))
    name = record.model.name if record.model else None
    kept = [a for a in report.attempts if a.origin == name and a.fate in ("kept", "step")]
    if name is None or not kept or report.artifacts.patched_file is None:
        raise InputError("no proposal of a model was kept in this job.", file=job, remedy="Name a job with such a win.")
    before = (job / REPLAY_FOLDER / "kernel" / record.kernel.filename).read_text(encoding="utf-8")
    after = (job / report.artifacts.patched_file).read_text(encoding="utf-8")
    return [_write(root, attempt, report, before, after) for attempt in kept]


def skill_id(title: str) -> str:
    """`Smaller blocks, 2x` becomes `smaller-blocks-2x`; what cannot begin an id is left out."""
    words = re.findall(r"[a-z0-9]+", title.lower())
    while words and not words[0][0].isalpha():
        words.pop(0)
    return "-".join(words[:6]) or "new-skill"


def _write(root: Path, attempt: AttemptPart, report: Report, before: str, after: str) -> Draft:
    identity = skill_id(attempt.title)
    folder = root / identity.replace("-", "_")
    case = folder / "cases" / Path(report.file.path).stem
    if folder.exists():
        raise InputError("there is something already.", file=folder, remedy="Remove it, or give another --out.")
    case.mkdir(parents=True)
    (case / "before.py").write_text(before, encoding="utf-8")
    (case / "after.py").write_text(after, encoding="utf-8")
    (case / "case.yaml").write_text(yaml.safe_dump({"target": report.target.arch}), encoding="utf-8")
    (folder / "transform.py").write_text(_TRANSFORM, encoding="utf-8")
    text = yaml.safe_dump(_data(identity, attempt, report), sort_keys=False, allow_unicode=True, width=110)
    (folder / DRAFT_NAME).write_text(_HEAD + text, encoding="utf-8")
    (folder / "change.diff").write_text(attempt.diff, encoding="utf-8")
    return Draft(folder, attempt)


def _data(identity: str, attempt: AttemptPart, report: Report) -> dict[str, object]:
    """What `skill.yaml` will hold, as far as the job tells."""
    moves = _moves(attempt)
    expects = [{"metric": name, "direction": "down" if after < before else "up"} for name, before, after in moves]
    by = f"Proposed by {attempt.origin}; judged {attempt.correctness} and {attempt.speed} by Wavesmith"
    return {
        "id": identity,
        "title": attempt.title,
        "kind": "tune" if report.baseline.builds else "repair",
        "languages": [report.file.language],
        "targets": [report.target.arch],
        "applies_when": [_UNKNOWN],
        "bottlenecks": list(report.baseline.bottlenecks) or [_UNKNOWN],
        "why": attempt.why or _UNKNOWN,
        "expects": expects or [{"metric": _UNKNOWN, "direction": "down"}],
        "numerics": _UNKNOWN,
        "proven_on": _proofs(attempt, report),
        "references": [f"{by} {report.wavesmith_version}, {report.created_at[:10]}"],
    }


def _proofs(attempt: AttemptPart, report: Report) -> list[dict[str, object]]:
    if attempt.speed not in ("static", "counted", "measured-elsewhere", "measured"):
        return []
    versions = ", ".join(f"{v.name} {v.version}" for v in report.toolchain)
    same = {"target": report.target.arch, "workload": report.file.path, "level": attempt.speed, "versions": versions}
    return [
        {**same, "metric": name, "before": before, "after": after, "unit": _UNKNOWN}
        for name, before, after in _moves(attempt)
    ]


def _moves(attempt: AttemptPart) -> list[tuple[str, float, float]]:
    """Metrics that the step changed, with the values before and after it."""
    pairs = [(m.name, m.before, m.after) for m in attempt.metrics]
    return [(name, b, a) for name, b, a in pairs if b is not None and a is not None and a != b]
