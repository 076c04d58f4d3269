"""Pages over a full database: their numbers are those of the rows, and their cost does not grow with the rows."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from serving import PATIENCE_S, get, run_app
from sqlalchemy import event

from agent.stats import EQUIVALENT, UNVALIDATED, HitRate
from api.app import create_app
from api.settings import Settings
from api.store import Store
from api.trial_store import WEEK_S, TrialStore
from benchmarks.pages import addresses
from benchmarks.pages_data import Filled, Size, fill

NOW = 1_790_000_000.0
FILTERS: tuple[dict[str, str], ...] = (
    {},
    {"arch": "gfx942"},
    {"language": "hip"},
    {"correctness": "emulated"},
    {"arch": "gfx950", "language": "triton", "correctness": "compiled"},
    {"skill": "fit-lds"},
    {"skill": "fit-lds", "arch": "gfx942", "correctness": "executed"},
    {"skill": "fit-lds", "arch": "no such"},
)


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return Settings(data_dir=tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def filled(settings: Settings) -> Filled:
    return fill(settings, Size(jobs=600, trials=4000, reviews=300), seed=7, now=NOW)


@pytest.fixture(scope="module")
def app(settings: Settings, filled: Filled) -> Any:
    return create_app(settings)


@pytest.fixture(scope="module")
def url(app: Any) -> Iterator[str]:
    with run_app(app) as address:
        yield address


def rows_of(database: Path, table: str) -> list[dict[str, Any]]:
    """Every row, read past the product's own code."""
    with sqlite3.connect(database) as connection:
        connection.row_factory = sqlite3.Row
        return [dict(r) for r in connection.execute(f"SELECT * FROM {table} ORDER BY id")]


def counted_by_hand(trials: list[dict[str, Any]]) -> list[HitRate]:
    counts: dict[str, Counter[str]] = {}
    for t in trials:
        c = counts.setdefault(t["skill"], Counter())
        c["tried"] += 1
        c["compiled"] += t["verdict"] not in (None, "CompileFailed")
        c["equivalent"] += t["verdict"] in EQUIVALENT and t["correctness"] not in UNVALIDATED
        c["effective"] += t["verdict"] == "Accepted"
        c["kept"] += t["fate"] in ("kept", "step")
    rates = [
        HitRate(s, c["tried"], c["compiled"], c["equivalent"], c["effective"], c["kept"]) for s, c in counts.items()
    ]
    return sorted(rates, key=lambda r: (-r.tried, r.skill))


@pytest.mark.parametrize("wanted", FILTERS, ids=str)
def test_rates_trend_and_reasons_are_those_of_the_rows(
    settings: Settings, filled: Filled, wanted: dict[str, str]
) -> None:
    trials = TrialStore(Store(settings.database))
    rows = [t for t in rows_of(settings.database, "trial") if all(t[k] == v for k, v in wanted.items())]
    assert trials.hit_rates(wanted) == counted_by_hand(rows)
    weeks = Counter(int(t["at"] + 3 * 86400) // WEEK_S for t in rows)
    kept = Counter(int(t["at"] + 3 * 86400) // WEEK_S for t in rows if t["fate"] in ("kept", "step"))
    for w in trials.trend(wanted, weeks=1000):
        number = (w.start + 3 * 86400) // WEEK_S
        assert (w.tried, w.kept) == (weeks.pop(number, 0), kept[number])
    assert not weeks
    reasons = Counter(t["reason"] for t in rows if t["fate"] not in ("kept", "step"))
    expected = sorted(reasons.items(), key=lambda r: (-r[1], r[0]))[:10]
    assert trials.failures(wanted, limit=10) == expected


def test_the_best_and_the_worst_come_first(settings: Settings, filled: Filled) -> None:
    trials = TrialStore(Store(settings.database))
    wanted = {"skill": filled.skill, "arch": "gfx950"}
    rows = [t for t in rows_of(settings.database, "trial") if all(t[k] == v for k, v in wanted.items())]
    speeds = ["measured", "measured-elsewhere", "counted", "static", "none"]
    kept = [t for t in rows if t["fate"] in ("kept", "step")]
    kept.sort(key=lambda t: (speeds.index(t["speed"]), -t["id"]))
    assert [t.id for t in trials.best(wanted, limit=7)] == [t["id"] for t in kept[:7]]
    lost = [t for t in rows if t["fate"] not in ("kept", "step")]
    wrong = [t["id"] for t in lost if t["verdict"] == "Incorrect"][::-1]
    assert [t.id for t in trials.worst(wanted, limit=3)] == wrong[:3]


def test_counts_follow_every_writer_and_an_older_file_gets_them(tmp_path: Path) -> None:
    """Rows that come, go, or were there before counts were kept."""
    settings = Settings(data_dir=tmp_path)
    fill(settings, Size(jobs=80, trials=300, reviews=2), seed=3, now=NOW)
    with sqlite3.connect(settings.database) as connection:
        connection.execute("DELETE FROM trial WHERE id % 3 = 0")
        connection.execute("INSERT INTO trial SELECT NULL, job_id, 'other', edit, arch, language, fate, NULL, "
                           "correctness, speed, reason, at FROM trial WHERE id % 5 = 0")  # fmt: skip
    expected = counted_by_hand(rows_of(settings.database, "trial"))
    assert TrialStore(Store(settings.database)).hit_rates({}) == expected
    with sqlite3.connect(settings.database) as connection:
        for name in ("INSERT", "DELETE"):
            connection.execute(f"DROP TRIGGER trial_count_{name}")
        connection.execute("DROP TABLE trialcount")
        connection.execute("DROP INDEX job_by_state")
    trials = TrialStore(Store(settings.database))
    assert trials.hit_rates({}) == expected
    assert sum(w.tried for w in trials.trend({}, weeks=1000)) == sum(r.tried for r in expected)
    with sqlite3.connect(settings.database) as connection:
        assert connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'job_by_state'").fetchone()


@pytest.mark.parametrize(
    "query", ["", "state=failed", "arch=gfx950", "kind=port", "state=done&arch=gfx942&kind=optimize"]
)
def test_walking_the_list_meets_every_job_once(url: str, settings: Settings, query: str) -> None:
    wanted = dict(p.split("=") for p in query.split("&") if p)
    expected = [j["id"] for j in rows_of(settings.database, "job") if all(j[k] == v for k, v in wanted.items())][::-1]
    seen: list[str] = []
    address = f"{url}/?{query}"
    while address:
        text = get(address).text
        seen += [part.partition('"')[0] for part in text.split('href="/jobs/')[1:]]
        older = text.partition('href="?before=')[2].partition('"')[0]
        address = f"{url}/?before={older.replace('&amp;', '&')}" if older else ""
    assert seen == expected


def test_every_page_is_small_and_asks_little_of_the_database(url: str, app: Any, filled: Filled) -> None:
    """At most a dozen statements, none of which reads a table from end to end without an index."""
    asked: list[tuple[str, Any]] = []
    engine = app.state.store._engine

    def note(_conn: Any, _cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        asked.append((statement, parameters))

    event.listen(engine, "before_cursor_execute", note)
    assets = sum(len(get(f"{url}/static/{name}").content) for name in ("style.css", "app.js"))
    with httpx.Client(base_url=url, timeout=PATIENCE_S, headers={"accept": "text/html"}) as client:
        for page in addresses(filled):
            asked.clear()
            answer = client.get(page)
            assert answer.status_code in (200, 404, 503), (page, answer.status_code)
            statements = [(s, p) for s, p in asked if s.lstrip().upper().startswith("SELECT")]
            assert len(statements) <= 12, (page, len(statements))
            assert not [s for s in statements if scans(engine, *s)], page
            if answer.headers["content-type"].startswith("text/html"):
                assert len(answer.content) + assets < 200_000, (page, len(answer.content))
    event.remove(engine, "before_cursor_execute", note)


def scans(engine: Any, statement: str, parameters: Any) -> list[str]:
    """Steps of the query's plan that read a table which grows with use from end to end, row by row."""
    with sqlite3.connect(engine.url.database) as connection:
        plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}", tuple(parameters))]
    if "LIMIT" in statement and not any("TEMP B-TREE" in p for p in plan):
        return []  # it reads in the order of the rows and stops
    bounded = ("worker", "trialcount")
    return [p for p in plan if p.startswith("SCAN") and "USING" not in p and not any(b in p for b in bounded)]


def test_a_patch_of_any_size_and_text_fits_a_page() -> None:
    from api.diff_view import shown_part

    head = "diff --git a/k b/k\n@@ -1,9 +1,9 @@\n"
    for body in ("-a\n+b\n" * 5000, "-" + '"' * 300_000 + "\n+x\n", "+<&>\n" * 5000):
        shown = shown_part(head + body)
        used = sum(len(r.left) + len(r.right) for r in shown.rows)
        assert used < 80_000 and shown.left_out > 0
    assert shown_part(head + "-a\n+b\n").left_out == 0
