"""Time every page and list of the service over a full database, over real HTTP from a real server.

    python benchmarks/pages.py [--jobs 10000] [--trials 100000] [--requests 200] [--out FILE]

Prints the median and 95th percentile of the time from sending a request to having its whole answer, the processor time
that the server spent on one (which other work on the machine hardly lengthens), and the bytes of the answer; those of a
page are with its style sheet and script, as a first paint needs them. Ends with 1 when a page is over 150 ms or 200,000
bytes.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from api.jobs import wavesmith_command  # noqa: E402
from api.settings import Settings  # noqa: E402
from benchmarks.pages_data import Filled, Size, fill  # noqa: E402

MOST_MS = 150.0
MOST_BYTES = 200_000
_ASSETS = ("/static/style.css", "/static/app.js")


def addresses(filled: Filled) -> list[str]:
    """Every page and list, with every filter, deep pages, and things with much to show."""
    skill, deep, job, port = filled.skill, filled.deep, filled.job, filled.port
    return [
        "/", "/?state=failed", "/?state=running", "/?state=queued", "/?arch=gfx950", "/?state=cancelled&arch=gfx942",
        "/?kind=port", f"/?before={deep}", f"/?before={deep}&state=failed&arch=gfx950",
        f"/jobs/{job}", f"/jobs/{job}?attempts=5", f"/jobs/{job}/attempts/300", f"/jobs/{filled.running}", "/submit",
        "/skills", "/skills?arch=gfx942", "/skills?language=triton", "/skills?correctness=emulated",
        "/skills?arch=gfx950&language=hip&correctness=interpreted", f"/skills?skill={skill}",
        f"/skills?skill={skill}&arch=gfx942&language=triton&correctness=emulated",
        "/ports", f"/ports?before={deep}", f"/ports/{port}", f"/compare?a={job}&b={port}",
        f"/compare?a={job}&b={job}&all=true",
        "/pulls", "/pulls?before=400", "/pulls?repository=octo/kernels-7", f"/pulls/{filled.review}",
        f"/pulls/{filled.review}?page=2", "/login", "/jobs/none",
        "/v1/jobs", "/v1/jobs?limit=200", "/v1/jobs?state=failed", f"/v1/jobs?before={deep}&limit=200",
        f"/v1/jobs/{job}", f"/v1/jobs/{job}/report", "/v1/skills", "/v1/targets", "/readyz",
    ]  # fmt: skip


class Server:
    """`wavesmith serve` on a data folder, without workers."""

    def __init__(self, folder: Path) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        words = ["serve", "--port", str(self.port), "--data-dir", str(folder), "--workers", "0"]
        self.process = subprocess.Popen(wavesmith_command(*words), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 180
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                break
            except OSError:
                if time.monotonic() > deadline or self.process.poll() is not None:
                    raise
                time.sleep(0.1)
        self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)

    def get(self, path: str) -> tuple[float, bytes, str]:
        """Milliseconds, body and media type."""
        began = time.perf_counter()
        self.connection.request("GET", path, headers={"Accept": "text/html"})
        answer = self.connection.getresponse()
        body = answer.read()
        took = (time.perf_counter() - began) * 1000
        assert answer.status in (200, 404, 503), (path, answer.status, body[:300])
        return took, body, answer.headers.get_content_type()

    def first_event(self, job: str) -> float:
        """Milliseconds until the first byte of a job's stream of events."""
        with socket.create_connection(("127.0.0.1", self.port), 60) as raw:
            began = time.perf_counter()
            raw.sendall(f"GET /v1/jobs/{job}/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
            data = b""
            while b"data: " not in data:
                data += raw.recv(4096)
            return (time.perf_counter() - began) * 1000

    def cpu_s(self) -> float:
        """Processor time of the server so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(60)


@dataclass(frozen=True)
class Row:
    """What was measured of one address; `size` is that of a first paint."""

    path: str
    median_ms: float
    p95_ms: float
    cpu_ms: float
    size: int

    @property
    def is_over(self) -> bool:
        return self.p95_ms >= MOST_MS or (not self.path.startswith("/v1/") and self.size >= MOST_BYTES)


def measure(server: Server, filled: Filled, requests: int) -> Iterator[Row]:
    """One row for each address, and one for the first event of a running job."""
    assets = sum(len(server.get(path)[1]) for path in _ASSETS)
    for path in addresses(filled):
        _, body, kind = server.get(path)
        size = len(body) + (assets if kind == "text/html" else 0)
        yield _row(server, path, size, requests, lambda path=path: server.get(path)[0])  # type: ignore[misc]
    yield _row(server, "first event of a running job", 0, requests, lambda: server.first_event(filled.running))


def _row(server: Server, path: str, size: int, requests: int, ask: Callable[[], float]) -> Row:
    cpu = server.cpu_s()
    times = sorted(ask() for _ in range(requests))
    spent = (server.cpu_s() - cpu) * 1000 / requests
    return Row(path, times[len(times) // 2], times[int(len(times) * 0.95)], spent, size)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("jobs", 10_000), ("trials", 100_000), ("reviews", 5_000), ("requests", 200)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--out", type=Path, help="also write the rows as JSON")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="wavesmith-pages-") as name:
        folder = Path(name)
        began = time.perf_counter()
        filled = fill(Settings(data_dir=folder), Size(given.jobs, given.trials, given.reviews))
        print(f"filled in {time.perf_counter() - began:.0f} s, {(folder / 'wavesmith.db').stat().st_size >> 20} MiB")
        server = Server(folder)
        try:
            rows = []
            for row in measure(server, filled, given.requests):
                rows.append(row)
                line = f"{row.median_ms:8.1f} {row.p95_ms:8.1f} {row.cpu_ms:8.1f} ms {row.size:9,d} bytes  {row.path}"
                print(f"{line}{'   OVER' if row.is_over else ''}", flush=True)
        finally:
            server.stop()
    if given.out is not None:
        given.out.write_text(json.dumps([asdict(r) for r in rows], indent=1))
    return 1 if any(r.is_over for r in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
