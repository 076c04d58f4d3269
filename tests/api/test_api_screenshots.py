"""The pictures of docs/: real kernels go through the real service, and a real browser looks at what came out.

    WAVESMITH_SCREENSHOTS=1 pytest tests/api/test_api_screenshots.py

writes them; without the variable nothing is run and nothing in the tree changes. With a folder instead of 1 the jobs
are kept in it, so that a second take needs no second run.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from branches import KERNEL, LIBDEVICE, Branches
from markdown_it import MarkdownIt
from serving import run_app

from agent.events import Progress
from agent.review.review import ReviewRequest, review
from api.app import create_app
from api.github.render import comment_text, suggestion_comments
from api.intake import Intake, store_request
from api.jobs import JobWorker
from api.settings import Settings
from api.store import Job, State, Store

pytestmark = [
    pytest.mark.skipif(not os.environ.get("WAVESMITH_SCREENSHOTS"), reason="writes pictures; WAVESMITH_SCREENSHOTS=1"),
    pytest.mark.slow,
    pytest.mark.timeout(3600),
]
ROOT = Path(__file__).parents[2]
PICTURES = ROOT / "docs" / "pictures"
MAX_BYTES = 150_000
CUDA = """#include <cuda_runtime.h>
#include <cuda_fp16.h>

__global__ void row_max(const float* x, float* out, int columns) {
    float best = -INFINITY;
    for (int i = threadIdx.x; i < columns; i += blockDim.x) best = fmaxf(best, __ldg(x + blockIdx.x * columns + i));
    for (int delta = 16; delta > 0; delta /= 2) best = fmaxf(best, __shfl_xor_sync(0xffffffff, best, delta));
    __shared__ float warps[32];
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = best;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int w = 1; w < blockDim.x / 32; ++w) best = fmaxf(best, warps[w]);
        out[blockIdx.x] = best;
    }
}

void launch(const float* x, float* out, int rows, int columns, cudaStream_t stream) {
    row_max<<<rows, 256, 0, stream>>>(x, out, columns);
}
"""
COMMENT = """<!doctype html><meta charset="utf-8"><title>x</title><style>
body { margin: 0; padding: 24px; background: #fff; color: #1f2328; font: 14px/1.5 system-ui, sans-serif; }
article { border: 1px solid #d0d7de; border-radius: 6px; max-width: 860px; }
header { background: #f6f8fa; border-bottom: 1px solid #d0d7de; padding: 8px 16px; color: #59636e; }
header b { color: #1f2328; } section { padding: 4px 16px 12px; } details { margin: 10px 0; } sub { color: #59636e; }
code { background: #eff1f3; border-radius: 4px; padding: .15em .35em; font: 12px ui-monospace, monospace; }
pre { background: #f6f8fa; border-radius: 6px; padding: 12px; overflow-x: auto; }
pre code { background: none; padding: 0; }
</style><article><header><b>wavesmith[bot]</b> commented</header><section>%s</section></article>"""


def done_job(settings: Settings, store: Store, kind: str, name: str, source: str, target: str) -> Job:
    """A job that the real worker did, now or in an earlier take."""
    known = [j for j in store.jobs(limit=100, state=State.DONE) if j.filename == name]
    if known:
        return known[0]
    folder = "csrc" if kind == "port" else "ops"
    path = f"{folder}/{name}" if kind == "optimize" else None
    uploads = {"file": (name, source.encode())}
    job = store_request(settings, store, Intake(kind, target, uploads, path, None, False, None))
    assert JobWorker(settings, store, "w").run_one()
    done = store.job(job.id)
    assert done is not None and done.state == State.DONE, done
    return done


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    kept = os.environ["WAVESMITH_SCREENSHOTS"]
    return Settings(data_dir=Path(kept) if "/" in kept else tmp_path_factory.mktemp("data"), poll_s=0.1)


@pytest.fixture(scope="module")
def jobs(settings: Settings) -> dict[str, Job]:
    store = Store(settings.database)
    attention = (ROOT / "examples/gdpa_attention/kernel.py").read_text()
    return {
        "tanh": done_job(settings, store, "optimize", "scale_tanh.py", LIBDEVICE, "gfx942"),
        "scale": done_job(settings, store, "optimize", "scale.py", KERNEL, "gfx942"),
        "port": done_job(settings, store, "port", "row_max.cu", CUDA, "gfx942"),
        "attention": done_job(settings, store, "optimize", "gdpa_attention.py", attention, "gfx950"),
    }


@pytest.fixture(scope="module")
def url(settings: Settings, jobs: dict[str, Job]) -> Iterator[str]:
    with run_app(create_app(settings)) as address:
        yield address


def take(browser: Any, address: str, name: str, width: int, theme: str = "light", most: int = 1080) -> None:
    """A picture of a page from its top."""
    browser.theme(theme)
    browser.resize(width, 200)
    browser.open(address)
    height = min(most, int(browser.evaluate("document.documentElement.scrollHeight")))
    browser.resize(width, height)
    browser.call("Emulation.setScrollbarsHidden", hidden=True)
    file = PICTURES / f"{name}.png"
    browser.screenshot(file)
    assert file.stat().st_size < MAX_BYTES, (name, file.stat().st_size)


def test_the_pages(browser: Any, url: str, jobs: dict[str, Job]) -> None:
    browser.problems.clear()
    take(browser, f"{url}/skills", "skills", 1280)
    page = f"{url}/jobs/{jobs['attention'].id}"
    take(browser, page, "job-light", 1920)
    take(browser, page, "job-dark", 1920, "dark")
    take(browser, page, "job-360-light", 360)
    take(browser, page, "job-360-dark", 360, "dark")
    take(browser, f"{url}/ports/{jobs['port'].id}", "port", 1280)
    assert not browser.problems, browser.problems


def test_the_comment_on_a_pull_request(browser: Any, tmp_path: Path) -> None:
    branches = Branches(tmp_path / "repo")
    branches.commit(
        {".wavesmith.yml": "targets: [gfx942]\nevidence: compiled\n", "ops/k.py": KERNEL, "csrc/m.cu": CUDA}
    )
    branches.branch("pr")
    branches.commit({"ops/k.py": LIBDEVICE, "csrc/m.cu": CUDA.replace("delta = 16", "delta = warpSize / 2")})
    result = review(ReviewRequest(branches.folder, "main", "pr"), Progress())
    suggested = frozenset(f.fingerprint for f, _ in suggestion_comments(result))
    html = MarkdownIt("commonmark", {"html": True}).render(comment_text(result, suggested))
    file = tmp_path / "comment.html"
    file.write_text(COMMENT % html.replace("<details>", "<details open>"))
    take(browser, f"file://{file}", "comment", 920)
