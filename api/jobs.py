"""The worker: claims jobs, runs each as a child process of its own, keeps the lease, and stores what came out.

The child is the command line itself (`wavesmith optimize ... --progress json`), so that both doors share one path. It
gets the job's folder and nothing else: no database, no token, an environment from an allow-list. Cancelling, a timeout
and a lost lease end the child's whole process group.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent.memory import VARIABLE as MEMORY
from agent.model_access import PRICE_VARIABLE, PROVIDERS, parse_model
from agent.report import Report
from api.results import read_result
from api.settings import Settings
from api.store import Job, Lease, State, Store
from api.trial_store import Trial

KINDS = ("optimize", "port")
"""What a job can be: each is a command of the command line."""
INPUT_FOLDER = "input"
_KEPT_VARIABLES = (
    "PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "VIRTUAL_ENV", "LD_LIBRARY_PATH", "ROCM_PATH", "HIP_PATH",
    "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES", "XDG_CACHE_HOME",
    "WAVESMITH_CACHE_DIR", "WAVESMITH_TOOLCHAIN", "WAVESMITH_PORT_RULES",
)  # fmt: skip
_BUDGET_OPTIONS = (
    "model", "model_base_url", "budget_usd", "budget_tokens", "budget_minutes", "budget_evaluations",
)  # fmt: skip
_MODEL_VARIABLES = (PRICE_VARIABLE, "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "SSL_CERT_FILE")
_LOG_BYTES = 64 * 1024
_GRACE_S = 5.0


def wavesmith_command(*words: str) -> list[str]:
    """This installation's command line, whatever `agent/` or `api/` lies in the current folder (`-P`)."""
    return [sys.executable, "-P", "-c", "from api.cli import main; main()", *words]


def child_environment(model: str | None = None) -> dict[str, str]:
    """The environment of a job's process. Only a job that names a model gets that provider's key, and no other."""
    names = list(_KEPT_VARIABLES)
    if model is not None:
        names += [PROVIDERS[parse_model(model).provider].key_variable, *_MODEL_VARIABLES]
    kept = {name: os.environ[name] for name in names if name in os.environ}
    # a service works for several people: what one job taught is told to another only where that is asked for
    return kept | {MEMORY: os.environ.get(MEMORY, "off")}


def job_folder(settings: Settings, job_id: str) -> Path:
    return settings.jobs_dir / job_id


def command_of(job: Job, folder: Path) -> list[str]:
    """The command that does `job`; its files lie in `folder`."""
    options: dict[str, Any] = json.loads(job.options)
    inputs = folder / INPUT_FOLDER
    words = [job.kind, str(inputs / job.filename), "--target", job.target]
    words += ["--out", str(folder / job.out_folder), "--progress", "json"]
    if job.kind == "optimize":
        words += ["--path", job.path]
    if job.kind == "port":
        words.append("--contained")
    for name in ("harness", "workload"):
        if options.get(name):
            words += [f"--{name}", str(inputs / options[name])]
    if options.get("require"):
        words += ["--require", str(options["require"])]
    if options.get("allow_approx"):
        words.append("--allow-approx")
    for name in _BUDGET_OPTIONS:
        if options.get(name) is not None:
            words += [f"--{name.replace('_', '-')}", str(options[name])]
    return wavesmith_command(*words)


@dataclass
class Child:
    """A running job process. Progress lines are read as they come; the rest of stderr is kept as a log tail."""

    process: subprocess.Popen[bytes]
    log: bytearray = field(default_factory=bytearray)
    _pending: bytearray = field(default_factory=bytearray)
    _open: bool = True

    @classmethod
    def start(cls, command: Sequence[str], folder: Path, model: str | None = None) -> Child:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=child_environment(model),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        assert process.stderr is not None
        os.set_blocking(process.stderr.fileno(), False)
        return cls(process)

    def read(self, wait_s: float) -> list[dict[str, Any]]:
        """Progress events that arrived within `wait_s`."""
        stream = self.process.stderr
        assert stream is not None
        if not self._open:
            time.sleep(wait_s)
            return []
        with selectors.DefaultSelector() as selector:
            selector.register(stream, selectors.EVENT_READ)
            if not selector.select(wait_s):
                return []
        data = stream.read(1 << 16)
        if data == b"":
            self._open = False
            data = b"\n" if self._pending else b""
        self._pending += data or b""
        *lines, rest = bytes(self._pending).split(b"\n")
        self._pending = bytearray(rest)
        return list(self._events(lines))

    def _events(self, lines: Sequence[bytes]) -> Iterator[dict[str, Any]]:
        for line in lines:
            event = _parse_event(line)
            if event is not None:
                yield event
            else:
                self.log += line + b"\n"
                del self.log[:-_LOG_BYTES]

    def stop(self) -> None:
        """End the process group: politely first, so that it can end its own sandboxes."""
        for sign in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self.process.pid, sign)
            except ProcessLookupError:
                break
            try:
                self.process.wait(_GRACE_S)
                break
            except subprocess.TimeoutExpired:
                continue
        self.process.wait()

    @property
    def log_tail(self) -> str:
        return bytes(self.log[-4000:]).decode(errors="replace").strip()


def _parse_event(line: bytes) -> dict[str, Any] | None:
    if not line.startswith(b'{"kind"'):
        return None
    try:
        event: dict[str, Any] = json.loads(line)
    except ValueError:
        return None
    return event if {"kind", "phase", "message", "at"} <= event.keys() else None


@dataclass
class JobWorker:
    """Runs jobs one after the other until it is asked to stop."""

    settings: Settings
    store: Store
    name: str
    parent: int | None = None
    """Process without which this worker must not go on."""
    stop_requested: bool = False

    @property
    def must_stop(self) -> bool:
        return self.stop_requested or (self.parent is not None and os.getppid() != self.parent)

    def run_one(self) -> bool:
        """Claim and do one job; False when there was none."""
        job = self.store.claim(self.name, lease_s=self.settings.lease_s, max_losses=self.settings.max_losses)
        if job is None:
            return False
        lease = Lease(job.id, job.attempt)
        folder = job_folder(self.settings, job.id)
        (folder / job.out_folder).mkdir(parents=True, exist_ok=True)
        child = Child.start(command_of(job, folder), folder, json.loads(job.options).get("model"))
        try:
            ended = self._attend(child, lease)
        finally:
            child.stop()
        self._conclude(job, lease, child, ended)
        return True

    def _attend(self, child: Child, lease: Lease) -> str:
        """Wait for the child; returns `exited`, `cancelled`, `timeout`, `lost` or `stopped`."""
        deadline = time.monotonic() + self.settings.job_timeout_s
        renew_at = 0.0
        while True:
            done = child.process.poll() is not None
            events = child.read(0.0 if done else self.settings.poll_s)
            while done and (more := child.read(0.0)):
                events += more
            if events and not self.store.add_events(lease, events):
                return "lost"
            if done:
                return "exited"
            if self.must_stop:
                return "stopped"
            if time.monotonic() >= deadline:
                return "timeout"
            if time.monotonic() >= renew_at:
                renew_at = time.monotonic() + self.settings.lease_s / 5
                self.store.hello(self.name)
                held, cancel = self.store.renew(lease, lease_s=self.settings.lease_s)
                if not held or cancel:
                    return "cancelled" if held else "lost"

    def _conclude(self, job: Job, lease: Lease, child: Child, ended: str) -> None:
        match ended:
            case "exited":
                self._store_result(job, lease, child)
            case "cancelled":
                self.store.finish(lease, State.CANCELLED, summary="Cancelled.")
            case "timeout":
                limit = f"{self.settings.job_timeout_s:g} s"
                self.store.finish(lease, State.FAILED, error=f"The job did not end within {limit}.", exit_code=1)
            case "stopped":
                self.store.release(lease)

    def _store_result(self, job: Job, lease: Lease, child: Child) -> None:
        code = child.process.returncode
        result = read_result(job_folder(self.settings, job.id) / job.out_folder, job.kind)
        if result is not None and code == result.exit_code:
            fields = {"outcome": result.outcome, "exit_code": code, "summary": result.summary}
            trials = _trials(job, result.report) if result.report is not None else []
            self.store.finish(lease, State.DONE, trials, **fields)
        else:
            error = child.log_tail or f"The job's process ended with code {code} and left no report."
            self.store.finish(lease, State.FAILED, error=error, exit_code=code if code in (1, 2) else 1)


def _trials(job: Job, report: Report) -> list[Trial]:
    return [
        Trial(
            job_id=job.id,
            skill=a.origin,
            edit=a.id,
            arch=report.target.arch,
            language=report.file.language,
            fate=a.fate,
            verdict=a.verdict,
            correctness=a.correctness,
            speed=a.speed,
            reason=a.reason,
            at=time.time(),
        )
        for a in report.attempts
    ]


def run_worker(settings: Settings, *, parent: int | None = None) -> None:
    """Work until SIGTERM or SIGINT, or until the process `parent` is gone."""
    store = Store(settings.database)
    worker = JobWorker(settings, store, f"{os.uname().nodename}-{os.getpid()}", parent)

    def stop(_signal: int, _frame: object) -> None:
        worker.stop_requested = True

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    hello_at = 0.0
    while not worker.must_stop:
        if time.monotonic() >= hello_at:
            store.hello(worker.name)
            hello_at = time.monotonic() + settings.lease_s / 3
        if not worker.run_one():
            time.sleep(settings.poll_s)
    store.goodbye(worker.name)
    store.close()
