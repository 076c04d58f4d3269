"""From the form to an applied patch in a real browser; and what a browser is told when something is wrong."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from branches import KERNEL, LIBDEVICE
from serving import get, post, run_app

from api.app import create_app
from api.jobs import JobWorker
from api.settings import Settings
from api.store import Store

HTML = {"accept": "text/html"}
CUDA = "__global__ void k(float* x) { x[threadIdx.x] = 1.0f; }\n"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(data_dir=tmp_path / "data", poll_s=0.1)


@pytest.fixture
def url(settings: Settings) -> Iterator[str]:
    with run_app(create_app(settings)) as address:
        yield address


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_pasted_kernel_is_watched_and_its_patch_applies(
    browser: Any, url: str, settings: Settings, tmp_path: Path
) -> None:
    browser.problems.clear()
    browser.open(f"{url}/submit")
    browser.evaluate(f"document.getElementById('source').value = {json.dumps(LIBDEVICE)}")
    browser.evaluate(
        "for (const box of document.querySelectorAll('input[name=target]')) box.checked = box.value === 'gfx942'"
    )
    browser.evaluate("document.querySelector('main form button').click()")
    browser.until("location.pathname.startsWith('/jobs/')")
    browser.settle()
    worker = threading.Thread(target=JobWorker(settings, Store(settings.database), "w").run_one)
    worker.start()
    browser.until("document.querySelectorAll('ol.steps li').length > 3", 1200)
    browser.until("document.querySelector('a[download]') !== null", 3000)
    worker.join(60)
    patch = browser.evaluate("fetch(document.querySelector('a[download]').href).then((r) => r.text())")
    assert not browser.problems, browser.problems
    folder = tmp_path / "repository"
    folder.mkdir()
    subprocess.run(["git", "init", "-q", folder], check=True)
    (folder / "kernel.py").write_text(LIBDEVICE)
    subprocess.run(["git", "apply", "-"], input=patch.encode(), cwd=folder, check=True)
    assert "extra.cuda" not in (folder / "kernel.py").read_text()
    job = browser.evaluate("location.pathname")
    attempt = get(f"{url}{job}/attempts/1").text
    assert "trying port-cuda-libdevice" in attempt and 'class="removed"' in attempt
    assert "Matched and applied" in get(f"{url}/skills?skill=port-cuda-libdevice").text


def test_targets_are_picked_one_or_several_and_cuda_becomes_a_port(url: str) -> None:
    answer = post(f"{url}/submit", data={"target": ["gfx942", "MI350X"], "source": KERNEL})
    assert answer.status_code == 303 and answer.headers["location"] == "/"
    jobs = get(f"{url}/v1/jobs").json()["jobs"]
    assert sorted(j["target"] for j in jobs) == ["MI350X", "gfx942"]
    answer = post(f"{url}/submit", data={"target": ["gfx942", "gfx950"], "source": CUDA})
    job = get(f"{url}/v1{answer.headers['location']}").json()
    assert (job["kind"], job["target"]) == ("port", "gfx942,gfx950")
    refused = post(f"{url}/submit", data={"source": KERNEL})
    assert refused.status_code == 422 and "no target was chosen" in refused.text and "def scale" in refused.text


def test_errors_are_pages_for_a_browser_and_problems_for_a_client(url: str) -> None:
    for path, status in (("/nothing", 404), ("/pulls/99999999999999999999", 422), ("/jobs/x?attempts=0", 422)):
        page, problem = get(url + path, headers=HTML), get(url + path)
        assert page.status_code == problem.status_code == status
        assert "<h1>" in page.text and "default-src 'none'" in page.headers["content-security-policy"]
        assert problem.headers["content-type"] == "application/problem+json"
    assert get(f"{url}/v1/jobs/none", headers=HTML).headers["content-type"] == "application/problem+json"
    assert get(f"{url}/readyz", headers=HTML).headers["content-type"] == "application/problem+json"


def test_no_page_names_a_foreign_address(url: str) -> None:
    for path in ("/", "/submit", "/skills", "/ports", "/pulls", "/compare", "/docs", "/login", "/nothing"):
        page = get(url + path, headers=HTML)
        assert page.text.count("http") == page.text.count(url), path
        assert page.text.count("<script") == 1 and "style=" not in page.text
    assert "POST /v1/jobs" in get(f"{url}/docs").text


def test_logging_in_leads_back_to_the_filters(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, token="0123456789abcdef")  # type: ignore[arg-type]
    with run_app(create_app(settings)) as url:
        sent = get(f"{url}/skills?arch=gfx942&language=hip", headers=HTML)
        assert sent.status_code == 303
        assert sent.headers["location"] == "/login?next=/skills%3Farch%3Dgfx942%26language%3Dhip"
        form = get(url + sent.headers["location"]).text
        assert 'value="/skills?arch=gfx942&amp;language=hip"' in form
        done = post(f"{url}/login", data={"token": "0123456789abcdef", "next": "/skills?arch=gfx942&language=hip"})
        assert done.headers["location"] == "/skills?arch=gfx942&language=hip"
        cookie = done.headers["set-cookie"].lower()
        assert "httponly" in cookie and "samesite=strict" in cookie and "path=/" in cookie


def test_a_running_list_renews_itself(browser: Any, url: str, settings: Settings) -> None:
    post(f"{url}/submit", data={"target": "gfx942", "source": KERNEL})
    browser.open(f"{url}/")
    assert "queued" in browser.evaluate("document.querySelector('tbody').innerText")
    job = get(f"{url}/v1/jobs").json()["jobs"][0]
    post(f"{url}{job['links']['cancel']}")
    browser.until("document.querySelector('tbody').innerText.includes('cancelled')")
