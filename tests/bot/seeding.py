"""Rows for the dashboard's pages of pull requests and ports: made by the engine, with text that wants to be markup."""

from __future__ import annotations

import time

from agent.port.loop import port
from agent.port.request import PortRequest
from agent.review.finding import Finding, Fix, ReviewResult, Skipped, fingerprint
from api.jobs import INPUT_FOLDER, job_folder
from api.review_store import PullReview, ReviewState, ReviewStore
from api.settings import Settings
from api.store import Job, Lease, State, Store, new_job_id

CUDA = """#include <cuda_runtime.h>
__global__ void add(float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] += __ldg(y + i);
    if (__any_sync(0xffffffff, i < n)) __syncwarp();
}
"""


def review_result() -> ReviewResult:
    """A result with one finding of each level, one of them there before."""
    fix = Fix(
        path="ops/k.py",
        title="Fit <b>",
        patch="--- a\n+++ b\n+<script>",
        correctness="compiled",
        statement="It builds.",
    )
    rules = (("cuda-only", "error"), ("spills", "warning"), ("gain", "note"))
    findings = tuple(
        Finding.model_validate(
            {
                "fingerprint": fingerprint(rule, "ops/k.py", "k", ""), "rule": rule, "level": level, "path": "ops/k.py",
                "origin": "touched" if rule == "spills" else "introduced", "line": 3, "end_line": 3, "kernel": "k<T>",
                "targets": ("gfx942",), "evidence": "compiled", "message": "<script>alert(1)</script>",
                "fix": fix if rule == "cuda-only" else None,
            }
        )
        for rule, level in rules
    )  # fmt: skip
    return ReviewResult(
        wavesmith_version="0", base="a" * 40, head="b" * 40, targets=("gfx942",), files_changed=3,
        files_reviewed=("ops/k.py",), kernels=("k<T>",), findings=findings, seconds=3.0, budget_minutes=10.0,
        skipped=(Skipped(what="optimizing ops/k.py", reason="the minutes of the review were used up"),),
    )  # fmt: skip


def seed_pulls(store: Store) -> list[str]:
    """Reviews in every state; returns the addresses of their pages."""
    reviews = ReviewStore(store)
    now = time.time()
    rows = [
        PullReview(repository="octo/kernels", pull=7, installation=1, head="b" * 40, created_at=now),
        PullReview(repository="octo/kernels", pull=7, installation=1, command="ignore <b>", by="x", created_at=now),
        PullReview(repository="octo/other", pull=8, installation=1, head="c" * 40, created_at=now),
    ]
    for n, row in enumerate(rows):
        assert reviews.accept(f"seed-{n:04d}", "pull_request", row)
    for state, fields in (
        (ReviewState.DONE, {"result": review_result().model_dump_json(), "introduced": 2, "summary": "2 introduced."}),
        (ReviewState.REFUSED, {"summary": "x has no write access."}),
    ):
        held = reviews.claim()
        assert held is not None and held.id is not None
        reviews.finish(held.id, state, **fields)
    reviews.dismiss("octo/kernels", 7, "spills", "writer")
    return ["/pulls", "/pulls?repository=octo/kernels", f"/pulls/{rows[0].id}", "/pulls/999999"]


def seed_port(settings: Settings, store: Store) -> list[str]:
    """A finished port of a small file, compiled for real; returns the addresses of its pages."""
    job = Job(
        id=new_job_id(), kind="port", arch="gfx942", target="gfx942", filename="add.cu", path="csrc/add.cu",
        created_at=time.time(),
    )  # fmt: skip
    store.add_job(job, max_queued=1000)
    held = store.claim("w", lease_s=600, max_losses=3)
    assert held is not None and held.id == job.id
    folder = job_folder(settings, held.id)
    file = folder / INPUT_FOLDER / "add.cu"
    file.parent.mkdir(parents=True)
    file.write_text(CUDA)
    result = port(PortRequest(file, targets=("gfx942",), out=folder / held.out_folder, execute=False))
    lease = Lease(held.id, held.attempt)
    ended = {"outcome": result.outcome, "exit_code": result.exit_code, "summary": result.summary}
    assert store.finish(lease, State.DONE, **ended)
    return ["/ports", f"/ports/{held.id}", "/ports/none"]
