"""Rows and values as the JSON the API shows."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from sandbox.target import Target
from skills.skill import Skill

if TYPE_CHECKING:  # the command line shows skills without loading a database library
    from api.store import Job, JobEvent


def job_view(job: Job) -> dict[str, Any]:
    """A job with links to everything that belongs to it. `patch` is null unless the job succeeded."""
    base = f"/v1/jobs/{job.id}"
    done = job.state == "done"
    return {
        "id": job.id,
        "kind": job.kind,
        "state": job.state,
        "outcome": job.outcome,
        "exit_code": job.exit_code,
        "summary": job.summary,
        "error": job.error,
        "target": job.target,
        "arch": job.arch,
        "filename": job.filename,
        "path": job.path,
        "attempt": job.attempt,
        "cancel_requested": job.cancel_requested,
        "created_at": _time(job.created_at),
        "started_at": _time(job.started_at),
        "finished_at": _time(job.finished_at),
        "links": {
            "self": base,
            "events": f"{base}/events",
            "cancel": f"{base}/cancel",
            "report": f"{base}/report" if done else None,
            "patch": f"{base}/patch" if done and job.exit_code == 0 else None,
        },
    }


def event_view(row: JobEvent) -> dict[str, Any]:
    return {
        "kind": row.kind,
        "phase": row.phase,
        "message": row.message,
        "at": _time(row.at),
        "attempt": row.attempt,
        "data": json.loads(row.data),
    }


def target_view(target: Target) -> dict[str, Any]:
    return {
        "arch": target.arch,
        "vendor": target.vendor,
        "title": target.title,
        "default_board": target.default_board,
        "boards": sorted(target.boards),
        "wavefront_size": target.wavefront_size,
        "lds_bytes_per_workgroup": target.lds_bytes_per_workgroup,
    }


def skill_view(skill: Skill) -> dict[str, Any]:
    data = skill.data
    return {
        "id": skill.id,
        "title": data.title,
        "kind": data.kind,
        "languages": [str(x) for x in data.languages],
        "targets": data.targets,
        "applies_when": data.applies_when,
        "bottlenecks": data.bottlenecks,
        "why": data.why,
        "expects": [e.model_dump() for e in data.expects],
        "numerics": data.numerics,
        "proven": skill.proven,
        "references": data.references,
    }


def _time(seconds: float | None) -> str | None:
    """ISO 8601 in UTC with milliseconds."""
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
