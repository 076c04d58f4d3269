"""The dashboard: jobs, their proofs and the hit rates of skills, as pages that read without JavaScript."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from fastapi import FastAPI, File, Form, Query, Request, UploadFile
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from fastapi.staticfiles import StaticFiles
from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from agent.report import Report
from agent.versions import toolchain_versions
from api.charts import hit_rate_chart
from api.diff_view import side_by_side
from api.gate import session_cookie
from api.intake import Intake, store_request
from api.jobs import job_folder
from api.problems import ProblemError
from api.results import read_result
from api.session import COOKIE, LIFETIME_S, Sessions
from api.settings import Settings
from api.store import Job, State, Store
from api.views import event_view, job_view
from sandbox.errors import InputError
from sandbox.kernel import Language
from sandbox.target import known_archs, load_target
from sandbox.verdict import Correctness, Speed
from skills.skill import load_library

_HERE = Path(__file__).parent
PAGE_SIZE = 50


class Pages:
    """Renders templates with what every page needs."""

    def __init__(self, settings: Settings, store: Store) -> None:
        self.settings, self.store = settings, store
        self.sessions = Sessions(settings.token.get_secret_value()) if settings.token else None
        self._environment = Environment(
            loader=FileSystemLoader(_HERE / "templates"),
            autoescape=select_autoescape(default=True, default_for_string=True),
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )

    def render(self, request: Request, name: str, values: Mapping[str, Any], status: int = 200) -> HTMLResponse:
        shared = {
            "here": request.url.path,
            "version": toolchain_versions().get("wavesmith", ""),
            "base_url": str(request.base_url),
            "form_token": self.form_token(request),
        }
        template = self._environment.get_template(f"{name}.html.j2")
        return HTMLResponse(template.render({**shared, **values}), status)

    def form_token(self, request: Request) -> str:
        cookie = session_cookie(request.headers)
        return self.sessions.form_token(cookie) if self.sessions is not None and cookie else ""

    def check_form(self, request: Request, given: str) -> None:
        """Refuse a form that did not come from one of our own pages in this session."""
        if self.sessions is not None and (not given or given != self.form_token(request)):
            raise ProblemError(403, "forbidden", "The form is too old or came from elsewhere; load the page again.")


def add_dashboard(app: FastAPI, settings: Settings, store: Store) -> Pages:
    """The pages; returned are their shared parts, for pages in modules of their own."""
    pages = Pages(settings, store)
    app.mount("/static", StaticFiles(directory=_HERE / "static"), name="static")
    _add_login(app, pages)
    _add_job_pages(app, pages)
    _add_submit(app, pages)
    _add_skill_page(app, pages)
    _add_compare(app, pages)
    return pages


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


def _add_job_pages(app: FastAPI, pages: Pages) -> None:
    @app.get("/", include_in_schema=False)
    def jobs_page(request: Request, state: str = "", arch: str = "", before: str = "") -> HTMLResponse:
        known = state if state in list(State) else None
        rows = pages.store.jobs(limit=PAGE_SIZE, before=before or None, state=known, arch=arch or None)
        older = rows[-1].id if len(rows) == PAGE_SIZE else None
        chosen = {"state": state, "arch": arch, "states": list(State), "archs": known_archs()}
        return pages.render(request, "jobs", {"jobs": [job_view(j) for j in rows], "next": older, **chosen})

    @app.get("/jobs/{job_id}", include_in_schema=False)
    def job_page(request: Request, job_id: str) -> HTMLResponse:
        job = pages.store.job(job_id)
        if job is None:
            shown = {"title": "No such job", "detail": f"There is no job {job_id}."}
            return pages.render(request, "error", shown, 404)
        report = report_of(pages.settings, job)
        values = {
            "job": job_view(job),
            "final": State(job.state).is_final,
            "events": [event_view(e) for e in pages.store.events(job_id) if e.kind != "phase_done"],
            "report": report,
            "diff": side_by_side(_patch_text(pages.settings, job)),
            "metrics": _metric_rows(report),
        }
        return pages.render(request, "job", values)

    @app.post("/jobs/{job_id}/cancel", include_in_schema=False)
    def cancel(request: Request, job_id: str, form_token: Annotated[str, Form()] = "") -> Response:
        pages.check_form(request, form_token)
        pages.store.request_cancel(job_id)
        return RedirectResponse(f"/jobs/{job_id}", 303)


def report_of(settings: Settings, job: Job) -> Report | None:
    """The report of a finished job; None when it has none of this version."""
    if job.state != State.DONE:
        return None
    result = read_result(job_folder(settings, job.id) / job.out_folder, job.kind)
    return result.report if result is not None else None


def _patch_text(settings: Settings, job: Job) -> str:
    if job.state != State.DONE or job.exit_code != 0:
        return ""
    folder = job_folder(settings, job.id) / job.out_folder
    result = read_result(folder, job.kind)
    path = folder / result.patch if result is not None and result.patch else None
    return path.read_text(encoding="utf-8", errors="replace") if path is not None and path.is_file() else ""


def _metric_rows(report: Report | None) -> list[dict[str, Any]]:
    """Every metric of every kernel, what changed first."""
    if report is None:
        return []
    after = {k.kernel: k.metrics for k in report.result}
    rows = [
        {"kernel": k.kernel, "name": name, "before": value, "after": after.get(k.kernel, {}).get(name)}
        for k in report.baseline.kernels
        for name, value in sorted(k.metrics.items())
    ]
    return sorted(rows, key=lambda r: r["after"] is None or r["after"] == r["before"])


def _add_submit(app: FastAPI, pages: Pages) -> None:
    boards = [
        b for arch in known_archs() if load_target(arch).is_amd for b in (arch, *sorted(load_target(arch).boards))
    ]
    levels = [str(c) for c in Correctness if c > Correctness.INTERPRETED] + [str(s) for s in Speed if s > Speed.STATIC]

    def form(request: Request, status: int = 200, **values: Any) -> HTMLResponse:
        blank = {"source": "", "target": "gfx950", "require": "", "allow_approx": False, "problem": ""}
        return pages.render(request, "submit", {"targets": boards, "levels": levels, **blank, **values}, status)

    @app.get("/submit", include_in_schema=False)
    def submit_page(request: Request) -> HTMLResponse:
        return form(request)

    @app.post("/submit", include_in_schema=False)
    def submit(
        request: Request,
        target: Annotated[str, Form()],
        file: Annotated[UploadFile | None, File()] = None,
        source: Annotated[str, Form()] = "",
        require: Annotated[str, Form()] = "",
        allow_approx: Annotated[bool, Form()] = False,
        form_token: Annotated[str, Form()] = "",
    ) -> Response:
        pages.check_form(request, form_token)
        chosen = file is not None and bool(file.filename)
        name = file.filename if file is not None and chosen else "kernel.py"
        data = file.file.read() if file is not None and chosen else source.replace("\r\n", "\n").encode()
        intake = Intake("optimize", target, {"file": (name, data)}, None, require or None, allow_approx, None)
        try:
            if not data.strip():
                raise InputError("no source was given.", remedy="Choose a file or paste one.")
            job = store_request(pages.settings, pages.store, intake)
        except InputError as e:
            kept = {"source": source, "target": target, "require": require, "allow_approx": allow_approx}
            return form(request, 422, problem=str(e), **kept)
        return RedirectResponse(f"/jobs/{job.id}", 303)


def _add_skill_page(app: FastAPI, pages: Pages) -> None:
    @app.get("/skills", include_in_schema=False)
    def skills_page(
        request: Request, arch: str = "", language: str = "", correctness: str = "", skill: str = ""
    ) -> HTMLResponse:
        wanted = {"arch": arch, "language": language, "correctness": correctness, "skill": skill}
        rates = pages.store.hit_rates({k: v for k, v in wanted.items() if v})
        library = load_library()
        low_high = [{**r.to_json(), "low": r.kept_interval[0], "high": r.kept_interval[1]} for r in rates]
        values = {
            "rates": low_high,
            "chart": Markup(hit_rate_chart(rates)) if rates else "",  # every text in it is escaped
            "proven": {s.id for s in library if s.proven},
            "archs": known_archs(),
            "languages": list(Language),
            "levels": [str(c) for c in Correctness],
            "detail": library.skills[skill].data if skill in library.skills else None,
            "reasons": pages.store.failures(skill, limit=10) if skill else [],
            "examples": pages.store.trials(skill, limit=10) if skill else [],
        }
        return pages.render(request, "skills", {**values, **wanted})


def _add_compare(app: FastAPI, pages: Pages) -> None:
    @app.get("/compare", include_in_schema=False)
    def compare_page(
        request: Request, a: str = "", b: str = "", everything: Annotated[bool, Query(alias="all")] = False
    ) -> HTMLResponse:
        shown: dict[str, Any] = {"a": a, "b": b, "all": everything, "problem": "", "rows": [], "left": "", "right": ""}
        if a and b:
            jobs = [pages.store.job(i) for i in (a, b)]
            if None in jobs:
                shown["problem"] = "One of the two jobs does not exist."
            else:
                sides = [_comparable(pages.settings, job) for job in jobs if job is not None]
                names = list(dict.fromkeys([*sides[0], *sides[1]]))
                rows = [(n, sides[0].get(n, ""), sides[1].get(n, "")) for n in names]
                shown["rows"] = [r for r in rows if everything or r[1] != r[2]]
                shown["left"], shown["right"] = (j.path for j in jobs if j is not None)
        return pages.render(request, "compare", shown)


def _comparable(settings: Settings, job: Job) -> dict[str, str]:
    """A job as label and value pairs."""
    rows = {"Target": job.target, "Result": job.outcome or job.state, "Summary": job.summary or job.error or ""}
    report = report_of(settings, job)
    if report is None:
        return rows
    rows |= {"Correctness": report.correctness.level, "Speed": f"{report.speed.level} {report.speed.statement}".strip()}
    rows["Kept"] = ", ".join(a.id for a in report.attempts if a.fate == "kept") or "nothing"
    for row in _metric_rows(report):
        after = "" if row["after"] is None else f" → {row['after']:g}"
        rows[f"{row['kernel']} {row['name']}"] = f"{row['before']:g}{after}"
    return rows | {f"Version of {v.name}": v.version for v in report.toolchain}
