"""The API over real HTTP without workers: what is queued, refused and shown. Jobs themselves: test_api_jobs.py."""

from __future__ import annotations

import io
import json
import socket
import threading
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from serving import PATIENCE_S, client_of, get, run_app

from api.app import create_app
from api.settings import Settings
from api.store import Lease, State, Store
from sandbox.errors import InputError

KERNEL = b"import triton\n\n\n@triton.jit\ndef k(x):\n    pass\n"
TOKEN = "0123456789abcdef0123"


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return Settings(data_dir=tmp_path_factory.mktemp("data"), max_upload_bytes=200_000, poll_s=0.02, max_queued_jobs=60)


@pytest.fixture(scope="module")
def url(settings: Settings) -> Iterator[str]:
    with run_app(create_app(settings)) as address:
        yield address


@pytest.fixture
def client(url: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=url, timeout=PATIENCE_S) as c:
        yield c


def submit(client: httpx.Client, data: bytes = KERNEL, name: str = "k.py", **form: str) -> httpx.Response:
    headers = {k.replace("_", "-"): form.pop(k) for k in ("prefer", "idempotency_key") if k in form}
    return client.post("/v1/jobs", files={"file": (name, data)}, data={"target": "gfx950", **form}, headers=headers)


def assert_problem(response: httpx.Response, status: int, kind: str) -> dict[str, Any]:
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    body: dict[str, Any] = response.json()
    assert body["type"] == f"/problems/{kind}" and body["status"] == status and body["title"] and body["detail"]
    assert response.headers["x-request-id"]
    return body


def test_a_job_is_queued_and_shown(client: httpx.Client) -> None:
    response = submit(client, path="src/ops/k.py")
    assert response.status_code == 202
    job = response.json()
    assert response.headers["location"] == job["links"]["self"] == f"/v1/jobs/{job['id']}"
    assert client.get(job["links"]["self"]).json() == job
    assert job["state"] == "queued" and job["arch"] == "gfx950" and job["path"] == "src/ops/k.py"
    assert job["links"]["patch"] is None
    assert any(j["id"] == job["id"] for j in client.get("/v1/jobs").json()["jobs"])


def zipped(members: dict[str, bytes]) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in members.items():
            archive.writestr(name, text)
    return data.getvalue()


@pytest.mark.parametrize(
    ("data", "name", "form", "words"),
    [
        (b"def f(:\n", "k.py", {}, "k.py:1:"),
        (b"\xff\xfe", "k.py", {}, "not UTF-8"),
        (b"x", "k.txt", {}, "not a kernel source"),
        (KERNEL, "k.py", {"target": "gfx000"}, "gfx000"),
        (KERNEL, "k.py", {"kind": "mine"}, "kind of job"),
        (KERNEL, "k.py", {"require": "certain"}, "evidence level"),
        (KERNEL, "k.py", {"path": "../k.py"}, "inside the repository"),
        (b"__global__ void k();", "k.cu", {}, "no __global__ function with a body"),
        (b"__global__ void k() {\n", "k.hip", {}, "k.hip:1: `{` is never closed"),
        (b'#include "../x.h"\n__global__ void k() {}\n', "k.hip", {}, "k.hip:1: `../x.h` lies outside"),
        (b"not a zip", "k.zip", {}, "not a kernel source"),
        (b"not a zip", "k.zip", {"kind": "port"}, "archive cannot be read"),
        (b"int main() {}\n", "k.cu", {"kind": "port"}, "k.cu: the file holds no CUDA"),
        (b"\x7fELF\0\0", "k.cu", {"kind": "port"}, "k.cu: the file is binary"),
        (b"__global__ void k() {\n", "k.cu", {"kind": "port"}, "k.cu:1: `{` is never closed"),
        (b'#include "../x.cuh"\n__global__ void k() {}\n', "k.cu", {"kind": "port"}, "k.cu:1: `../x.cuh` lies outside"),
        (zipped({"k.cu": KERNEL, "../x.cu": KERNEL}), "k.zip", {"kind": "port"}, "leaves the archive"),
        (zipped({"k.cu": KERNEL, "x.h": b"\n" * (17 * 2**20)}), "k.zip", {"kind": "port"}, "more than is allowed"),
        (KERNEL, "..", {}, "file name"),
    ],
)
def test_unusable_input_is_refused_at_the_door(
    client: httpx.Client, data: bytes, name: str, form: dict[str, str], words: str
) -> None:
    before = client.get("/v1/jobs").json()["jobs"]
    body = assert_problem(submit(client, data, name, **form), 422, "unusable-input")
    assert words in body["detail"] and "Traceback" not in body["detail"]
    assert client.get("/v1/jobs").json()["jobs"] == before


def test_every_other_error_is_a_problem_too(client: httpx.Client) -> None:
    assert_problem(client.get("/nothing"), 404, "not-found")
    assert_problem(client.get("/v1/jobs/none"), 404, "not-found")
    assert_problem(client.delete("/v1/jobs"), 405, "method-not-allowed")
    assert_problem(client.post("/v1/jobs", data={"target": "gfx950"}), 422, "unusable-input")
    assert_problem(client.get("/v1/jobs?limit=9999"), 422, "unusable-input")
    bad = client.post(
        "/v1/jobs", content=b"--x\r\ngarbage", headers={"content-type": "multipart/form-data; boundary=x"}
    )
    assert bad.status_code in (400, 422) and bad.headers["content-type"] == "application/problem+json"
    job = submit(client).json()
    assert_problem(client.get(f"{job['links']['self']}/patch"), 409, "not-finished")


def test_the_size_limit_holds_with_and_without_a_length(client: httpx.Client) -> None:
    assert_problem(submit(client, b"#" * 300_000), 413, "too-large")

    def chunks() -> Iterator[bytes]:
        yield b'--x\r\nContent-Disposition: form-data; name="file"; filename="k.py"\r\n\r\n'
        for _ in range(100):
            yield b"#" * 5_000

    response = client.post("/v1/jobs", content=chunks(), headers={"content-type": "multipart/form-data; boundary=x"})
    assert_problem(response, 413, "too-large")


def test_cancelling_twice_does_no_harm(client: httpx.Client) -> None:
    job = submit(client).json()
    for _ in range(2):
        response = client.post(job["links"]["cancel"])
        assert response.status_code == 202 and response.json()["state"] == "cancelled"
    assert_problem(client.get(f"{job['links']['self']}/patch"), 404, "not-found")


def test_waiting_ends_after_the_asked_time(client: httpx.Client) -> None:
    began = time.monotonic()
    response = submit(client, prefer="respond-async, wait=1")
    assert response.status_code == 202 and response.headers["preference-applied"] == "wait=1"
    assert 0.9 < time.monotonic() - began < PATIENCE_S


def test_an_idempotency_key_gives_one_job(client: httpx.Client) -> None:
    first, again = submit(client, idempotency_key="a"), submit(client, idempotency_key="a")
    assert first.json()["id"] == again.json()["id"]
    assert_problem(submit(client, KERNEL + b"#", idempotency_key="a"), 422, "conflict")


def test_events_replay_from_the_last_seen_and_end_with_the_job(client: httpx.Client, settings: Settings) -> None:
    store = Store(settings.database)
    for queued in client.get("/v1/jobs?state=queued").json()["jobs"]:
        client.post(queued["links"]["cancel"])
    job = submit(client).json()
    held = store.claim("w", lease_s=60, max_losses=3)
    assert held and held.id == job["id"]
    lease = Lease(held.id, held.attempt)
    rows = [{"at": 1.5, "kind": "step", "phase": "match", "message": f"m{i}", "data": {"i": i}} for i in range(3)]
    store.add_events(lease, rows)
    threading.Timer(0.3, store.finish, (lease, State.DONE), {"outcome": "nothing", "exit_code": 3}).start()
    with client.stream("GET", job["links"]["events"]) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        text = "".join(response.iter_text())
    blocks = [dict(line.split(": ", 1) for line in b.split("\n")) for b in text.strip().split("\n\n")]
    assert [json.loads(b["data"])["message"] for b in blocks[:-1]] == ["m0", "m1", "m2"]
    assert blocks[-1]["event"] == "end" and json.loads(blocks[-1]["data"])["outcome"] == "nothing"
    later = client.get(job["links"]["events"], headers={"last-event-id": blocks[1]["id"]}).text
    assert "m2" in later and "m1" not in later


def test_service_pages(client: httpx.Client) -> None:
    assert client.get("/healthz").json() == {"status": "ok"}
    assert_problem(client.get("/readyz"), 503, "not-ready")
    targets = {t["arch"]: t for t in client.get("/v1/targets").json()["targets"]}
    assert "MI350X" in targets["gfx950"]["boards"]
    assert client.get("/problems/too-large").text.startswith("The request is too large")
    assert client.get("/openapi.json").status_code == 200
    assert {s["id"] for s in client.get("/v1/skills").json()["skills"]}


def test_other_hosts_and_origins_cannot_reach_an_open_service(client: httpx.Client) -> None:
    assert_problem(client.get("/v1/jobs", headers={"host": "evil.example"}), 403, "forbidden")
    assert_problem(client.get("/v1/jobs", headers={"origin": "https://evil.example"}), 403, "forbidden")
    assert client.get("/v1/jobs", headers={"origin": "http://localhost:8080"}).status_code == 200


def test_a_full_queue_answers_429(tmp_path: Path) -> None:
    with client_of(create_app(Settings(data_dir=tmp_path, max_queued_jobs=1))) as client:
        assert submit(client).status_code == 202
        assert "retry-after" in assert_problem_headers(submit(client))


def assert_problem_headers(response: httpx.Response) -> httpx.Headers:
    assert_problem(response, 429, "queue-full")
    return response.headers


def test_with_a_token_nothing_but_health_is_open(tmp_path: Path) -> None:
    with client_of(create_app(Settings(data_dir=tmp_path, token=TOKEN))) as client:  # type: ignore[arg-type]
        assert client.get("/healthz").status_code == 200
        for headers in ({}, {"authorization": f"Bearer {TOKEN}x"}, {"authorization": f"Basic {TOKEN}"}):
            response = client.get("/v1/jobs", headers=headers)
            assert_problem(response, 401, "unauthorized")
            assert response.headers["www-authenticate"] == "Bearer"
        right = {"authorization": f"Bearer {TOKEN}"}
        assert client.get("/v1/jobs", headers=right).status_code == 200
        assert client.get("/openapi.json").status_code == 401


def test_an_open_door_to_the_world_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="without a token"):
        create_app(Settings(data_dir=tmp_path, host="0.0.0.0"))
    with pytest.raises(InputError, match="16 characters"):
        create_app(Settings(data_dir=tmp_path, token="short"))  # type: ignore[arg-type]


def test_jobs_survive_a_restart(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path)
    with run_app(create_app(settings)) as url:
        job = submit(httpx.Client(base_url=url, timeout=PATIENCE_S)).json()
    with run_app(create_app(settings)) as url:
        assert get(f"{url}{job['links']['self']}").json() == job


def test_a_client_that_leaves_a_stream_leaves_no_request_behind(url: str, client: httpx.Client) -> None:
    job = submit(client).json()
    host, port = url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as raw:
        raw.sendall(f"GET {job['links']['events']} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        assert b"200 OK" in raw.recv(1000)
    assert client.get("/healthz").status_code == 200
