"""The dashboard's pages of jobs: the list, one job with its patch and numbers, and one attempt with its log.

However much a job left behind, a page shows a bounded part of it and says where the rest is.
"""

from __future__ import annotations

import json
from typing import Annotated, Any

from fastapi import FastAPI, Form, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from agent.report import Report
from api.diff_view import Shown, shown_part
from api.jobs import KINDS, job_folder
from api.pages import PAGE_SIZE, Pages
from api.results import Result, read_result
from api.settings import Settings
from api.store import Job, JobEvent, State
from api.views import event_view, job_view
from sandbox.target import known_archs

ATTEMPTS_PER_PAGE = 20
EVENTS_SHOWN = 200
METRICS_SHOWN = 100
_ITEMS_SHOWN = 40
"""Refusals, offers, failures and untried skills of one job."""


def add_job_pages(app: FastAPI, pages: Pages) -> None:
    """`/`, `/jobs/ID`, `/jobs/ID/attempts/N`, and the form that cancels."""
    _add_list(app, pages)

    @app.get("/jobs/{job_id}", include_in_schema=False)
    def job_page(request: Request, job_id: str, attempts: Annotated[int, Query(ge=1)] = 1) -> HTMLResponse:
        job = pages.store.job(job_id)
        if job is None:
            return pages.missing(request, "No such job", f"There is no job {job_id}.")
        result = result_of(pages.settings, job)
        final = State(job.state).is_final
        events = [] if final else pages.store.latest_events(job_id, limit=EVENTS_SHOWN)
        report = result.report if result is not None else None
        values = {
            "job": job_view(job),
            "final": final,
            "events": [event_view(e) for e in events if e.kind != "phase_done"],
            "last_event": events[-1].id if events else 0,
            "report": report,
            "diff": _patch(pages.settings, job, result),
            "metrics": metric_rows(report)[:METRICS_SHOWN],
            "metrics_left": max(0, len(metric_rows(report)) - METRICS_SHOWN),
            "most": _ITEMS_SHOWN,
            **_attempts(report, attempts),
        }
        return pages.render(request, "job", values)

    @app.get("/jobs/{job_id}/attempts/{number}", include_in_schema=False)
    def attempt_page(request: Request, job_id: str, number: int) -> HTMLResponse:
        job = pages.store.job(job_id)
        report = report_of(pages.settings, job) if job is not None else None
        attempt = next((a for a in report.attempts if a.number == number), None) if report is not None else None
        if job is None or attempt is None:
            return pages.missing(request, "No such attempt", f"Job {job_id} has no attempt {number}.")
        log = pages.store.events_of_proposal(job_id, job.attempt, attempt.id, limit=EVENTS_SHOWN)
        values = {"job": job_view(job), "a": attempt, "diff": shown_part(attempt.diff), "log": _log(log)}
        return pages.render(request, "attempt", values)

    @app.post("/jobs/{job_id}/cancel", include_in_schema=False)
    def cancel(request: Request, job_id: str, form_token: Annotated[str, Form()] = "") -> Response:
        pages.check_form(request, form_token)
        pages.store.request_cancel(job_id)
        return RedirectResponse(f"/jobs/{job_id}", 303)


def _add_list(app: FastAPI, pages: Pages) -> None:
    @app.get("/", include_in_schema=False)
    def jobs_page(request: Request, state: str = "", arch: str = "", kind: str = "", before: str = "") -> HTMLResponse:
        known = state if state in list(State) else None
        rows = pages.store.jobs(
            limit=PAGE_SIZE, before=before or None, state=known, arch=arch or None, kind=kind or None
        )
        chosen = {"state": known or "", "arch": arch, "kind": kind, "before": before}
        choices = {"states": list(State), "archs": known_archs(), "kinds": KINDS}
        values = {
            "jobs": [job_view(j) for j in rows],
            "next": rows[-1].id if len(rows) == PAGE_SIZE else None,
            "live": not before and any(not State(j.state).is_final for j in rows),
            **choices,
            **chosen,
        }
        return pages.render(request, "jobs", values)


def result_of(settings: Settings, job: Job) -> Result | None:
    """What a finished job left; None when that is nothing of this version."""
    if job.state != State.DONE:
        return None
    return read_result(job_folder(settings, job.id) / job.out_folder, job.kind)


def report_of(settings: Settings, job: Job) -> Report | None:
    """The report of a finished job; None when it has none of this version."""
    result = result_of(settings, job)
    return result.report if result is not None else None


def _patch(settings: Settings, job: Job, result: Result | None) -> Shown:
    if result is None or not result.patch or job.exit_code != 0:
        return shown_part("")
    path = job_folder(settings, job.id) / job.out_folder / result.patch
    return shown_part(path.read_text(encoding="utf-8", errors="replace") if path.is_file() else "")


def metric_rows(report: Report | None) -> list[dict[str, Any]]:
    """Metrics of every kernel that are not zero on both sides, what changed first; None for what is not known."""
    if report is None:
        return []
    before = {k.kernel: k.metrics for k in report.baseline.kernels}
    after = {k.kernel: k.metrics for k in report.result}
    rows: list[dict[str, Any]] = []
    for kernel in dict.fromkeys([*before, *after]):
        old, new = before.get(kernel, {}), after.get(kernel, {})
        rows += [
            {"kernel": kernel, "name": name, "before": old.get(name), "after": new.get(name)}
            for name in sorted({*old, *new})
            if old.get(name) or new.get(name)
        ]
    return sorted(rows, key=lambda r: None in (r["before"], r["after"]) or r["after"] == r["before"])


def _attempts(report: Report | None, page: int) -> dict[str, Any]:
    """One page of the attempts, in the order in which they were made."""
    every = report.attempts if report is not None else ()
    last = max(1, -(-len(every) // ATTEMPTS_PER_PAGE))
    page = min(page, last)
    shown = every[(page - 1) * ATTEMPTS_PER_PAGE : page * ATTEMPTS_PER_PAGE]
    return {"attempts": shown, "attempts_page": page, "attempts_pages": last}


def _log(rows: list[JobEvent]) -> list[dict[str, Any]]:
    return [{**event_view(row), "data": _details(row)} for row in rows]


def _details(row: JobEvent) -> str:
    """What an event carries beside its message, as `key: value` pairs."""
    data = json.loads(row.data)
    return ", ".join(f"{k}: {v}" for k, v in data.items() if k not in ("proposal", "reason", "fate", "title"))
