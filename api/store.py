"""The service's database: jobs and their events; more tables in `trial_store` and `review_store`, in one SQLite file.

The job table is also the queue. A worker claims a job by raising its `attempt` and taking a lease; whatever it writes
later carries that number, so a worker that froze and lost its lease can overwrite nothing. Every write is one `BEGIN
IMMEDIATE` transaction, so that two workers never claim the same job.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, Index, and_, event, func, or_, text
from sqlmodel import Field, Session, SQLModel, col, create_engine, select

from api.trial_store import Trial as Trial
from api.trial_store import create_counts, has_counts
from sandbox.errors import WavesmithError

SCHEMA_VERSION = 1


class State(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    """It ended with an outcome, good or bad."""
    FAILED = "failed"
    """A fault of ours, a timeout, or input that cannot be used."""
    CANCELLED = "cancelled"

    @property
    def is_final(self) -> bool:
        return self in (State.DONE, State.FAILED, State.CANCELLED)


class Job(SQLModel, table=True):
    """One request and what became of it. Times are seconds since the epoch."""

    __table_args__ = (
        Index("job_by_state", "state", "id"),
        Index("job_by_arch", "arch", "id"),
        Index("job_by_kind", "kind", "id"),
    )

    id: str = Field(primary_key=True)
    kind: str
    arch: str
    target: str
    filename: str
    path: str
    options: str = "{}"
    """The request's options as JSON."""
    state: str = State.QUEUED
    outcome: str | None = None
    exit_code: int | None = None
    summary: str | None = None
    error: str | None = None
    attempt: int = 0
    """The fencing token: raised by every claim, never lowered."""
    losses: int = 0
    """Attempts whose worker died or froze."""
    worker: str | None = None
    lease_until: float | None = None
    cancel_requested: bool = False
    created_at: float = Field(index=True)
    started_at: float | None = None
    finished_at: float | None = None
    idempotency_key: str | None = Field(default=None, unique=True)
    request_digest: str = ""

    @property
    def out_folder(self) -> str:
        """Each attempt writes a folder of its own."""
        return f"out-{self.attempt}"


class JobEvent(SQLModel, table=True):
    """One line of progress; `id` is the SSE event id."""

    id: int | None = Field(default=None, primary_key=True)
    job_id: str = Field(index=True, foreign_key="job.id")
    attempt: int
    at: float
    kind: str
    phase: str
    message: str
    data: str = "{}"


class Worker(SQLModel, table=True):
    """A worker process and when it was last heard of."""

    name: str = Field(primary_key=True)
    seen_at: float
    isolation: str = ""
    """What keeps candidates apart from this machine, as the worker found it; empty before its self-test."""


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to work on a job, as long as no later attempt exists."""

    job_id: str
    attempt: int


def new_job_id() -> str:
    """Sortable by time, unguessable."""
    return f"{int(time.time() * 1000):011x}{secrets.token_hex(8)}"


class Store:
    """Every query of the service. Safe to use from several threads and processes at once."""

    def __init__(self, database: Path) -> None:
        database.parent.mkdir(parents=True, exist_ok=True)
        self._engine: Engine = create_engine(f"sqlite:///{database}", connect_args={"timeout": 30})
        event.listen(self._engine, "connect", _configure)
        event.listen(self._engine, "begin", _begin)
        with self.writing() as session:
            _create_schema(session.connection())

    def close(self) -> None:
        self._engine.dispose()

    @contextmanager
    def writing(self) -> Iterator[Session]:
        """One transaction that may write; nobody else writes meanwhile."""
        engine = self._engine.execution_options(immediate=True)
        with Session(engine, expire_on_commit=False) as session, session.begin():
            yield session

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """One transaction that only reads."""
        with Session(self._engine, expire_on_commit=False) as session:
            yield session

    # Requests

    def add_job(self, job: Job, *, max_queued: int) -> Job | None:
        """Queue a job; None when the queue is full. A job with the same idempotency key is returned instead."""
        with self.writing() as session:
            if job.idempotency_key is not None:
                known = session.exec(select(Job).where(Job.idempotency_key == job.idempotency_key)).first()
                if known is not None:
                    return known
            queued = session.exec(select(func.count()).select_from(Job).where(Job.state == State.QUEUED)).one()
            if queued >= max_queued:
                return None
            session.add(job)
            return job

    def job(self, job_id: str) -> Job | None:
        with self.reading() as session:
            return session.get(Job, job_id)

    def jobs(
        self,
        *,
        limit: int,
        before: str | None = None,
        state: str | None = None,
        arch: str | None = None,
        kind: str | None = None,
    ) -> Sequence[Job]:
        """Newest first; `before` is the id to continue from."""
        query = select(Job).order_by(col(Job.id).desc()).limit(limit)
        if before is not None:
            query = query.where(col(Job.id) < before)
        if state is not None:
            query = query.where(Job.state == state)
        if arch is not None:
            query = query.where(Job.arch == arch)
        if kind is not None:
            query = query.where(Job.kind == kind)
        with self.reading() as session:
            return session.exec(query).all()

    def probe(self) -> None:
        """Raises when the database cannot be written."""
        with self.writing() as session:
            session.connection().execute(text(f"PRAGMA user_version = {SCHEMA_VERSION}"))

    def counts(self) -> dict[str, int]:
        """Number of jobs by state."""
        with self.reading() as session:
            return dict(session.exec(select(Job.state, func.count()).group_by(Job.state)).all())

    def events(self, job_id: str, *, after: int = 0, limit: int = 500) -> Sequence[JobEvent]:
        query = select(JobEvent).where(JobEvent.job_id == job_id, col(JobEvent.id) > after)
        with self.reading() as session:
            return session.exec(query.order_by(col(JobEvent.id)).limit(limit)).all()

    def latest_events(self, job_id: str, *, limit: int) -> list[JobEvent]:
        """The last events of a job, oldest first."""
        query = select(JobEvent).where(JobEvent.job_id == job_id).order_by(col(JobEvent.id).desc()).limit(limit)
        with self.reading() as session:
            return list(session.exec(query))[::-1]

    def events_of_proposal(self, job_id: str, attempt: int, proposal: str, *, limit: int) -> list[JobEvent]:
        """What was said of one proposal in one attempt at a job, oldest first."""
        query = select(JobEvent).where(JobEvent.job_id == job_id, JobEvent.attempt == attempt)
        query = query.where(func.json_extract(JobEvent.data, "$.proposal") == proposal)
        with self.reading() as session:
            return list(session.exec(query.order_by(col(JobEvent.id)).limit(limit)))

    def request_cancel(self, job_id: str) -> Job | None:
        """Cancel a queued job at once; ask the worker of a running one. A finished job stays as it is."""
        now = time.time()
        with self.writing() as session:
            job = session.get(Job, job_id)
            if job is not None and job.state == State.QUEUED:
                job.state, job.finished_at, job.summary = State.CANCELLED, now, "Cancelled before it started."
            elif job is not None and job.state == State.RUNNING:
                job.cancel_requested = True
            return job

    # Workers

    def hello(self, worker: str, isolation: str | None = None) -> None:
        """Note that a worker lives; with `isolation`, what its self-test found."""
        with self.writing() as session:
            row = session.get(Worker, worker) or Worker(name=worker, seen_at=0.0)
            row.seen_at = time.time()
            if isolation is not None:
                row.isolation = isolation
            session.add(row)

    def goodbye(self, worker: str) -> None:
        with self.writing() as session:
            row = session.get(Worker, worker)
            if row is not None:
                session.delete(row)

    def workers(self, *, seen_within_s: float) -> Sequence[Worker]:
        with self.reading() as session:
            return session.exec(select(Worker).where(Worker.seen_at >= time.time() - seen_within_s)).all()

    def claim(self, worker: str, *, lease_s: float, max_losses: int) -> Job | None:
        """The oldest queued job, or one whose worker lost its lease; None when there is nothing to do."""
        now = time.time()
        lost = and_(col(Job.state) == State.RUNNING, col(Job.lease_until) < now)
        query = select(Job).where(or_(col(Job.state) == State.QUEUED, lost)).order_by(col(Job.id))
        with self.writing() as session:
            for job in session.exec(query):
                job.losses += job.state == State.RUNNING
                if job.cancel_requested:
                    _end(job, State.CANCELLED, now, summary="Cancelled.")
                elif job.losses >= max_losses:
                    error = f"The worker died or froze in each of {job.losses} attempts."
                    _end(job, State.FAILED, now, error=error, exit_code=1)
                else:
                    job.attempt += 1
                    job.state, job.worker, job.lease_until = State.RUNNING, worker, now + lease_s
                    job.started_at = job.started_at or now
                    return job
        return None

    def renew(self, lease: Lease, *, lease_s: float) -> tuple[bool, bool]:
        """Prolong a lease; returns (it is still held, cancelling was requested)."""
        with self.writing() as session:
            job = session.get(Job, lease.job_id)
            if job is None or not _holds(job, lease):
                return False, False
            job.lease_until = time.time() + lease_s
            return True, job.cancel_requested

    def add_events(self, lease: Lease, rows: Sequence[Mapping[str, Any]]) -> bool:
        """Append progress; False when the lease is lost, and then nothing is written."""
        with self.writing() as session:
            job = session.get(Job, lease.job_id)
            if job is None or not _holds(job, lease):
                return False
            for row in rows:
                session.add(
                    JobEvent(
                        job_id=lease.job_id,
                        attempt=lease.attempt,
                        at=float(row["at"]),
                        kind=str(row["kind"]),
                        phase=str(row["phase"]),
                        message=str(row["message"]),
                        data=json.dumps(row.get("data") or {}),
                    )
                )
            return True

    def finish(self, lease: Lease, state: State, trials: Sequence[Trial] = (), **fields: Any) -> bool:
        """End a job: outcome, exit_code, summary or error in `fields`. False when the lease is lost."""
        with self.writing() as session:
            job = session.get(Job, lease.job_id)
            if job is None or not _holds(job, lease):
                return False
            _end(job, state, time.time(), **fields)
            session.add_all(trials)
            return True

    def release(self, lease: Lease) -> None:
        """Give a job back unfinished, because its worker is being stopped."""
        with self.writing() as session:
            job = session.get(Job, lease.job_id)
            if job is not None and _holds(job, lease):
                job.state, job.lease_until, job.worker = State.QUEUED, None, None


def _holds(job: Job, lease: Lease) -> bool:
    return job.state == State.RUNNING and job.attempt == lease.attempt


def _end(job: Job, state: State, now: float, **fields: Any) -> None:
    job.state, job.finished_at, job.lease_until = state, now, None
    for name, value in fields.items():
        setattr(job, name, value)


def _configure(connection: Any, _record: Any) -> None:
    connection.isolation_level = None  # SQLAlchemy's BEGIN is the one that counts, see `_begin`
    for pragma in ("journal_mode=WAL", "busy_timeout=30000", "synchronous=NORMAL", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {pragma}")


def _begin(connection: Connection) -> None:
    immediate = connection.get_execution_options().get("immediate", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if immediate else "BEGIN")


def _create_schema(connection: Connection) -> None:
    version = connection.execute(text("PRAGMA user_version")).scalar_one()
    if version not in (0, SCHEMA_VERSION):
        raise WavesmithError(f"the database has schema version {version}; this release reads {SCHEMA_VERSION}.")
    had_counts = has_counts(connection)
    SQLModel.metadata.create_all(connection)
    for table in SQLModel.metadata.sorted_tables:
        for index in table.indexes:
            index.create(connection, checkfirst=True)  # an older file has the table, and `create_all` adds none to it
    create_counts(connection, had_counts=had_counts)
    connection.execute(text(f"PRAGMA user_version = {SCHEMA_VERSION}"))
