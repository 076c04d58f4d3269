"""The dashboard's pages of pull requests that the bot reviewed, and of ports."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse
from pydantic import ValidationError

from agent.report import REPORT_NAME
from agent.review.finding import ReviewResult
from api.dashboard import PAGE_SIZE, Pages
from api.github.render import evidence_words
from api.jobs import job_folder
from api.review_store import PullReview, ReviewStore
from api.settings import Settings
from api.store import Job, State
from api.views import job_view


def add_pull_pages(app: FastAPI, pages: Pages, reviews: ReviewStore) -> None:
    """`/pulls` and `/pulls/ID`."""

    @app.get("/pulls", include_in_schema=False)
    def pulls_page(request: Request, repository: str = "", before: int | None = None) -> HTMLResponse:
        rows = reviews.reviews(limit=PAGE_SIZE, before=before, repository=repository or None)
        shown = {
            "rows": [_row(r) for r in rows],
            "repositories": reviews.repositories(),
            "repository": repository,
            "next": rows[-1].id if len(rows) == PAGE_SIZE else None,
            "is_set_up": pages.settings.has_github,
        }
        return pages.render(request, "pulls", shown)

    @app.get("/pulls/{number}", include_in_schema=False)
    def pull_page(request: Request, number: int) -> HTMLResponse:
        row = reviews.review(number)
        if row is None:
            shown = {"title": "No such review", "detail": f"There is no review {number}."}
            return pages.render(request, "error", shown, 404)
        quiet = reviews.dismissed(row.repository, row.pull)
        values = {"row": _row(row), "result": _result(row), "quiet": sorted(quiet), "words": evidence_words}
        return pages.render(request, "pull", values)


def _row(row: PullReview) -> dict[str, Any]:
    created = datetime.fromtimestamp(row.created_at, UTC).isoformat(timespec="seconds")
    return {**row.model_dump(exclude={"result"}), "created_at": created, "has_result": bool(row.result)}


def _result(row: PullReview) -> ReviewResult | None:
    try:
        return ReviewResult.model_validate_json(row.result) if row.result else None
    except ValidationError:
        return None


def add_port_pages(app: FastAPI, pages: Pages) -> None:
    """`/ports` and `/ports/ID`."""

    @app.get("/ports", include_in_schema=False)
    def ports_page(request: Request, before: str = "") -> HTMLResponse:
        rows = pages.store.jobs(limit=PAGE_SIZE, before=before or None, kind="port")
        older = rows[-1].id if len(rows) == PAGE_SIZE else None
        return pages.render(request, "ports", {"jobs": [job_view(j) for j in rows], "next": older})

    @app.get("/ports/{job_id}", include_in_schema=False)
    def port_page(request: Request, job_id: str) -> HTMLResponse:
        job = pages.store.job(job_id)
        report = port_report(pages.settings, job) if job is not None else None
        if job is None or report is None:
            detail = f"There is no finished port {job_id}."
            return pages.render(request, "error", {"title": "No such port", "detail": detail}, 404)
        values = {"job": job_view(job), "report": report, "fixed": fixed_diagnostics(report)}
        return pages.render(request, "port", values)


def port_report(settings: Settings, job: Job) -> dict[str, Any] | None:
    """What a finished port says of itself; None when it left nothing of this version."""
    if job.kind != "port" or job.state != State.DONE:
        return None
    try:
        text = (job_folder(settings, job.id) / job.out_folder / REPORT_NAME).read_text(encoding="utf-8")
        report: dict[str, Any] = json.loads(text)
    except (OSError, ValueError):
        return None
    needed = {"rounds", "diagnostics", "refusals", "kernels", "shim_uses", "summary", "targets"}
    return report if needed <= report.keys() else None


def fixed_diagnostics(report: dict[str, Any]) -> list[dict[str, Any]]:
    """Kinds of complaints that the compiler made in some round and no longer makes after the last."""
    rounds = report["rounds"]
    left = set(rounds[-1]["keys"]) if rounds else set()
    met: dict[str, int] = {}
    for turn in rounds:
        for key in turn["keys"]:
            met.setdefault(str(key), int(turn["number"]))
    fixed = [(key, number) for key, number in met.items() if key not in left]
    return [{"key": " ".join(p for p in key.split(" | ") if p), "round": number} for key, number in fixed]
