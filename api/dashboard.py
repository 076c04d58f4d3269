"""The dashboard, as pages that read without JavaScript: login, submit, compare; the others are in `dashboard_*`."""

from __future__ import annotations

import re
from typing import Annotated, Any

from fastapi import FastAPI, File, Form, Query, Request, UploadFile
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from fastapi.staticfiles import StaticFiles

from api.dashboard_jobs import add_job_pages, metric_rows, report_of
from api.dashboard_skills import add_skill_page
from api.intake import Intake, store_request
from api.pages import HERE, Pages
from api.session import COOKIE, LIFETIME_S
from api.settings import Settings
from api.store import Job, Store
from api.views import job_view
from sandbox.errors import InputError
from sandbox.target import known_archs, load_target
from sandbox.verdict import Correctness, Speed

COMPARED = 500
"""Rows of a comparison that are shown."""
_OFFERED = 20


def add_dashboard(app: FastAPI, settings: Settings, store: Store) -> Pages:
    """The pages; returned are their shared parts, for pages in modules of their own."""
    pages = Pages(settings, store)
    app.mount("/static", StaticFiles(directory=HERE / "static"), name="static")
    _add_login(app, pages)
    add_job_pages(app, pages)
    _add_submit(app, pages)
    add_skill_page(app, pages)
    _add_compare(app, pages)
    return pages


def add_api_page(app: FastAPI, pages: Pages) -> None:
    """`/docs`: the operations of the API, from its own description."""

    @app.get("/docs", include_in_schema=False)
    def api_page(request: Request) -> HTMLResponse:
        groups: dict[str, list[dict[str, Any]]] = {}
        for path, methods in app.openapi()["paths"].items():
            for method, operation in methods.items():
                fields = [p["name"] for p in operation.get("parameters", ())]
                row = {"method": method.upper(), "path": path, "fields": fields, **operation}
                groups.setdefault(next(iter(operation.get("tags", ("other",)))), []).append(row)
        return pages.render(request, "api", {"groups": groups})


def _add_login(app: FastAPI, pages: Pages) -> None:
    @app.get("/login", include_in_schema=False)
    def login_page(request: Request, next: str = "/") -> HTMLResponse:
        return pages.render(request, "login", {"next": _local(next), "problem": ""})

    @app.post("/login", include_in_schema=False)
    def login(request: Request, token: Annotated[str, Form()], next: Annotated[str, Form()] = "/") -> Response:
        if pages.sessions is None:
            return RedirectResponse("/", 303)
        if not pages.sessions.is_token(token):
            shown = {"next": _local(next), "problem": "This is not the token."}
            return pages.render(request, "login", shown, 401)
        response = RedirectResponse(_local(next), 303)
        secure = request.url.scheme == "https"
        cookie = pages.sessions.new_cookie()
        response.set_cookie(COOKIE, cookie, LIFETIME_S, httponly=True, samesite="strict", secure=secure)
        return response

    @app.post("/logout", include_in_schema=False)
    def logout(request: Request, form_token: Annotated[str, Form()] = "") -> Response:
        pages.check_form(request, form_token)
        response = RedirectResponse("/login", 303)
        response.delete_cookie(COOKIE)
        return response


def _local(path: str) -> str:
    """A path of ours to go to after login, never another site."""
    return path if path.startswith("/") and not path.startswith(("//", "/\\")) else "/"


def _add_submit(app: FastAPI, pages: Pages) -> None:
    boards = [
        b for arch in known_archs() if load_target(arch).is_amd for b in (arch, *sorted(load_target(arch).boards))
    ]
    levels = [str(c) for c in Correctness if c > Correctness.INTERPRETED] + [str(s) for s in Speed if s > Speed.STATIC]

    def form(request: Request, status: int = 200, **values: Any) -> HTMLResponse:
        blank = {"source": "", "target": ["gfx950"], "require": "", "allow_approx": False, "problem": ""}
        return pages.render(request, "submit", {"targets": boards, "levels": levels, **blank, **values}, status)

    @app.get("/submit", include_in_schema=False)
    def submit_page(request: Request) -> HTMLResponse:
        return form(request)

    @app.post("/submit", include_in_schema=False)
    def submit(
        request: Request,
        target: Annotated[list[str] | None, Form()] = None,
        file: Annotated[UploadFile | None, File()] = None,
        source: Annotated[str, Form()] = "",
        require: Annotated[str, Form()] = "",
        allow_approx: Annotated[bool, Form()] = False,
        form_token: Annotated[str, Form()] = "",
    ) -> Response:
        pages.check_form(request, form_token)
        upload = (file.filename, file.file.read()) if file is not None and file.filename else _pasted(source)
        chosen = target or []
        try:
            if not upload[1].strip():
                raise InputError("no source was given.", remedy="Choose a file or paste one.")
            if not chosen:
                raise InputError("no target was chosen.", remedy="Choose one or more.")
            wanted = _intakes(upload, chosen, require, allow_approx)
            jobs = [store_request(pages.settings, pages.store, intake) for intake in wanted]
        except InputError as e:
            kept = {"source": source, "target": chosen, "require": require, "allow_approx": allow_approx}
            return form(request, 422, problem=str(e), **kept)
        return RedirectResponse(f"/jobs/{jobs[0].id}" if len(jobs) == 1 else "/", 303)


def _pasted(source: str) -> tuple[str, bytes]:
    """Pasted text as a file: CUDA where it says so, else Triton."""
    is_cuda = "__global__" in source and re.search(r"^\s*(import|from) ", source, re.MULTILINE) is None
    return "kernel.cu" if is_cuda else "kernel.py", source.replace("\r\n", "\n").encode(errors="replace")


def _intakes(upload: tuple[str, bytes], targets: list[str], require: str, allow_approx: bool) -> list[Intake]:
    """One job for each target; a port takes all of them at once."""
    if upload[0].endswith((".cu", ".cuh", ".zip", ".gz", ".tgz")):
        return [Intake("port", ",".join(targets), {"file": upload}, None, None, False, None)]
    files = {"file": upload}
    return [Intake("optimize", t, files, None, require or None, allow_approx, None) for t in targets]


def _add_compare(app: FastAPI, pages: Pages) -> None:
    @app.get("/compare", include_in_schema=False)
    def compare_page(
        request: Request, a: str = "", b: str = "", everything: Annotated[bool, Query(alias="all")] = False
    ) -> HTMLResponse:
        shown: dict[str, Any] = {"a": a, "b": b, "all": everything, "problem": "", "rows": [], "left_out": 0}
        if a and b:
            left, right = pages.store.job(a), pages.store.job(b)
            if left is None or right is None:
                shown["problem"] = "One of the two jobs does not exist."
            else:
                rows = _differences(pages.settings, left, right, everything=everything)
                shown |= {"rows": rows[:COMPARED], "left_out": len(rows) - COMPARED}
                shown |= {"left": left.path, "right": right.path}
        offered = [] if a and b and not shown["problem"] else pages.store.jobs(limit=_OFFERED)
        return pages.render(request, "compare", {**shown, "offered": [job_view(j) for j in offered if j.id != a]})


def _differences(settings: Settings, left: Job, right: Job, *, everything: bool) -> list[tuple[str, str, str]]:
    """What, on the left, on the right; where the two differ, or everywhere."""
    sides = _comparable(settings, left), _comparable(settings, right)
    names = dict.fromkeys([*sides[0], *sides[1]])
    rows = [(n, sides[0].get(n, ""), sides[1].get(n, "")) for n in names]
    return [r for r in rows if everything or r[1] != r[2]]


def _comparable(settings: Settings, job: Job) -> dict[str, str]:
    """A job as label and value pairs."""
    rows = {"Target": job.target, "Result": job.outcome or job.state, "Summary": job.summary or job.error or ""}
    report = report_of(settings, job)
    if report is None:
        return rows
    rows |= {"Correctness": report.correctness.level, "Speed": f"{report.speed.level} {report.speed.statement}".strip()}
    rows["Kept"] = ", ".join(a.id for a in report.attempts if a.fate == "kept") or "nothing"
    for row in metric_rows(report):
        values = [f"{v:g}" for v in (row["before"], row["after"]) if v is not None]
        rows[f"{row['kernel']} {row['name']}"] = " → ".join(values)
    return rows | {f"Version of {v.name}": v.version for v in report.toolchain}
