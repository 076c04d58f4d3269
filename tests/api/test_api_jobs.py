"""Jobs done by the real service: its own process, its worker processes, its sandbox, its database."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from serving import PATIENCE_S, processes_of, wait_for

COMMAND = [sys.executable, "-P", "-c", "from api.cli import main; main()"]
LIBDEVICE = """\
import torch
import triton
import triton.language as tl
from triton.language.extra.cuda import libdevice


@triton.jit
def exp_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    tl.store(y_ptr + i, libdevice.exp(x), mask=i < n)  # kept


def run(x):
    y = torch.empty_like(x)
    exp_kernel[(triton.cdiv(x.numel(), 128),)](x, y, x.numel(), BLOCK=128)
    return y


if __name__ == "__main__":
    x = torch.randn(200, device="cuda")
    torch.testing.assert_close(run(x), torch.exp(x))
"""
SLEEPING = "import time\nimport triton\n\n\n@triton.jit\ndef k(x):\n    pass\n\n\ntime.sleep(3000)\n"
FAILING = "import triton\n\n\n@triton.jit\ndef k(x):\n    pass\n\n\nraise ValueError('no data here')\n"


class Service:
    """`wavesmith serve` as a process."""

    def __init__(self, folder: Path) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.folder = folder
        self.client = httpx.Client(base_url=f"http://127.0.0.1:{self.port}", timeout=300)
        self.start()

    def start(self) -> None:
        settings = {"WAVESMITH_LEASE_S": "3", "WAVESMITH_POLL_S": "0.1", "WAVESMITH_MAX_WAIT_S": "280"}
        words = ["serve", "--port", str(self.port), "--data-dir", str(self.folder), "--workers", "2"]
        self.process = subprocess.Popen([*COMMAND, *words], cwd=self.folder, env={**os.environ, **settings})
        self.until(lambda: self._ready())

    def _ready(self) -> bool:
        try:
            return self.client.get("/readyz").status_code == 200
        except httpx.TransportError:
            return False

    def stop(self) -> None:
        self.process.terminate()
        assert self.process.wait(PATIENCE_S) is not None

    def submit(self, source: str, name: str = "k.py", wait_s: int = 0, **form: str) -> dict[str, Any]:
        headers = {"prefer": f"wait={wait_s}"} if wait_s else {}
        data = {"target": "gfx950", **form}
        answer = self.client.post("/v1/jobs", files={"file": (name, source.encode())}, data=data, headers=headers)
        assert answer.status_code in (200, 202), answer.text
        job: dict[str, Any] = answer.json()
        return job

    def job(self, job: dict[str, Any]) -> dict[str, Any]:
        now: dict[str, Any] = self.client.get(job["links"]["self"]).json()
        return now

    def until(self, condition: Any, timeout_s: float = PATIENCE_S) -> None:
        wait_for(condition, timeout_s)

    def until_state(self, job: dict[str, Any], *states: str) -> dict[str, Any]:
        self.until(lambda: self.job(job)["state"] in states)
        return self.job(job)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    running = Service(tmp_path_factory.mktemp("service"))
    yield running
    running.stop()


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_kernel_goes_in_and_a_patch_comes_out(service: Service, tmp_path: Path) -> None:
    job = service.submit(LIBDEVICE, wait_s=60, path="ops/k.py")
    service.until(lambda: service.job(job)["state"] not in ("queued", "running"), 800)
    job = service.job(job)
    assert (job["state"], job["outcome"], job["exit_code"]) == ("done", "builds-now", 0), job
    patch = service.client.get(job["links"]["patch"])
    assert patch.headers["content-type"].startswith("text/x-diff")
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    (tmp_path / "ops").mkdir()
    (tmp_path / "ops/k.py").write_text(LIBDEVICE)
    subprocess.run(["git", "apply", "-"], input=patch.content, cwd=tmp_path, check=True)
    patched = (tmp_path / "ops/k.py").read_text()
    assert "extra.cuda" not in patched and "# kept" in patched
    report = service.client.get(job["links"]["report"]).json()
    assert report["correctness"]["level"] == "emulated" and report["correctness"]["validated"]
    assert any(c["passed"] for c in report["correctness"]["checks"])
    assert not report["baseline"]["builds"] and "__nv_expf" in report["baseline"]["failures"][0]["message"]
    assert report["attempts"][0]["origin"] == "port-cuda-libdevice" and report["attempts"][0]["fate"] == "kept"
    markdown = service.client.get(job["links"]["report"], headers={"accept": "text/markdown"}).text
    assert "ran in the CPU emulator" in markdown and "faster" not in markdown
    events = service.client.get(job["links"]["events"]).text
    assert "event: attempt" in events and "event: end" in events
    assert "port-cuda-libdevice" in service.client.get("/skills").text
    assert "extra.cuda" in service.client.get(f"/jobs/{job['id']}").text


COUNTING = """#include <hip/hip_runtime.h>
__global__ void count(const float* x, int* negative, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && x[i] < 0) atomicAdd(negative, 1);
}
"""


@pytest.mark.timeout(900)
def test_a_hip_file_is_optimized_as_well(service: Service) -> None:
    job = service.submit(COUNTING, name="count.hip", wait_s=60, path="ops/count.hip")
    service.until(lambda: service.job(job)["state"] not in ("queued", "running"), 800)
    job = service.job(job)
    assert (job["state"], job["outcome"], job["exit_code"]) == ("done", "improved", 0), job
    assert "+++ b/ops/count.hip" in service.client.get(job["links"]["patch"]).text
    report = service.client.get(job["links"]["report"]).json()
    assert report["speed"]["level"] == "counted" and report["file"]["language"] == "hip"


def test_input_that_fails_before_its_first_launch_is_named(service: Service) -> None:
    job = service.submit(FAILING, wait_s=180)
    assert (job["state"], job["exit_code"]) == ("failed", 2)
    assert "k.py:9" in job["error"] and "no data here" in job["error"]


def test_a_running_job_is_cancelled_with_everything_it_started(service: Service) -> None:
    job = service.submit(SLEEPING, name="sleeping_cancel.py")
    service.until_state(job, "running")
    service.until(lambda: bool(processes_of(f"jobs/{job['id']}")))
    service.client.post(job["links"]["cancel"])
    assert service.until_state(job, "cancelled")["summary"] == "Cancelled."
    service.until(lambda: not processes_of(f"jobs/{job['id']}"))


def test_a_killed_worker_loses_the_job_to_another(service: Service) -> None:
    job = service.submit(SLEEPING, name="sleeping_kill.py")
    service.until_state(job, "running")
    service.until(lambda: bool(processes_of(f"jobs/{job['id']}")))
    children = processes_of(f"jobs/{job['id']}")
    parents = {int((Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[1]) for pid in children}
    workers = {w["name"].rpartition("-")[2] for w in service.client.get("/readyz").json()["workers"]}
    (victim,) = {str(p) for p in parents} & workers
    os.kill(int(victim), signal.SIGKILL)
    service.until(lambda: service.job(job)["attempt"] == 2)
    service.client.post(job["links"]["cancel"])
    service.until_state(job, "cancelled")
    for pid in children:
        if pid in processes_of(f"jobs/{job['id']}"):
            os.kill(pid, signal.SIGKILL)


def test_jobs_survive_a_restart_of_the_service(service: Service) -> None:
    job = service.submit(SLEEPING, name="sleeping_restart.py")
    service.until_state(job, "running")
    service.stop()
    service.start()
    again = service.job(job)
    assert again["state"] in ("queued", "running") and again["error"] is None
    service.until(lambda: service.job(job)["state"] == "running")
    service.client.post(job["links"]["cancel"])
    service.until_state(job, "cancelled")


def run(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *words], cwd=cwd, capture_output=True, text=True, check=False)


def test_bad_input_exits_with_2_and_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text("def f(:\n")
    (tmp_path / "k.cu").write_text("__global__ void k();\n")
    cases = [
        (["optimize", "none.py", "--target", "gfx950"], "none.py: there is no such file."),
        (["optimize", "bad.py", "--target", "gfx950"], "bad.py:1: Python cannot parse it"),
        (["optimize", "k.cu", "--target", "gfx950"], "it holds no __global__ function with a body."),
        (["optimize", "bad.py"], "--target"),
        (["skills", "show", "nothing"], "there is no skill 'nothing'"),
    ]
    for words, expected in cases:
        done = run(*words, cwd=tmp_path)
        assert done.returncode == 2 and expected in done.stderr, (words, done.stderr)
        assert "Traceback" not in done.stderr and done.stdout == ""


def test_lists_are_quiet_and_machine_readable(tmp_path: Path) -> None:
    skills = json.loads(run("skills", "list", "--json", cwd=tmp_path).stdout)
    assert {"id", "why", "expects", "applies_when"} <= skills[0].keys()
    shown = run("skills", "show", "port-cuda-libdevice", cwd=tmp_path)
    assert shown.returncode == 0 and "Applies when:" in shown.stdout and shown.stderr == ""
    tested = run("skills", "test", "port-cuda-libdevice", cwd=tmp_path)
    assert tested.returncode == 0 and tested.stdout.startswith("ok   port-cuda-libdevice"), tested.stdout
    assert run("--version", cwd=tmp_path).stdout.strip()
