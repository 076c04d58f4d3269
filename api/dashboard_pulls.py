"""The dashboard's pages of pull requests that the bot reviewed, and of ports."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import FastAPI, Path, Query, Request
from fastapi.responses import HTMLResponse
from pydantic import ValidationError

from agent.report import REPORT_NAME
from agent.review.finding import ReviewResult
from api.github.render import evidence_words
from api.jobs import job_folder
from api.pages import PAGE_SIZE, Pages
from api.review_store import PullReview, ReviewState, ReviewStore
from api.settings import Settings
from api.store import Job, State
from api.views import job_view

FINDINGS_PER_PAGE = 25
_ITEMS_SHOWN = 60
"""Kernels, diagnostics, refusals and shims of one port."""
_EDITS_SHOWN = 30
"""Edits of one round."""


def add_pull_pages(app: FastAPI, pages: Pages, reviews: ReviewStore) -> None:
    """`/pulls` and `/pulls/ID`."""

    @app.get("/pulls", include_in_schema=False)
    def pulls_page(
        request: Request,
        repository: str = "",
        before: Annotated[int | None, Query(ge=0, lt=2**63)] = None,
    ) -> HTMLResponse:
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
    def pull_page(
        request: Request, number: Annotated[int, Path(ge=0, lt=2**63)], page: Annotated[int, Query(ge=1)] = 1
    ) -> HTMLResponse:
        row = reviews.review(number)
        if row is None:
            return pages.missing(request, "No such review", f"There is no review {number}.")
        quiet = reviews.dismissed(row.repository, row.pull)
        result = _result(row)
        found = result.findings if result is not None else ()
        last = max(1, -(-len(found) // FINDINGS_PER_PAGE))
        start = (min(page, last) - 1) * FINDINGS_PER_PAGE
        values = {
            "row": _row(row),
            "result": result,
            "findings": found[start : start + FINDINGS_PER_PAGE],
            "page": min(page, last),
            "pages": last,
            "quiet": sorted(quiet),
            "words": evidence_words,
        }
        return pages.render(request, "pull", values)


def _row(row: PullReview) -> dict[str, Any]:
    created = datetime.fromtimestamp(row.created_at, UTC).isoformat(timespec="seconds")
    return {**row.model_dump(exclude={"result"}), "created_at": created, "has_result": row.state == ReviewState.DONE}


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
            return pages.missing(request, "No such port", f"There is no finished port {job_id}.")
        shown = {"most": _ITEMS_SHOWN, "few": _EDITS_SHOWN}
        values = {"job": job_view(job), "report": report, "fixed": fixed_diagnostics(report), **shown}
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
