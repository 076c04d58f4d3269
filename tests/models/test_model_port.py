"""`wavesmith port --model` over the wire, and its replay: the same files byte for byte without a network."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from provider import Provider, Step, gpt, provider
from test_model_jobs import KEY, replay_offline

from agent.model_access import PRICE_VARIABLE
from agent.port.record import RECORD_NAME, TRANSCRIPT_NAME
from api.cli import _run

HEADER = "#pragma once\n__device__ inline float half_of(float x) { return 0.5f * x; }\n"
SOURCE = """\
#include "tools.cuh"

__global__ void twice(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = double_it(x[i]) + half_of(x[i]);  // naïve
}
"""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Provider]:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv(PRICE_VARIABLE, "3/15")
    with provider() as running:
        yield running


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "tools.cuh").write_text(HEADER)
    (folder / "twice.cu").write_bytes(SOURCE.replace("\n", "\r\n").encode())
    return folder


def edits(search: str, replace: str) -> Step:
    arguments = json.dumps({"edits": [{"search": search, "replace": replace}]})
    return Step(events=gpt(None, [("c1", "submit_edits", arguments)], "tool_calls"))


def port(project: Path, server: Provider, out: Path) -> int:
    words = ["port", str(project), "--target", "gfx950", "--out", str(out), "--model", "openai:tester"]
    return _run([*words, "--model-base-url", f"{server.url}/v1", "--budget-usd", "0.5", "--no-execute"])


def files_of(folder: Path) -> dict[str, bytes]:
    """Everything but the reports, which hold the time it took, and what a replay needs."""
    found = {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    return {n: d for n, d in found.items() if not n.startswith(("replay/", "report."))}


@pytest.mark.timeout(900)
def test_a_port_with_a_model_replays_byte_for_byte(
    project: Path, server: Provider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    server.script[:] = [edits("double_it(x[i])", "twice_of(x[i])"), edits("twice_of(x[i])", "2.0f * x[i]")]
    out, again = tmp_path / "out", tmp_path / "again"
    assert port(project, server, out) == 5
    assert len(server.requests) == 2 and "2.0f * x[i]" in (out / "twice.hip").read_text()
    stored = b"".join(p.read_bytes() for p in out.rglob("*") if p.is_file())
    assert KEY.encode() not in stored and server.url.encode() not in stored
    # the replay needs neither the sources nor what the model knows by then
    for file in project.iterdir():
        file.unlink()
    capfd.readouterr()
    replay_offline(out, again, monkeypatch, server, code=5, same=lambda: files_of(out) == files_of(again))
    assert "every file is that of the stored port, byte for byte" in capfd.readouterr().err
    assert "twice.hip" in files_of(again)


@pytest.mark.timeout(900)
def test_a_replay_of_another_conversation_says_so(
    project: Path, server: Provider, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    server.script[:] = [edits("double_it(x[i])", "2.0f * x[i]")]
    out = tmp_path / "out"
    assert port(project, server, out) == 5
    transcript = out / TRANSCRIPT_NAME
    transcript.write_text(transcript.read_text().replace("2.0f", "3.0f"))
    assert _run(["replay", str(out)]) == 5
    assert "Replayed: not the same. patch.diff, twice.hip became another." in capfd.readouterr().err
    transcript.write_text("")
    assert _run(["replay", str(out)]) == 5
    assert "The stored conversation does not fit" in capfd.readouterr().err
    (out / RECORD_NAME).write_text("{}")
    assert _run(["replay", str(out)]) == 2
    assert "it is no record of a port of this version" in capfd.readouterr().err
    assert _run(["replay", str(out), "--out", str(out)]) == 2
