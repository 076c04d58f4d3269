"""Trials of skills, and the hit rates counted from them.

Rates are sums over `TrialCount`: how many trials of one skill, architecture, language and correctness there are, in all
and by week, so that a page costs the same with a hundred trials and with millions. Triggers of the database keep those
rows: a trial and its count are written by the same statement, whoever writes it, and are never apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Index, case, func, inspect, text
from sqlalchemy import select as select_columns
from sqlmodel import Field, SQLModel, col, select

from agent.stats import EQUIVALENT, NOT_BUILT, UNVALIDATED, HitRate

if TYPE_CHECKING:
    from api.store import Store

WEEK_S = 7 * 86400
_MONDAY_S = 3 * 86400
"""The epoch began on a Thursday; weeks begin on a Monday."""
EVER = -1
"""The `week` of counts over all weeks."""
FILTERS = ("arch", "language", "correctness", "skill")
"""Columns that rates can be narrowed by."""
_KEPT = ("kept", "step")
_SPEEDS = ("measured", "measured-elsewhere", "counted", "static")
"""Evidence of speed, strongest first."""
_WORST = ("Incorrect", "Crashed", "TimedOut", "CompileFailed")
"""Verdicts, worst first."""


class Trial(SQLModel, table=True):
    """One skill tried in one job: the rows behind the hit rates. Written once, never edited."""

    __table_args__ = (
        Index("trial_rates", "skill", "arch", "language", "correctness", "verdict", "fate"),
        Index("trial_reasons", "skill", "reason", "fate", "arch", "language", "correctness", "verdict", "speed"),
    )

    id: int | None = Field(default=None, primary_key=True)
    job_id: str = Field(index=True, foreign_key="job.id")
    skill: str = Field(index=True)
    edit: str
    arch: str = Field(index=True)
    language: str
    fate: str
    verdict: str | None
    correctness: str
    speed: str
    reason: str
    at: float


class TrialCount(SQLModel, table=True):
    """How many trials of one kind ended how, in one week or ever. Only the triggers write it."""

    __table_args__ = {"sqlite_with_rowid": False}  # kept in the order of its key: a range of weeks is one read

    week: int = Field(primary_key=True)
    """Weeks since Monday, 29 December 1969, or `EVER`."""
    skill: str = Field(primary_key=True)
    arch: str = Field(primary_key=True)
    language: str = Field(primary_key=True)
    correctness: str = Field(primary_key=True)
    tried: int
    compiled: int
    equivalent: int
    effective: int
    kept: int


@dataclass(frozen=True, slots=True)
class Week:
    """Trials of one week; `start` is its Monday, seconds since the epoch."""

    start: int
    tried: int
    kept: int


def _words(values: Sequence[str]) -> str:
    return ", ".join(f"'{v}'" for v in values)


_NUMBERS = ("tried", "compiled", "equivalent", "effective", "kept")
_COUNT_KEY = ("week", "skill", "arch", "language", "correctness")
_COLUMNS = ", ".join([*_COUNT_KEY, *_NUMBERS])


def _counted(row: str) -> dict[str, str]:
    """Columns of `TrialCount` for a row of `trial` with this prefix, as SQL."""
    return {
        "week": f"CAST(({row}at + {_MONDAY_S}) / {WEEK_S} AS INTEGER)",
        **{name: f"{row}{name}" for name in _COUNT_KEY[1:]},
        "tried": "1",
        "compiled": f"coalesce({row}verdict NOT IN ({_words(NOT_BUILT)}), 0)",
        "equivalent": f"coalesce({row}verdict IN ({_words(EQUIVALENT)}), 0) AND "
        f"{row}correctness NOT IN ({_words(UNVALIDATED)})",
        "effective": f"coalesce({row}verdict = 'Accepted', 0)",
        "kept": f"{row}fate IN ({_words(_KEPT)})",
    }


def _trigger(event: str, row: str, sign: str) -> str:
    """Counts one row of `trial` in its week and in all weeks."""
    week, *rest = _counted(row).values()
    both = f"SELECT span.week, {', '.join(rest)} FROM (SELECT {EVER} AS week UNION ALL SELECT {week}) AS span"
    changes = ", ".join(f"{n} = {n} {sign} excluded.{n}" for n in _NUMBERS)
    return f"""CREATE TRIGGER IF NOT EXISTS trial_count_{event} AFTER {event} ON trial BEGIN
        INSERT INTO trialcount ({_COLUMNS}) {both} WHERE true
        ON CONFLICT ({", ".join(_COUNT_KEY)}) DO UPDATE SET {changes};
    END"""


def create_counts(connection: Connection, *, had_counts: bool) -> None:
    """The triggers, and, in a database of an earlier release, the counts of the trials that are there."""
    for statement in (_trigger("INSERT", "NEW.", "+"), _trigger("DELETE", "OLD.", "-")):
        connection.execute(text(statement))
    if had_counts:
        return
    week, *rest = _counted("").values()
    key = ", ".join(_COUNT_KEY)
    sums = ", ".join(f"sum({n})" for n in _NUMBERS)
    for span in (week, str(EVER)):
        named = ", ".join(f"{sql} AS {name}" for sql, name in zip((span, *rest), (*_COUNT_KEY, *_NUMBERS), strict=True))
        counts = f"SELECT {key}, {sums} FROM (SELECT {named} FROM trial) GROUP BY {key}"
        connection.execute(text(f"INSERT INTO trialcount ({_COLUMNS}) {counts}"))


def has_counts(connection: Connection) -> bool:
    """Whether the database has the table of counts already."""
    return bool(inspect(connection).has_table("trialcount"))


class TrialStore:
    """The queries behind the page of skills. `wanted` maps columns of `FILTERS` to the value they must have."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def hit_rates(self, wanted: Mapping[str, str]) -> list[HitRate]:
        """Rates per skill, most tried first."""
        query = select_columns(col(TrialCount.skill), *(func.sum(getattr(TrialCount, n)) for n in _NUMBERS))
        query = _narrowed(query.where(col(TrialCount.week) == EVER), TrialCount, wanted).group_by(col(TrialCount.skill))
        with self._store.reading() as session:
            rates = [HitRate(*row) for row in session.connection().execute(query)]
        return sorted((r for r in rates if r.tried), key=lambda r: (-r.tried, r.skill))

    def trend(self, wanted: Mapping[str, str], *, weeks: int) -> list[Week]:
        """The latest weeks up to the last with trials, oldest first; a week without any is there with zeros."""
        query = select_columns(col(TrialCount.week), func.sum(TrialCount.tried), func.sum(TrialCount.kept))
        query = _narrowed(query, TrialCount, wanted).group_by(col(TrialCount.week))
        with self._store.reading() as session:
            newest = session.connection().execute(select_columns(func.max(TrialCount.week))).scalar()
            first = max(0, (newest or 0) - weeks + 1)
            found = {w: (n, k) for w, n, k in session.connection().execute(query.where(col(TrialCount.week) >= first))}
        with_trials = [week for week, (tried, _) in found.items() if tried]
        if not with_trials:
            return []
        span = range(min(with_trials), max(with_trials) + 1)
        return [Week(n * WEEK_S - _MONDAY_S, *found.get(n, (0, 0))) for n in span]

    def failures(self, wanted: Mapping[str, str], *, limit: int) -> list[tuple[str, int]]:
        """Reasons for which trials of `wanted["skill"]` were not kept, most frequent first."""
        query = select_columns(col(Trial.reason), func.count()).where(col(Trial.fate).not_in(_KEPT))
        query = _narrowed(query, Trial, wanted).group_by(col(Trial.reason))
        query = query.order_by(func.count().desc(), col(Trial.reason)).limit(limit)
        with self._store.reading() as session:
            return [(reason, n) for reason, n in session.connection().execute(query)]

    def best(self, wanted: Mapping[str, str], *, limit: int) -> Sequence[Trial]:
        """Trials that were kept, those with the strongest evidence of speed first, then the latest."""
        return self._examples(wanted, col(Trial.fate).in_(_KEPT), _rank(Trial.speed, _SPEEDS), limit)

    def worst(self, wanted: Mapping[str, str], *, limit: int) -> Sequence[Trial]:
        """Trials that were not kept, wrong results first, then the latest."""
        return self._examples(wanted, col(Trial.fate).not_in(_KEPT), _rank(Trial.verdict, _WORST), limit)

    def _examples(self, wanted: Mapping[str, str], which: Any, rank: Any, limit: int) -> Sequence[Trial]:
        """The rows are looked up for the few ids only that the index gave."""
        query = _narrowed(select_columns(col(Trial.id)).where(which), Trial, wanted)
        ids = query.order_by(rank, col(Trial.id).desc()).limit(limit)
        with self._store.reading() as session:
            order = [n for (n,) in session.connection().execute(ids)]
            rows = {t.id: t for t in session.exec(select(Trial).where(col(Trial.id).in_(order)))}
        return [rows[n] for n in order]


def _rank(column: Any, order: Sequence[str]) -> Any:
    return case({value: n for n, value in enumerate(order)}, value=column, else_=len(order))


def _narrowed(query: Any, table: Any, wanted: Mapping[str, str]) -> Any:
    for column, value in wanted.items():
        if column not in FILTERS:
            raise KeyError(column)
        query = query.where(getattr(table, column) == value)
    return query
