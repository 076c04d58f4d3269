"""`wavesmith serve` and `wavesmith worker`: the REST service and the processes that do its jobs."""

from __future__ import annotations

import os
import subprocess
import threading
from pathlib import Path
from typing import Annotated, Any

import typer

from api.settings import Settings


def add_commands(app: typer.Typer) -> None:
    app.command()(serve)
    app.command()(worker)


def _settings(**given: Any) -> Settings:
    """Environment variables, overridden by the options that were given."""
    return Settings(**{name: value for name, value in given.items() if value is not None})


def serve(
    host: Annotated[str | None, typer.Option(help="Address to listen on; anything but loopback needs a token.")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on.")] = None,
    data_dir: Annotated[Path | None, typer.Option(help="Folder of the database and the jobs.")] = None,
    workers: Annotated[int | None, typer.Option(help="Worker processes to start; 0 for none.")] = None,
) -> None:
    """Serve the REST API, with its workers."""
    import uvicorn

    from api.app import create_app

    settings = _settings(host=host, port=port, data_dir=data_dir, workers=workers)
    app = create_app(settings)
    with WorkerPool(settings):
        uvicorn.run(app, host=settings.host, port=settings.port, log_level="warning", timeout_graceful_shutdown=5)


def worker(
    data_dir: Annotated[Path | None, typer.Option(help="Folder of the database and the jobs.")] = None,
    parent: Annotated[int | None, typer.Option(hidden=True)] = None,
) -> None:
    """Do queued jobs until told to stop."""
    from api.jobs import run_worker

    run_worker(_settings(data_dir=data_dir), parent=parent)


class WorkerPool:
    """Keeps `settings.workers` worker processes alive while the context is open."""

    def __init__(self, settings: Settings) -> None:
        from api.jobs import wavesmith_command

        words = ("worker", "--data-dir", str(settings.data_dir.resolve()), "--parent", str(os.getpid()))
        self._command = wavesmith_command(*words)
        self._count = settings.workers
        self._processes: list[subprocess.Popen[bytes]] = []
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._keep_alive, name="worker-pool", daemon=True)

    def __enter__(self) -> WorkerPool:
        self._processes = [subprocess.Popen(self._command) for _ in range(self._count)]
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._thread.join()
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _keep_alive(self) -> None:
        while not self._closing.wait(1.0):
            for i, process in enumerate(self._processes):
                if process.poll() is not None:
                    self._processes[i] = subprocess.Popen(self._command)
