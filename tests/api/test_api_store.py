"""The job table as a queue: leases, fencing, poison jobs, cancelling, and a race of real processes."""

from __future__ import annotations

import multiprocessing
import sqlite3
import time
from pathlib import Path

import pytest
from serving import PATIENCE_S

from api.store import Job, Lease, State, Store, new_job_id
from sandbox.errors import WavesmithError


def make_job(**fields: object) -> Job:
    base = {"id": new_job_id(), "kind": "optimize", "arch": "gfx950", "target": "gfx950", "filename": "k.py"}
    return Job.model_validate({**base, "path": "k.py", "created_at": time.time(), **fields})


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "w.db")


def add(store: Store, **fields: object) -> Job:
    job = store.add_job(make_job(**fields), max_queued=1000)
    assert job is not None
    return job


def claim(store: Store, *, lease_s: float = 30.0, worker: str = "w") -> Job | None:
    return store.claim(worker, lease_s=lease_s, max_losses=3)


def progress(n: int) -> list[dict[str, object]]:
    return [{"at": 1.0, "kind": "step", "phase": "benchmark", "message": f"m{i}"} for i in range(n)]


def test_jobs_are_claimed_in_order_and_once(store: Store) -> None:
    first, second = add(store), add(store)
    assert [j.id for j in (claim(store), claim(store)) if j] == [first.id, second.id]
    assert claim(store) is None


def test_a_lost_lease_is_taken_over_and_the_frozen_worker_is_fenced(store: Store) -> None:
    add(store)
    old = claim(store, lease_s=0.01, worker="frozen")
    time.sleep(0.05)
    new = claim(store, worker="fresh")
    assert old and new and new.id == old.id and new.attempt == old.attempt + 1
    stale = Lease(old.id, old.attempt)
    assert store.renew(stale, lease_s=10) == (False, False)
    assert not store.add_events(stale, progress(1))
    assert not store.finish(stale, State.DONE, outcome="improved", exit_code=0)
    assert store.finish(Lease(new.id, new.attempt), State.DONE, outcome="nothing", exit_code=3)
    job = store.job(new.id)
    assert job and job.outcome == "nothing" and not store.events(new.id)


def test_a_job_that_kills_its_workers_is_given_up(store: Store) -> None:
    job = add(store)
    starts = 0
    while claim(store, lease_s=0.001) is not None:
        starts += 1
        time.sleep(0.01)
    ended = store.job(job.id)
    assert starts == 3 and ended and ended.state == State.FAILED and "died or froze" in (ended.error or "")


def test_a_released_job_does_not_count_as_lost(store: Store) -> None:
    job = add(store)
    for _ in range(5):
        held = claim(store)
        assert held is not None
        store.release(Lease(held.id, held.attempt))
    ended = store.job(job.id)
    assert ended and ended.state == State.QUEUED and ended.losses == 0


def test_cancelling(store: Store) -> None:
    queued = add(store)
    assert store.request_cancel(queued.id).state == State.CANCELLED  # type: ignore[union-attr]
    running = add(store)
    held = claim(store)
    assert held and held.id == running.id
    assert store.request_cancel(running.id).state == State.RUNNING  # type: ignore[union-attr]
    assert store.renew(Lease(held.id, held.attempt), lease_s=10) == (True, True)
    assert store.request_cancel("nothing") is None


def test_a_cancelled_job_whose_worker_died_is_not_started_again(store: Store) -> None:
    job = add(store)
    claim(store, lease_s=0.001)
    store.request_cancel(job.id)
    time.sleep(0.01)
    assert claim(store) is None
    ended = store.job(job.id)
    assert ended and ended.state == State.CANCELLED


def test_events_are_numbered_and_continue(store: Store) -> None:
    add(store)
    held = claim(store)
    assert held is not None
    assert store.add_events(Lease(held.id, held.attempt), progress(5))
    rows = store.events(held.id)
    assert [r.message for r in rows] == [f"m{i}" for i in range(5)]
    assert [r.message for r in store.events(held.id, after=rows[2].id or 0)] == ["m3", "m4"]


def test_a_full_queue_refuses_and_a_known_key_returns_the_first_job(store: Store) -> None:
    first = store.add_job(make_job(idempotency_key="k"), max_queued=1)
    assert first is not None
    assert store.add_job(make_job(), max_queued=1) is None
    again = store.add_job(make_job(idempotency_key="k"), max_queued=1)
    assert again is not None and again.id == first.id


def test_another_schema_version_is_refused(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "w.db") as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(WavesmithError, match="99"):
        Store(tmp_path / "w.db")


def drain(database: Path, name: str) -> None:
    store = Store(database)
    while (job := store.claim(name, lease_s=30, max_losses=3)) is not None:
        store.add_events(Lease(job.id, job.attempt), progress(2))
        store.finish(Lease(job.id, job.attempt), State.DONE, outcome=name, exit_code=0)


def test_processes_racing_for_jobs_do_each_exactly_once(tmp_path: Path) -> None:
    store = Store(tmp_path / "w.db")
    jobs = [add(store) for _ in range(40)]
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=drain, args=(tmp_path / "w.db", f"w{i}")) for i in range(3)]
    for w in workers:
        w.start()
    for w in workers:
        w.join(PATIENCE_S)
        assert w.exitcode == 0
    ended = [store.job(j.id) for j in jobs]
    assert all(j and j.state == State.DONE and j.attempt == 1 for j in ended)
    assert all(len(store.events(j.id)) == 2 for j in jobs)
