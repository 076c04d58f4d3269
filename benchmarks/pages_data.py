"""A database as it is after a long time: rows and folders made at random, through the product's own models."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from agent.report import (
    ArtifactsPart,
    AttemptPart,
    BaselinePart,
    CorrectnessPart,
    FilePart,
    KernelMetrics,
    Report,
    SkippedPart,
    SpeedPart,
    TargetPart,
    ToolVersion,
)
from agent.review.finding import RULES, Finding, Fix, ReviewResult, fingerprint
from api.jobs import job_folder
from api.review_store import PullReview, ReviewState
from api.settings import Settings
from api.store import Job, JobEvent, State, Store, Worker
from api.trial_store import Trial
from skills.skill import load_library

ARCHS = ("gfx942", "gfx950")
LANGUAGES = ("triton", "hip")
LEVELS = ("none", "compiled", "interpreted", "emulated", "executed")
SPEEDS = ("none", "static", "counted", "measured")
VERDICTS = (None, "Accepted", "NoGain", "CompileFailed", "Incorrect", "Crashed", "TimedOut", "Inconclusive")
FATES = ("kept", "step", "dropped", "unshown")
YEAR_S = 365 * 86400.0
_BULK = 5000


@dataclass(frozen=True)
class Size:
    jobs: int
    trials: int
    reviews: int
    events_per_job: int = 10


@dataclass(frozen=True)
class Filled:
    """Ids of rows with much to show."""

    job: str
    port: str
    running: str
    deep: str
    """An old job, for deep pages."""
    review: int
    skill: str


def fill(settings: Settings, size: Size, seed: int = 0, now: float | None = None) -> Filled:
    """Fill an empty database; the same seed gives the same rows."""
    rng, store = random.Random(seed), Store(settings.database)
    end = time.time() if now is None else now
    jobs = list(_jobs(rng, size, end))
    heavy = next(j for j in jobs if j["kind"] == "optimize" and j["state"] == State.DONE and j["exit_code"] == 0)
    port = next(j for j in jobs if j["kind"] == "port" and j["state"] == State.DONE)
    running = next(j for j in jobs if j["state"] == State.RUNNING)
    _insert(store, Job, jobs)
    _insert(store, JobEvent, _events(rng, jobs, size.events_per_job, running["id"]))
    trials = list(_trials(rng, size, jobs, end))
    _insert(store, Trial, trials)
    _insert(store, PullReview, _reviews(rng, size, end))
    _insert(store, Worker, [{"name": "w1", "seen_at": end, "isolation": "bubblewrap"}])
    _write_report(settings, store, heavy["id"])
    _write_port(settings, store, port["id"])
    counts: dict[str, int] = {}
    for t in trials:
        counts[t["skill"]] = counts.get(t["skill"], 0) + 1
    deep = jobs[len(jobs) // 10]["id"]
    filled = Filled(heavy["id"], port["id"], running["id"], deep, 1, max(counts, key=lambda s: counts[s]))
    store.close()
    return filled


def _insert(store: Store, table: Any, rows: Any) -> None:
    """In bulk: many rows for each statement."""
    waiting: list[dict[str, Any]] = []
    with store.writing() as session:
        for row in rows:
            waiting.append(row)
            if len(waiting) == _BULK:
                session.connection().execute(table.__table__.insert(), waiting)
                waiting = []
        if waiting:
            session.connection().execute(table.__table__.insert(), waiting)


def _jobs(rng: random.Random, size: Size, end: float) -> Iterator[dict[str, Any]]:
    states = [State.DONE] * 88 + [State.FAILED] * 8 + [State.CANCELLED] * 4
    for n in range(size.jobs):
        at = end - YEAR_S * (1 - n / size.jobs)
        live = n >= size.jobs - 12
        state = (State.RUNNING if n % 2 else State.QUEUED) if live else rng.choice(states)
        outcome = rng.choice(("improved", "builds-now", "nothing", "inconclusive"))
        code = {"improved": 0, "builds-now": 0, "nothing": 3, "inconclusive": 5}[outcome]
        folder, name = rng.choice(("ops", "csrc/attention", "kernels/moe")), f"kernel_{n % 997}"
        kind = "port" if n % 10 == 3 else "optimize"
        file = f"{name}.{'cu' if kind == 'port' else 'py'}"
        yield {
            "id": f"{int(at * 1000):011x}{rng.randrange(2**64):016x}", "kind": kind, "arch": rng.choice(ARCHS),
            "target": rng.choice(("gfx942", "MI300X", "gfx950", "MI350X")), "filename": file,
            "path": f"{folder}/{file}",
            "options": "{}", "state": state, "outcome": outcome if state == State.DONE else None,
            "exit_code": code if state == State.DONE else None,
            "summary": f"lds_bytes {rng.randrange(9999)} -> 4096. With fit-lds." if state == State.DONE else None,
            "error": "error: no such instruction in this target\n" * 90 if state == State.FAILED else None,
            "attempt": 0 if state == State.QUEUED else 1, "losses": 0, "worker": "w1", "cancel_requested": False,
            "lease_until": end + 1e6 if state == State.RUNNING else None, "created_at": at, "started_at": at + 1,
            "finished_at": None if live else at + 60, "idempotency_key": None, "request_digest": "",
        }  # fmt: skip


def _events(rng: random.Random, jobs: list[dict[str, Any]], each: int, long: str) -> Iterator[dict[str, Any]]:
    for job in jobs:
        for n in range(3000 if job["id"] == long else each if job["attempt"] else 0):
            message = f"dropped: fit-lds@mm:num_stages={n}: lds_bytes {rng.randrange(9999)} stays where it is"
            yield {
                "job_id": job["id"], "attempt": 1, "at": job["created_at"] + n, "kind": "attempt", "phase": "validate",
                "message": message, "data": json.dumps({"proposal": f"p{n}", "fate": "dropped"}),
            }  # fmt: skip


def _trials(rng: random.Random, size: Size, jobs: list[dict[str, Any]], end: float) -> Iterator[dict[str, Any]]:
    skills = sorted(load_library().skills)
    done = [j for j in jobs if j["kind"] == "optimize" and j["state"] == State.DONE]
    for n in range(size.trials):
        job = done[n * len(done) // size.trials]
        skill, verdict, fate = skills[int(len(skills) * rng.random() ** 1.5)], rng.choice(VERDICTS), rng.choice(FATES)
        yield {
            "job_id": job["id"], "skill": skill, "edit": f"{skill}@mm_kernel:num_stages={n % 7}", "arch": job["arch"],
            "language": rng.choice(LANGUAGES), "fate": fate, "verdict": verdict, "correctness": rng.choice(LEVELS),
            "speed": rng.choice(SPEEDS), "at": min(job["created_at"] + 30, end),
            "reason": rng.choice(("no resource improved", f"lds_bytes {rng.randrange(99999)} -> 4096", "crashed")),
        }  # fmt: skip


def _reviews(rng: random.Random, size: Size, end: float) -> Iterator[dict[str, Any]]:
    large, small = review_result(120).model_dump_json(), review_result(3).model_dump_json()
    for n in range(size.reviews):
        done = n == 0 or rng.random() < 0.7
        yield {
            "repository": f"octo/kernels-{rng.randrange(60)}", "pull": rng.randrange(1, 900), "installation": 1,
            "head": f"{rng.randrange(16**40):040x}", "command": "", "by": "", "comment": None,
            "state": ReviewState.DONE if done else ReviewState.SUPERSEDED, "tries": 1,
            "targets": "gfx942,gfx950" if done else "", "introduced": 3 if done else None,
            "summary": "3 errors introduced, in 2 affected kernels." if done else "A newer push took its place. " * 30,
            "result": (large if n % 50 == 0 else small) if done else "",
            "created_at": end - YEAR_S * (1 - n / size.reviews), "finished_at": end,
        }  # fmt: skip


def review_result(findings: int) -> ReviewResult:
    """A review with so many findings, each with a patch of 30 lines."""
    patch = (
        "--- a/ops/k.py\n+++ b/ops/k.py\n@@ -1,30 +1,30 @@\n" + "-    x = libdevice.tanh(x)\n+    x = tanh(x)\n" * 30
    )
    fix = Fix(path="ops/k.py", title="Use tl.math", patch=patch, correctness="compiled", statement="It builds.")
    rules = list(RULES)
    found = tuple(
        Finding.model_validate(
            {
                "fingerprint": fingerprint(rules[n % 9], "ops/k.py", f"k{n}", ""), "rule": rules[n % 9],
                "level": RULES[rules[n % 9]].level, "origin": "introduced", "path": "ops/k.py", "line": n + 1,
                "end_line": n + 1, "kernel": f"kernel_{n}", "targets": ("gfx942",), "evidence": "compiled",
                "message": "kernel needs 98304 bytes of LDS. " * 8, "fix": fix,
            }
        )
        for n in range(findings)
    )  # fmt: skip
    return ReviewResult(
        wavesmith_version="0", base="a" * 40, head="b" * 40, targets=("gfx942",), files_changed=3,
        files_reviewed=("ops/k.py",), kernels=tuple(f"kernel_{n}" for n in range(findings)), findings=found,
        seconds=3.0, budget_minutes=10.0,
    )  # fmt: skip


def heavy_report(attempts: int, kernels: int, path: str = "ops/kernel.py") -> Report:
    """A report of a long search over a file with many kernels."""
    diff = "@@ -1,40 +1,40 @@\n" + "-    acc += tl.dot(x, y)\n+    acc = tl.dot(x, y, acc)\n" * 40
    names = ("lds_bytes", "vgpr_count", "sgpr_count", "scratch_bytes", "code_bytes", "waves_per_eu", "spills")
    before = {n: float(1000 + i) for i, n in enumerate(names)}
    tried = tuple(
        AttemptPart(
            number=n + 1, id=f"fit-lds@mm_{n}:num_stages=2", origin="fit-lds", title="Fit the LDS",
            why="lds_bytes = 98304", line=n, fate=FATES[n % 4], reason="lds_bytes 98304 -> 32768",
            verdict="Accepted", correctness="emulated", speed="static", seconds=1.5, diff=diff,
        )
        for n in range(attempts)
    )  # fmt: skip
    return Report(
        wavesmith_version="0", created_at="2026-01-01T00:00:00+00:00", outcome="improved", exit_code=0,
        summary="lds_bytes 98304 -> 32768. With fit-lds.",
        target=TargetPart(arch="gfx942", board="MI300X", title="CDNA3"),
        file=FilePart(path=path, language="triton", sha256="0" * 64), requirement="interpreted and static",
        correctness=CorrectnessPart(level="emulated", validated=True),
        speed=SpeedPart(level="static", statement="lds_bytes 98304 -> 32768"),
        baseline=BaselinePart(
            builds=True, launches=kernels, executor="interpreter",
            kernels=tuple(KernelMetrics(kernel=f"mm_{k}", metrics=before) for k in range(kernels)),
        ),
        result=tuple(
            KernelMetrics(kernel=f"mm_{k}", metrics={**before, "lds_bytes": 512.0 + k}) for k in range(kernels)
        ),
        attempts=tried,
        skipped=tuple(SkippedPart(origin=f"skill-{n}", title="t", reason="grid = 1 " * 20) for n in range(60)),
        toolchain=(ToolVersion(name="triton", version="3.6.0"),),
        artifacts=ArtifactsPart(patch="wavesmith.patch", patched_file="patched/k.py"),
        reproduce="wavesmith optimize ops/kernel.py --target gfx942",
    )  # fmt: skip


def heavy_patch(lines: int) -> str:
    """A patch of so many changed lines in one file."""
    head = f"diff --git a/ops/k.py b/ops/k.py\n--- a/ops/k.py\n+++ b/ops/k.py\n@@ -1,{lines} +1,{lines} @@\n"
    return head + "".join(f"-    x{n} = libdevice.tanh(x{n})\n+    x{n} = tl.tanh(x{n})\n" for n in range(lines))


def _write_report(settings: Settings, store: Store, job_id: str) -> None:
    job = store.job(job_id)
    assert job is not None
    folder = job_folder(settings, job.id) / job.out_folder
    folder.mkdir(parents=True)
    (folder / "report.json").write_text(heavy_report(300, 60, job.path).model_dump_json())
    (folder / "wavesmith.patch").write_text(heavy_patch(2000))


def _write_port(settings: Settings, store: Store, job_id: str) -> None:
    """What `PortResult.to_json` gives for a large repository."""
    job = store.job(job_id)
    assert job is not None
    folder = job_folder(settings, job.id) / job.out_folder
    folder.mkdir(parents=True)
    diagnostics = [
        {"file": f"csrc/f{n}.hip", "line": n, "severity": "error", "message": "no member named 'x' " * 10}
        for n in range(400)
    ]
    edit = {"file": "csrc/a.cu", "rule": "cuda-runtime", "detail": "cudaMalloc -> hipMalloc, cudaFree -> hipFree"}
    rounds = [
        {
            "number": n, "applied": [edit] * 300, "errors": {"gfx942": 400 - n}, "rejected": [],
            "keys": [f"f{k} | no member | x" for k in range(n, 400)],
        }
        for n in range(8)
    ]  # fmt: skip
    kernels = [
        {
            "kernel": f"kernel_{n}",
            "file": "csrc/a.cu",
            "line": n,
            "wrong": False,
            "evidence": "emulated",
            "reason": "r" * 80,
        }
        for n in range(400)
    ]
    shim = {"name": "warp-sync", "symbols": ["__shfl_sync"], "contract": "32 lanes of a wave of 64 " * 5, "note": ""}
    refusal = {"file": "csrc/b.cu", "line": 1, "reason": "TMA has no counterpart.", "route": "Use global loads."}
    report = {
        "exit_code": job.exit_code, "outcome": job.outcome, "summary": job.summary, "targets": ["gfx942", "gfx950"],
        "rounds": rounds, "diagnostics": diagnostics, "refusals": [refusal] * 300, "kernels": kernels,
        "shim_uses": [shim] * 60,
    }  # fmt: skip
    (folder / "report.json").write_text(json.dumps(report))
    (folder / "patch.diff").write_text(heavy_patch(500))
