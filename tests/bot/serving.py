"""An ASGI application over real HTTP, for every test that talks to one."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import uvicorn

PATIENCE_S = 180.0
"""What a test waits for something that comes at once on an idle machine."""
get, post = partial(httpx.get, timeout=PATIENCE_S), partial(httpx.post, timeout=PATIENCE_S)
"""Requests that a busy machine may take its time to answer."""


@contextmanager
def client_of(app: Any) -> Iterator[httpx.Client]:
    """A client of the application, served as `run_app` does."""
    with run_app(app) as url, httpx.Client(base_url=url, timeout=PATIENCE_S) as client:
        yield client


@contextmanager
def run_app(app: Any) -> Iterator[str]:
    """The application on a free port, in a thread; yields its address."""
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive(), "the server ended before it listened"
        time.sleep(0.01)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join(PATIENCE_S)


def wait_for(condition: Callable[[], Any], timeout_s: float = PATIENCE_S) -> None:
    """Return once `condition` holds."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "it never came to that"
        time.sleep(0.05)


def processes_of(text: str) -> list[int]:
    """Process ids whose command line holds `text`."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                line = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if text.encode() in line:
                found.append(int(entry.name))
    return found
