"""A model in a job of the running service: both wire formats, cancelling and restarting in mid-call, keys, replay."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "api"))
from provider import Provider, Step, claude, claude_call, claude_text, gpt
from test_api_jobs import Service, processes_of
from test_model_jobs import KERNEL, replay_offline

from agent.model_access import KEY_VARIABLES, PRICE_VARIABLE

KEYS = {"OPENAI_API_KEY": "sk-canary-1618033988", "ANTHROPIC_API_KEY": "sk-ant-canary-5772156649"}
ARGUMENTS: dict[str, Any] = {
    "title": "Smaller blocks",
    "why": "Registers",
    "edits": [{"search": "BLOCK = 32768", "replace": "BLOCK = 512"}],
}


@pytest.fixture
def service(server: Provider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    for name in (*KEY_VARIABLES, PRICE_VARIABLE, "WAVESMITH_MEMORY"):
        monkeypatch.delenv(name, raising=False)
    for name, key in KEYS.items():
        monkeypatch.setenv(name, key)
    monkeypatch.setenv(PRICE_VARIABLE, "3/15")
    monkeypatch.setenv("WAVESMITH_MODELS", "openai:tester,anthropic:tester")
    monkeypatch.setenv("WAVESMITH_MODEL_BASE_URL", f"{server.url}/v1")
    folder = tmp_path / "service"
    folder.mkdir()
    running = Service(folder)
    yield running
    running.stop()


def proposal(kind: str) -> Step:
    if kind == "anthropic":
        return Step(body=claude(claude_call("submit_candidate", ARGUMENTS), stop="tool_use"))
    return Step(events=gpt(None, [("c1", "submit_candidate", json.dumps(ARGUMENTS))], "tool_calls"))


def ending(kind: str) -> Step:
    said = "Nothing further."
    return Step(body=claude(claude_text(said))) if kind == "anthropic" else Step(events=gpt(said))


def until_done(service: Service, job: dict[str, Any]) -> dict[str, Any]:
    service.until(lambda: service.job(job)["state"] not in ("queued", "running"), 1000)
    return service.job(job)


def check_result(
    service: Service, server: Provider, job: dict[str, Any], attempt: int, again: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The patch is the model's, its account was shown while the job ran, no key is anywhere, and it can be replayed."""
    assert (job["state"], job["outcome"], job["exit_code"]) == ("done", "improved", 0), job
    report = service.client.get(job["links"]["report"]).json()
    assert report["model"]["kept"] == 1 and "it held" in report["model"]["confirmation"]
    assert report["model"]["budget_usd"] == 0.5
    events = service.client.get(job["links"]["events"]).text
    assert "of $0.50" in events and "tester calls submit_candidate" in events
    out = service.folder / "jobs" / job["id"] / f"out-{attempt}"
    assert "Smaller blocks" in (out / "replay" / "transcript.jsonl").read_text()
    assert service.client.get(job["links"]["patch"]).content == (out / "wavesmith.patch").read_bytes()
    stored = b"".join(p.read_bytes() for p in service.folder.rglob("*") if p.is_file())
    assert not any(key.encode() in stored for key in KEYS.values())
    assert not any(key in events + json.dumps(report) for key in KEYS.values())
    monkeypatch.setenv("WAVESMITH_DATA_DIR", str(service.folder))
    service.client.close()
    replay_offline(out, again, monkeypatch, server, name=job["id"])


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_a_model_of_the_anthropic_wire_works_in_a_job_of_the_service(
    service: Service, server: Provider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.script[:] = [proposal("anthropic"), *[ending("anthropic")] * 20]
    job = service.submit(KERNEL, model="anthropic:tester", budget_usd="0.5")
    job = until_done(service, job)
    sent = server.headers[0]
    assert KEYS["ANTHROPIC_API_KEY"] in (sent.get("x-api-key"), sent.get("authorization", "").removeprefix("Bearer "))
    assert not any(KEYS["OPENAI_API_KEY"] in value for headers in server.headers for value in headers.values())
    check_result(service, server, job, 1, tmp_path / "again", monkeypatch)


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_a_restart_in_the_middle_of_a_models_call_does_the_job_again(
    service: Service, server: Provider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = proposal("openai")
    late.delay_s = 3600.0
    server.script[:] = [late, proposal("openai"), *[ending("openai")] * 20]
    job = service.submit(KERNEL, model="openai:tester", budget_usd="0.5")
    service.until(lambda: bool(server.requests), 600)
    service.stop()
    assert not processes_of(f"jobs/{job['id']}")
    service.start()
    check_result(service, server, until_done(service, job), 2, tmp_path / "again", monkeypatch)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_job_is_cancelled_while_its_model_is_thinking(service: Service, server: Provider) -> None:
    late = proposal("openai")
    late.delay_s = 3600.0
    server.script[:] = [late]
    job = service.submit(KERNEL, model="openai:tester", budget_tokens="200000")
    service.until(lambda: bool(server.requests), 600)
    service.client.post(job["links"]["cancel"])
    assert service.until_state(job, "cancelled")["summary"] == "Cancelled."
    service.until(lambda: not processes_of(f"jobs/{job['id']}"))
    assert len(server.requests) == 1
