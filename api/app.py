"""The REST API: POST a kernel file, get a validated patch."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Annotated, Any

import anyio.to_thread
from fastapi import Depends, FastAPI, File, Form, Header, Query, Request, Response, UploadFile
from fastapi.responses import FileResponse, JSONResponse, PlainTextResponse, StreamingResponse

from agent.report import MARKDOWN_NAME, REPORT_NAME
from agent.versions import toolchain_versions
from api.dashboard import add_api_page, add_dashboard
from api.dashboard_pulls import add_port_pages, add_pull_pages
from api.gate import Gate
from api.github_bot import add_github_bot, running_bot
from api.intake import Intake, store_request
from api.jobs import job_folder
from api.model_form import ModelForm, model_form
from api.problems import TITLES, ProblemError, install_handlers
from api.results import Result, read_result
from api.settings import Settings
from api.store import Job, JobEvent, State, Store
from api.views import event_view, job_view, skill_view, target_view
from sandbox.target import known_archs, load_target
from skills.skill import load_library

HEARTBEAT_S = 15.0
_EVENTS_AT_ONCE = 100
WORKER_SILENCE_S = 30.0


def create_app(settings: Settings) -> FastAPI:
    """The application. Raises `InputError` for settings that would open it to everyone."""
    settings.check()
    store = Store(settings.database)

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        async with running_bot(settings, reviews):
            yield
        store.close()

    version = toolchain_versions().get("wavesmith", "0")
    app = FastAPI(title="Wavesmith", version=version, lifespan=lifespan, docs_url=None, redoc_url=None)
    app.add_middleware(Gate, settings=settings)
    app.state.store, app.state.settings = store, settings
    _add_job_routes(app, settings, store)
    _add_result_routes(app, settings, store)
    _add_service_routes(app, store)
    reviews = add_github_bot(app, settings, store)
    pages = add_dashboard(app, settings, store)
    add_pull_pages(app, pages, reviews)
    add_port_pages(app, pages)
    add_api_page(app, pages)
    install_handlers(app, pages.problem)
    return app


def _find(store: Store, job_id: str) -> Job:
    job = store.job(job_id)
    if job is None:
        raise ProblemError(404, "not-found", f"There is no job {job_id}.")
    return job


def _wait_seconds(prefer: str | None) -> float:
    """Seconds of `Prefer: wait=N` (RFC 7240); 0 without, or for anything else."""
    for part in (prefer or "").split(","):
        name, _, value = part.strip().partition("=")
        if name.strip().lower() == "wait" and value.strip().isdigit():
            return float(value)
    return 0.0


async def _wait_for(store: Store, job_id: str, seconds: float, poll_s: float) -> Job:
    deadline = time.monotonic() + seconds
    while True:
        job = await anyio.to_thread.run_sync(_find, store, job_id)
        if State(job.state).is_final or time.monotonic() >= deadline:
            return job
        await asyncio.sleep(poll_s)


def _add_job_routes(app: FastAPI, settings: Settings, store: Store) -> None:
    @app.post("/v1/jobs", status_code=202, tags=["jobs"], operation_id="createJob")
    async def create_job(
        file: Annotated[UploadFile, File(description="The kernel file, or for `port` also a zip or tar.gz.")],
        target: Annotated[str, Form(description="Architecture or board, for example gfx950 or MI350X.")],
        kind: Annotated[str, Form()] = "optimize",
        harness: Annotated[UploadFile | None, File(description="Python file that calls the kernel.")] = None,
        workload: Annotated[UploadFile | None, File(description="workload.yaml.")] = None,
        path: Annotated[str | None, Form(description="Path of the file in its repository.")] = None,
        require: Annotated[str | None, Form(description="Evidence level demanded.")] = None,
        allow_approx: Annotated[bool, Form()] = False,
        asked: ModelForm = Depends(model_form),  # noqa: B008 - how FastAPI spells a dependency
        prefer: Annotated[str | None, Header()] = None,
        idempotency_key: Annotated[str | None, Header(max_length=200)] = None,
    ) -> Response:
        """Queue a job. `Prefer: wait=60` holds the answer until the job has finished, for up to that many seconds."""
        parts = {"file": file, "harness": harness, "workload": workload}
        uploads = {n: (u.filename, await u.read()) for n, u in parts.items() if u is not None}
        wanted = Intake(kind, target, uploads, path, require, allow_approx, idempotency_key, asked)
        job = await anyio.to_thread.run_sync(store_request, settings, store, wanted)
        wait_s = min(_wait_seconds(prefer), settings.max_wait_s)
        headers = {"Location": f"/v1/jobs/{job.id}"}
        if wait_s:
            job = await _wait_for(store, job.id, wait_s, settings.poll_s)
            headers["Preference-Applied"] = f"wait={wait_s:g}"
        return JSONResponse(job_view(job), 200 if State(job.state).is_final else 202, headers)

    @app.get("/v1/jobs", tags=["jobs"], operation_id="listJobs")
    def list_jobs(
        limit: Annotated[int, Query(ge=1, le=200)] = 50,
        before: Annotated[str | None, Query(description="`next` of the page before.")] = None,
        state: Annotated[State | None, Query()] = None,
    ) -> dict[str, Any]:
        """Jobs, newest first."""
        jobs = store.jobs(limit=limit, before=before, state=state)
        return {"jobs": [job_view(j) for j in jobs], "next": jobs[-1].id if len(jobs) == limit else None}

    @app.get("/v1/jobs/{job_id}", tags=["jobs"], operation_id="getJob")
    def get_job(job_id: str) -> dict[str, Any]:
        return job_view(_find(store, job_id))

    @app.post("/v1/jobs/{job_id}/cancel", status_code=202, tags=["jobs"], operation_id="cancelJob")
    def cancel_job(job_id: str) -> dict[str, Any]:
        """Ask for a job to be cancelled. A finished job stays as it is; asking again does no harm."""
        _find(store, job_id)
        job = store.request_cancel(job_id)
        assert job is not None
        return job_view(job)

    @app.get("/v1/jobs/{job_id}/events", tags=["jobs"], operation_id="watchJob")
    async def watch_job(
        job_id: str,
        request: Request,
        last_event_id: Annotated[str | None, Header()] = None,
        after: Annotated[int, Query(ge=0, lt=2**63, description="As `Last-Event-ID`, which wins.")] = 0,
    ) -> StreamingResponse:
        """Progress as server-sent events, from the beginning or from `Last-Event-ID`; ends when the job has ended."""
        await anyio.to_thread.run_sync(_find, store, job_id)
        seen = (last_event_id or "").strip()
        after = int(seen) if seen.isascii() and seen.isdecimal() and len(seen) < 19 else after
        stream = _event_stream(store, job_id, after, settings.poll_s, request.is_disconnected)
        return StreamingResponse(stream, media_type="text/event-stream", headers={"Cache-Control": "no-store"})


async def _event_stream(
    store: Store, job_id: str, after: int, poll_s: float, gone: Callable[[], Any]
) -> AsyncIterator[str]:
    quiet_since = time.monotonic()
    while not await gone():
        job = await anyio.to_thread.run_sync(_find, store, job_id)
        rows = await anyio.to_thread.run_sync(partial(store.events, job_id, after=after, limit=_EVENTS_AT_ONCE))
        if rows:
            after = rows[-1].id or after
            yield "".join(_sse(row) for row in rows)
            quiet_since = time.monotonic()
        if not rows and State(job.state).is_final:
            yield f"event: end\ndata: {JSONResponse(job_view(job)).body.decode()}\n\n"  # type: ignore[union-attr]
            return
        if not rows:
            await asyncio.sleep(poll_s)
        if time.monotonic() - quiet_since >= HEARTBEAT_S:
            quiet_since = time.monotonic()
            yield ": still here\n\n"


def _sse(row: JobEvent) -> str:
    data = bytes(JSONResponse(event_view(row)).body).decode()
    return f"id: {row.id}\nevent: {row.kind}\ndata: {data}\n\n"


def _add_result_routes(app: FastAPI, settings: Settings, store: Store) -> None:
    def finished(job_id: str) -> Job:
        job = _find(store, job_id)
        if not State(job.state).is_final:
            raise ProblemError(409, "not-finished", f"The job is {job.state}.", headers={"Retry-After": "2"})
        return job

    def artifact(job_id: str, name: str, media_type: str) -> FileResponse:
        job = finished(job_id)
        file = job_folder(settings, job.id) / job.out_folder / name
        if job.state != State.DONE or not file.is_file():
            raise ProblemError(404, "not-found", f"The job left no {name}: {job.error or job.summary or job.state}")
        return FileResponse(file, media_type=media_type)

    def result_of(job_id: str) -> Result:
        job = finished(job_id)
        result = read_result(job_folder(settings, job.id) / job.out_folder, job.kind)
        if job.state != State.DONE or result is None:
            raise ProblemError(404, "not-found", f"The job left no report: {job.error or job.summary or job.state}")
        return result

    @app.get("/v1/jobs/{job_id}/patch", tags=["results"], operation_id="getPatch")
    def get_patch(job_id: str) -> FileResponse:
        """The patch as `git apply` takes it."""
        result = result_of(job_id)
        if result.patch is None:
            raise ProblemError(404, "no-patch", result.summary, outcome=result.outcome)
        return artifact(job_id, result.patch, "text/x-diff")

    @app.get("/v1/jobs/{job_id}/offers/{number}", tags=["results"], operation_id="getOffer")
    def get_offer(job_id: str, number: int) -> FileResponse:
        """The patch of a candidate that was offered separately, counted from 1."""
        report = result_of(job_id).report
        offers = report.offers if report is not None else ()
        if not 1 <= number <= len(offers):
            raise ProblemError(404, "not-found", f"The job made {len(offers)} offers.")
        return artifact(job_id, offers[number - 1].patch, "text/x-diff")

    @app.get("/v1/jobs/{job_id}/report", tags=["results"], operation_id="getReport", response_model=None)
    def get_report(job_id: str, accept: Annotated[str, Header()] = "") -> FileResponse:
        """The report as JSON, or as Markdown when `Accept` asks for text/markdown."""
        if "text/markdown" in accept:
            return artifact(job_id, MARKDOWN_NAME, "text/markdown; charset=utf-8")
        return artifact(job_id, REPORT_NAME, "application/json")

    @app.get("/v1/jobs/{job_id}/waterfall", tags=["results"], operation_id="getWaterfall")
    def get_waterfall(job_id: str) -> FileResponse:
        """What each step changed, as SVG."""
        report = result_of(job_id).report
        name = report.artifacts.waterfall if report is not None else None
        if name is None:
            raise ProblemError(404, "no-patch", "No step was kept.")
        return artifact(job_id, name, "image/svg+xml")


def _add_service_routes(app: FastAPI, store: Store) -> None:
    @app.get("/v1/targets", tags=["service"], operation_id="listTargets")
    def list_targets() -> dict[str, Any]:
        return {"targets": [target_view(load_target(arch)) for arch in known_archs()]}

    @app.get("/v1/skills", tags=["service"], operation_id="listSkills")
    def list_skills() -> dict[str, Any]:
        return {"skills": [skill_view(skill) for skill in load_library()]}

    @app.get("/healthz", tags=["service"], operation_id="health")
    def health() -> dict[str, str]:
        """The process answers."""
        return {"status": "ok"}

    @app.get("/readyz", tags=["service"], operation_id="ready")
    def ready() -> dict[str, Any]:
        """The database can be written and at least one worker is alive."""
        store.probe()
        alive = store.workers(seen_within_s=WORKER_SILENCE_S)
        if not alive:
            raise ProblemError(503, "not-ready", "No worker is alive.", headers={"Retry-After": "5"})
        workers = [{"name": w.name, "isolation": w.isolation} for w in alive]
        return {"status": "ready", "workers": workers, "jobs": store.counts()}

    @app.get("/problems/{kind}", tags=["service"], operation_id="explainProblem", response_class=PlainTextResponse)
    def explain_problem(kind: str) -> str:
        """What a problem type means."""
        if kind not in TITLES:
            raise ProblemError(404, "not-found", f"There is no problem type {kind}.")
        return f"{TITLES[kind]}. The member `detail` of the answer says more.\n"
