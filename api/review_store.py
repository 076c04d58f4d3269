"""What the GitHub bot remembers: deliveries it has seen, reviews of pull requests, and findings people dismissed."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from enum import StrEnum
from typing import Any

from sqlalchemy import Index, UniqueConstraint, func
from sqlalchemy.orm import defer
from sqlmodel import Field, SQLModel, col, select

from api.store import Store

MAX_TRIES = 3
_KEPT_DELIVERIES_S = 30 * 86400.0


class ReviewState(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    """A fault of ours or of the connection; `summary` says which."""
    SUPERSEDED = "superseded"
    """A newer push or request took its place."""
    REFUSED = "refused"
    """Asked for by someone without write access, or a command that is none."""

    @property
    def is_final(self) -> bool:
        return self not in (ReviewState.QUEUED, ReviewState.RUNNING)


class Delivery(SQLModel, table=True):
    """A webhook delivery that was accepted; a second one with its id is refused."""

    id: str = Field(primary_key=True)
    event: str
    at: float = Field(index=True)


class PullReview(SQLModel, table=True):
    """One review of a pull request, or one command on it, from the webhook to what was posted."""

    __table_args__ = (
        Index("review_of_pull", "repository", "pull", "state"),
        Index("review_by_repository", "repository", "id"),
    )

    id: int | None = Field(default=None, primary_key=True)
    repository: str
    """`owner/name`."""
    pull: int
    installation: int
    head: str = ""
    """Commit to review; empty for a command, which is about the newest."""
    command: str = ""
    by: str = ""
    """Login of who gave the command."""
    comment: int | None = None
    """Id of the comment that holds the command."""
    state: str = Field(default=ReviewState.QUEUED, index=True)
    tries: int = 0
    targets: str = ""
    summary: str = ""
    introduced: int | None = None
    result: str = ""
    """The review as JSON."""
    created_at: float = Field(index=True)
    finished_at: float | None = None


class Dismissal(SQLModel, table=True):
    """A rule or a finding that somebody with write access silenced on one pull request."""

    __table_args__ = (UniqueConstraint("repository", "pull", "name"),)

    id: int | None = Field(default=None, primary_key=True)
    repository: str
    pull: int
    name: str
    """A rule or a fingerprint."""
    by: str
    at: float


class ReviewStore:
    """The bot's queries, on the service's database."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def accept(self, delivery: str, event: str, review: PullReview | None) -> bool:
        """Remember a delivery and queue what it asks for, both or neither; False when it was accepted before.

        A review of a pull request takes the place of those that still wait or run; a command does not.
        """
        now = time.time()
        with self._store.writing() as session:
            if session.get(Delivery, delivery) is not None:
                return False
            for old in session.exec(select(Delivery).where(Delivery.at < now - _KEPT_DELIVERIES_S).limit(100)):
                session.delete(old)
            session.add(Delivery(id=delivery, event=event, at=now))
            if review is not None:
                if not review.command:
                    _supersede(session, review.repository, review.pull, now)
                session.add(review)
            return True

    def close_pull(self, repository: str, pull: int) -> None:
        """Nothing more is to be done for a pull request."""
        with self._store.writing() as session:
            _supersede(session, repository, pull, time.time())

    def claim(self, *, but_not: Collection[int] = ()) -> PullReview | None:
        """The oldest waiting review, now running; None when there is none. `but_not` are ids to leave waiting."""
        with self._store.writing() as session:
            query = select(PullReview).where(PullReview.state == ReviewState.QUEUED).order_by(col(PullReview.id))
            query = query.where(col(PullReview.id).not_in(but_not))
            row = session.exec(query).first()
            if row is not None:
                row.state, row.tries = ReviewState.RUNNING, row.tries + 1
            return row

    def recover(self) -> None:
        """Queue again what a stopped process left running; give up what stopped several."""
        with self._store.writing() as session:
            for row in session.exec(select(PullReview).where(PullReview.state == ReviewState.RUNNING)):
                given_up = row.tries >= MAX_TRIES
                row.state = ReviewState.FAILED if given_up else ReviewState.QUEUED
                if given_up:
                    row.summary, row.finished_at = f"The service stopped in each of {row.tries} tries.", time.time()

    def is_current(self, review: int) -> bool:
        """Whether a running review is still wanted."""
        with self._store.reading() as session:
            row = session.get(PullReview, review)
            return row is not None and row.state == ReviewState.RUNNING

    def finish(self, review: int, state: ReviewState, **fields: Any) -> bool:
        """End a running review; False when it was superseded meanwhile, and then nothing is written."""
        with self._store.writing() as session:
            row = session.get(PullReview, review)
            if row is None or row.state != ReviewState.RUNNING:
                return False
            row.state = state
            row.finished_at = None if state is ReviewState.QUEUED else time.time()
            for name, value in fields.items():
                setattr(row, name, value)
            return True

    def latest_result(self, repository: str, pull: int) -> PullReview | None:
        """The newest finished review that has a result."""
        query = (
            select(PullReview)
            .where(PullReview.repository == repository, PullReview.pull == pull)
            .where(PullReview.state == ReviewState.DONE, PullReview.result != "")
            .order_by(col(PullReview.id).desc())
        )
        with self._store.reading() as session:
            return session.exec(query).first()

    def dismiss(self, repository: str, pull: int, name: str, by: str) -> None:
        """Silence a rule or finding on a pull request; again is no harm."""
        with self._store.writing() as session:
            same = (Dismissal.repository == repository, Dismissal.pull == pull, Dismissal.name == name)
            if session.exec(select(Dismissal).where(*same)).first() is None:
                session.add(Dismissal(repository=repository, pull=pull, name=name, by=by, at=time.time()))

    def dismissed(self, repository: str, pull: int) -> frozenset[str]:
        """Rules and fingerprints silenced on a pull request."""
        query = select(Dismissal.name).where(Dismissal.repository == repository, Dismissal.pull == pull)
        with self._store.reading() as session:
            return frozenset(session.exec(query))

    def review(self, number: int) -> PullReview | None:
        """One review by its id."""
        with self._store.reading() as session:
            return session.get(PullReview, number)

    def reviews(self, *, limit: int, before: int | None = None, repository: str | None = None) -> Sequence[PullReview]:
        """Newest first, without their results; `before` is the id to continue from."""
        heavy: Any = PullReview.result
        query = select(PullReview).options(defer(heavy, raiseload=True))
        query = query.order_by(col(PullReview.id).desc()).limit(limit)
        if before is not None:
            query = query.where(col(PullReview.id) < before)
        if repository:
            query = query.where(PullReview.repository == repository)
        with self._store.reading() as session:
            return session.exec(query).all()

    def repositories(self) -> list[tuple[str, int]]:
        """Repositories with their number of reviews, most reviewed first."""
        query = (
            select(PullReview.repository, func.count())
            .group_by(PullReview.repository)
            .order_by(func.count().desc())
            .limit(100)
        )
        with self._store.reading() as session:
            return [(name, n) for name, n in session.exec(query)]


def _supersede(session: Any, repository: str, pull: int, now: float) -> None:
    open_states = (ReviewState.QUEUED, ReviewState.RUNNING)
    query = select(PullReview).where(PullReview.repository == repository, PullReview.pull == pull)
    for row in session.exec(query.where(col(PullReview.state).in_(open_states), PullReview.command == "")):
        row.state, row.finished_at, row.summary = ReviewState.SUPERSEDED, now, "A newer push took its place."
