"""The pages in a real browser: both themes, narrow and wide, without scripts, with nothing in the console."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from octokit import AXE, npm_file
from seeding import seed_port, seed_pulls
from serving import PATIENCE_S, get, post, run_app

from api.app import create_app
from api.diff_view import side_by_side
from api.jobs import job_folder
from api.session import Sessions
from api.settings import Settings
from api.store import Job, Lease, State, Store, Trial, new_job_id

TOKEN = "0123456789abcdef0123"
KERNEL = "import triton\n\n\n@triton.jit\ndef k(x):\n    pass\n"


def part(**fields: Any) -> dict[str, Any]:
    return fields


def report_json(path: str) -> str:
    """A report as a job of `<script>`-minded input would leave it."""
    attempt = part(
        number=1, id="fit-lds:num_stages=2", origin="fit-lds", title="Fit the LDS <b>", why="lds_bytes = 98304", line=3,
        fate="kept", reason="lds_bytes 98304 -> 32768", verdict="Accepted", correctness="interpreted", speed="static",
        seconds=1.5, diff="diff --git a/k.py b/k.py\n-old <script>\n+new\n",
    )  # fmt: skip
    report = part(
        schema_version=1, wavesmith_version="0", created_at="2026-01-01T00:00:00+00:00",
        outcome="improved", exit_code=0,
        summary="lds_bytes 98304 -> 32768. With fit-lds.", target=part(arch="gfx942", board="MI300X", title="CDNA3"),
        file=part(path=path, language="triton", sha256="0" * 64), requirement="x",
        correctness=part(level="interpreted", validated=True),
        speed=part(level="static", statement="lds_bytes 98304 -> 32768"),
        baseline=part(builds=True, launches=1, executor="interpreter",
                      kernels=[part(kernel="mm", metrics={"lds_bytes": 98304.0, "vgpr_count": 96.0})]),
        result=[part(kernel="mm", metrics={"lds_bytes": 32768.0, "vgpr_count": 96.0})],
        attempts=[attempt], skipped=[part(origin="pid-swizzle", title="t", reason="grid = 1")],
        artifacts=part(patch="wavesmith.patch", waterfall="waterfall.svg", patched_file="patched/k.py"),
        toolchain=[part(name="triton", version="3.6.0")], reproduce="wavesmith optimize k.py",
    )  # fmt: skip
    return json.dumps(report)


DIFF = "diff --git a/k.py b/k.py\n--- a/k.py\n+++ b/k.py\n@@ -1,3 +1,4 @@\n a\n-<script>old\n+new\n+more\n c\n"


def finish_job(settings: Settings, store: Store, filename: str) -> Job:
    job = Job(
        id=new_job_id(), kind="optimize", arch="gfx942", target="gfx942", filename=filename, path=f"src/{filename}",
        created_at=time.time(),
    )  # fmt: skip
    store.add_job(job, max_queued=1000)
    held = store.claim("w", lease_s=60, max_losses=3)
    assert held is not None
    folder = job_folder(settings, held.id) / held.out_folder
    folder.mkdir(parents=True)
    (folder / "report.json").write_text(report_json(job.path))
    (folder / "wavesmith.patch").write_text(DIFF)
    (folder / "waterfall.svg").write_text('<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"></svg>')
    fates = ["kept", "kept", "dropped", "unshown"]
    trials = [
        Trial(
            job_id=held.id, skill="fit-lds" if i < 3 else "pid-swizzle", edit="fit-lds:num_stages=2", arch="gfx942",
            language="triton", fate=fate, verdict="Accepted" if fate == "kept" else "NoGain", correctness="interpreted",
            speed="static", reason="no resource improved", at=time.time(),
        )
        for i, fate in enumerate(fates)
    ]  # fmt: skip
    lease = Lease(held.id, held.attempt)
    store.finish(lease, State.DONE, trials, outcome="improved", exit_code=0, summary="lds_bytes 98304 -> 32768.")
    done = store.job(held.id)
    assert done is not None
    return done


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return Settings(data_dir=tmp_path_factory.mktemp("data"), poll_s=0.05)


@pytest.fixture(scope="module")
def jobs(settings: Settings) -> list[Job]:
    store = Store(settings.database)
    return [finish_job(settings, store, name) for name in ("gemm.py", "softmax.py")]


@pytest.fixture(scope="module")
def more_pages(settings: Settings) -> list[str]:
    """Pages of pull requests and ports."""
    store = Store(settings.database)
    return [*seed_pulls(store), *seed_port(settings, store)]


@pytest.fixture(scope="module")
def url(settings: Settings, jobs: list[Job], more_pages: list[str]) -> Iterator[str]:
    with run_app(create_app(settings)) as address:
        yield address


def pages_of(jobs: list[Job]) -> list[str]:
    compare = f"/compare?a={jobs[0].id}&b={jobs[1].id}&all=true"
    return [
        "/",
        f"/jobs/{jobs[0].id}",
        "/jobs/none",
        "/submit",
        "/skills",
        "/skills?skill=fit-lds",
        "/compare",
        compare,
        f"/compare?a={jobs[0].id}",
        f"/jobs/{jobs[0].id}/attempts/1",
        "/docs",
    ]


def test_pages_fit_every_width_in_both_themes_and_the_console_stays_silent(
    browser: Any, url: str, jobs: list[Job], more_pages: list[str]
) -> None:
    browser.problems.clear()
    for theme in ("light", "dark"):
        browser.theme(theme)
        for width in (360, 1920):
            browser.resize(width)
            for page in [*pages_of(jobs), *more_pages]:
                browser.open(url + page)
                wide = browser.evaluate("document.documentElement.scrollWidth")
                assert wide <= width, (page, width, wide)
                assert browser.evaluate("document.querySelectorAll('h1').length") == 1, page
                assert browser.evaluate("document.documentElement.lang") == "en"
    shown = [p for p in browser.problems if "404" not in p]
    assert not shown, shown


_CONTRAST = """
(() => {
  const rgb = (c) => c.match(/[\\d.]+/g).map(Number);
  const part = (v) => (v / 255 <= 0.03928 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4);
  const light = (c) => {
    const [r, g, b] = rgb(c).map(part);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (e) => {
    for (; e; e = e.parentElement) {
      const c = getComputedStyle(e).backgroundColor;
      if ((rgb(c)[3] ?? 1) > 0) return c;
    }
    return getComputedStyle(document.body).backgroundColor;
  };
  const low = [];
  for (const e of document.querySelectorAll('body *')) {
    const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    if (!own || e.closest('svg') || e.matches('option, script')) continue;
    const a = light(getComputedStyle(e).color), b = light(ground(e));
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) low.push(e.tagName + ' ' + e.textContent.trim().slice(0, 30) + ' ' + ratio.toFixed(2));
  }
  return low;
})()
"""
"""WCAG 2.2, 1.4.3: every text that is below 4.5:1."""
_UNNAMED = """
[...document.querySelectorAll('a, button, input:not([type=hidden]), select, textarea, img')].filter((e) =>
  !(e.textContent.trim() || e.alt || e.getAttribute('aria-label') || (e.labels && e.labels.length))
).map((e) => e.outerHTML)
"""


def test_text_has_contrast_and_every_control_a_name(browser: Any, url: str, jobs: list[Job]) -> None:
    browser.resize(1280)
    for theme in ("light", "dark"):
        browser.theme(theme)
        for page in pages_of(jobs):
            browser.open(url + page)
            assert browser.evaluate(_CONTRAST) == [], (theme, page)
            assert browser.evaluate(_UNNAMED) == [], page


def test_axe_finds_nothing_serious(browser: Any, url: str, jobs: list[Job], more_pages: list[str]) -> None:
    """Every rule of axe-core on every page, in both themes, with everything unfolded."""
    script = npm_file(*AXE).read_text()
    browser.resize(1280)
    for theme in ("light", "dark"):
        browser.theme(theme)
        for page in [*pages_of(jobs), *more_pages, "/login"]:
            browser.open(url + page)
            browser.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
            browser.evaluate(f"{script}; 0")
            found = browser.evaluate(
                "axe.run().then((r) => r.violations.map((v) => "
                "[v.impact, v.id, v.nodes.map((n) => n.html.slice(0, 120)).slice(0, 3)]))"
            )
            serious = [v for v in found if v[0] in ("serious", "critical")]
            assert not serious, (theme, page, serious)


def test_pages_read_without_scripts_and_show_no_markup_of_others(url: str, jobs: list[Job]) -> None:
    page = get(f"{url}/jobs/{jobs[0].id}")
    assert "<script>old" not in page.text and "&lt;script&gt;old" in page.text and "Fit the LDS &lt;b&gt;" in page.text
    assert "style=" not in page.text and page.text.count("<script") == 1
    policy = page.headers["content-security-policy"]
    assert "script-src 'self'" in policy and "unsafe" not in policy and "default-src 'none'" in policy
    assert len(page.content) + len(get(f"{url}/static/style.css").content) < 200_000


def test_skills_are_filtered_by_the_address(browser: Any, url: str, jobs: list[Job]) -> None:
    browser.open(f"{url}/skills?arch=gfx942")
    rows = (
        "[...document.querySelectorAll('tbody tr')].map((r) => r.cells[0].textContent + ' ' + r.cells[5].textContent)"
    )
    assert browser.evaluate(rows) == ["fit-lds 4", "pid-swizzle 0"]
    browser.evaluate("document.querySelector('select[name=arch]').value = 'gfx950'")
    browser.evaluate("document.querySelector('main form button').click()")
    browser.until("location.search.includes('arch=gfx950')")
    browser.settle()
    assert "No trial is here with these filters" in browser.evaluate("document.body.innerText")
    assert "no resource improved" in get(f"{url}/skills?skill=fit-lds").text


def test_comparing_shows_only_what_differs(url: str, jobs: list[Job]) -> None:
    same = get(f"{url}/compare?a={jobs[0].id}&b={jobs[1].id}").text
    assert "do not differ" in same
    assert "does not exist" in get(f"{url}/compare?a=x&b=y").text


def test_a_kernel_is_pasted_queued_and_cancelled(browser: Any, url: str) -> None:
    browser.open(f"{url}/submit")
    browser.evaluate(f"document.getElementById('source').value = {json.dumps(KERNEL)}")
    browser.evaluate("document.querySelector('main form button').click()")
    browser.until("location.pathname.startsWith('/jobs/')")
    browser.settle()
    assert "queued" in browser.evaluate("document.body.innerText")
    browser.evaluate("[...document.querySelectorAll('button')].find((b) => b.textContent === 'Cancel the job').click()")
    browser.until("document.body.innerText.includes('cancelled')")


def test_progress_arrives_without_reloading(browser: Any, url: str, settings: Settings) -> None:
    store = Store(settings.database)
    files = {"file": ("live.py", KERNEL.encode())}
    job = post(f"{url}/v1/jobs", files=files, data={"target": "gfx950"}).json()
    browser.open(f"{url}/jobs/{job['id']}")
    held = store.claim("w", lease_s=60, max_losses=3)
    assert held is not None and held.id == job["id"]
    lease = Lease(held.id, held.attempt)
    store.add_events(lease, [{"at": 1.0, "kind": "step", "phase": "match", "message": "two <b>edits</b> apply"}])
    browser.until("document.querySelector('ol.steps').innerText.includes('two <b>edits</b> apply')")
    store.finish(lease, State.DONE, outcome="nothing", exit_code=3, summary="Nothing better was found.")
    browser.until("document.body.innerText.includes('Nothing better was found.')")


def test_wrong_input_keeps_what_was_typed(url: str) -> None:
    page = post(f"{url}/submit", data={"target": "gfx950", "source": "def f(:"})
    assert page.status_code == 422 and "kernel.py:1:" in page.text and "def f(:" in page.text


def test_logging_in_and_out(browser: Any, tmp_path: Path) -> None:
    with run_app(create_app(Settings(data_dir=tmp_path, token=TOKEN))) as url:  # type: ignore[arg-type]
        browser.open(f"{url}/skills")
        assert browser.evaluate("location.pathname + location.search") == "/login?next=/skills"
        browser.evaluate("document.querySelector('input[name=token]').value = 'wrong'")
        browser.evaluate("document.querySelector('main form button').click()")
        browser.until("document.body.innerText.includes('not the token')")
        browser.evaluate(f"document.querySelector('input[name=token]').value = '{TOKEN}'")
        browser.evaluate("document.querySelector('main form button').click()")
        browser.until("location.pathname === '/skills'")
        browser.settle()
        assert browser.evaluate("document.cookie") == ""
        with httpx.Client(
            base_url=url, timeout=PATIENCE_S, cookies={"wavesmith_session": Sessions(TOKEN).new_cookie()}
        ) as client:
            assert client.get("/").status_code == 200
            assert client.post("/submit", data={"target": "gfx950", "source": KERNEL}).status_code == 403
            assert client.post("/logout").status_code == 403
            files = {"file": ("k.py", KERNEL.encode())}
            assert client.post("/v1/jobs", files=files, data={"target": "gfx950"}).status_code == 403
        browser.evaluate("document.querySelector('header form button').click()")
        browser.until("location.pathname === '/login'")


def test_sessions_end_and_cannot_be_forged() -> None:
    sessions = Sessions(TOKEN)
    cookie = sessions.new_cookie(now=1000.0)
    assert sessions.is_valid(cookie, now=1001.0) and not sessions.is_valid(cookie, now=1e9)
    assert not sessions.is_valid("9" + cookie, now=1001.0) and not sessions.is_valid("", now=1001.0)
    assert not Sessions(TOKEN + "x").is_valid(cookie, now=1001.0)


def test_login_never_leads_to_another_site(tmp_path: Path) -> None:
    with run_app(create_app(Settings(data_dir=tmp_path, token=TOKEN))) as url:  # type: ignore[arg-type]
        for path in ("//evil.example", "https://evil.example", "/\\evil.example"):
            answer = post(f"{url}/login", data={"token": TOKEN, "next": path})
            assert answer.status_code == 303 and answer.headers["location"] == "/"


def test_a_diff_is_paired_line_by_line() -> None:
    rows = side_by_side(DIFF)
    assert [(r.left_line, r.left, r.right_line, r.right) for r in rows if not r.gap] == [
        (1, "a", 1, "a"),
        (2, "<script>old", 2, "new"),
        (None, "", 3, "more"),
        (3, "c", 4, "c"),
    ]
