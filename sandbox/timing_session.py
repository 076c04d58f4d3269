"""Parent side of timing: a process per program, one request and one answer at a time over a private pipe."""

from __future__ import annotations

import json
import math
import os
import selectors
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypedDict

import numpy as np

from sandbox.correctness import TensorValue
from sandbox.fork_server import Process, PythonProgram, fork

_MAX_ANSWER_BYTES = 1 << 20
CHECKED_ELEMENTS = 1 << 20
"""Of each tensor that a timed call returned, chosen after it; comparing every element is what the evaluation does."""
_SPANS = 64
_BIT_TYPES = {"bfloat16": "uint16"} | {f"float8_{k}": "uint8" for k in ("e4m3fn", "e4m3fnuz", "e5m2", "e5m2fnuz")}


@dataclass(frozen=True, slots=True)
class Sample:
    """One timed call. `late_us`: from the program's last timestamp to the idle device; `host_us`: the whole request as
    the parent saw it."""

    device_us: float
    late_us: float
    host_us: float


class TimingError(Exception):
    """A timed process ended, hung, raised, or answered nonsense; the message says which program and why."""


@dataclass(frozen=True, slots=True)
class ProgramSpec:
    """What to time: `entry` of the Python file `source`, called with what the trusted file `inputs` makes.

    `inputs` defines `make(seed: int, device: str) -> (args, kwargs)`; it is imported before the program, and called for
    every timed call anew. Where it also defines `load(source: Path)`, that imports the program and returns what `entry`
    (which may be empty) is looked up in; where it defines `select(case: int)`, that says which of several calls is made
    from then on. `environment` is added to the few variables a process gets.
    """

    source: Path
    entry: str
    inputs: Path
    environment: Mapping[str, str] = field(default_factory=dict)


_KEPT_VARIABLES = (
    "PATH", "LD_LIBRARY_PATH", "HOME", "TMPDIR", "CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES",
    "CUDA_HOME", "ROCM_PATH", "TRITON_CACHE_DIR", "TRITON_INTERPRET", "VIRTUAL_ENV", "CC", "TRITON_PTXAS_PATH",
)  # fmt: skip


class Part(TypedDict):
    """Rows of a tensor: `width` elements each, `spans` of (first row, rows)."""

    width: int
    spans: list[tuple[int, int]]


def checked_part(shape: tuple[int, ...], seed: int) -> Part | None:
    """About `CHECKED_ELEMENTS` of a tensor of `shape`: whole rows where they fit, else a run; None for all of it."""
    elements = math.prod(shape)
    if elements <= CHECKED_ELEMENTS:
        return None
    rng = np.random.default_rng(seed)
    width = shape[-1] if shape[-1] <= CHECKED_ELEMENTS else 1
    rows, wanted = elements // width, CHECKED_ELEMENTS // width
    spans = min(_SPANS, wanted) if width > 1 else 1
    count = wanted // spans
    # One span somewhere in each of equal shares, so that none overlap.
    share = rows // spans
    return Part(width=width, spans=[(i * share + int(rng.integers(share - count + 1)), count) for i in range(spans)])


_PROGRAM = PythonProgram(
    f"import runpy; runpy.run_path({str(Path(__file__).with_name('child_timing.py'))!r}, run_name='__main__')"
)


def _start(fds: tuple[int, ...], complaints: int, environment: dict[str, str]) -> Process:
    """The process, forked from a server that has imported torch where there is one."""
    program = replace(_PROGRAM, arguments=tuple(map(str, fds)))
    # Threads of a library that nobody calls while the server imports: it could not fork any more.
    libraries = {**environment, "OPENBLAS_NUM_THREADS": "1"}
    descriptors = {2: complaints, **{fd: fd for fd in fds}}
    forked = fork(program, environment=environment, libraries=libraries, folder=None, descriptors=descriptors)
    return forked or subprocess.Popen(
        program.command(),
        pass_fds=fds,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=complaints,
        env=environment,
        start_new_session=True,
    )


class TimingProcess:
    """A process for one program. It starts at once and imports torch; `load` gives it the program.

    `lock` is what `device_lock.offered` gave: the process takes it when it comes to use the GPU.
    """

    def __init__(self, device: str, lock: tuple[int, ...] = ()) -> None:
        self._device = device
        self._name = "no program"
        self.host_ms = 0.0
        """How long the host takes to queue a call, as it was seen in warming up; the slowest kind of call counts."""
        self._buffer = b""
        self._closed = False
        to_child, self._request = os.pipe()
        self._answer, from_child = os.pipe()
        # No pipe, which would fill: nobody reads while the program runs.
        self._complaints = tempfile.TemporaryFile()  # noqa: SIM115 - open as long as the process may complain
        environment = {k: v for k, v in os.environ.items() if k in _KEPT_VARIABLES}
        self._process = _start((to_child, from_child, *lock), self._complaints.fileno(), environment)
        os.close(to_child)
        os.close(from_child)

    def load(self, spec: ProgramSpec, flush_bytes: int | None, timeout_s: float) -> None:
        """Import the inputs and the program. Raises `TimingError` when that fails."""
        self._name = spec.source.name
        request = {
            "op": "load",
            "source": str(spec.source),
            "entry": spec.entry,
            "inputs": str(spec.inputs),
            "environment": dict(spec.environment),
            "device": self._device,
            "flush_bytes": flush_bytes,
        }
        hello = self._ask(request, timeout_s)
        self.device_name = str(hello["device"])
        self.flush_bytes = int(hello["flush_bytes"])
        self.source_digest = str(hello["source_digest"])

    @property
    def pid(self) -> int:
        return self._process.pid

    def warm_up(self, calls: int, seconds: float, timeout_s: float) -> None:
        answer = self._ask({"op": "warm-up", "calls": calls, "seconds": seconds}, timeout_s + seconds)
        self.host_ms = max(self.host_ms, float(answer["host_ms"]))

    def queued_in(self, host_ms: float, timeout_s: float) -> None:
        """The device shall spin long enough for a host that takes so long to queue a call."""
        self._ask({"op": "queued-in", "host_ms": host_ms}, timeout_s)

    def leave_device(self, timeout_s: float) -> None:
        """Warm: from here on it uses the GPU only when it is asked to, and whoever asks has the GPU alone."""
        self._ask({"op": "leave-device"}, timeout_s)

    def select(self, case: int, timeout_s: float) -> None:
        """Calls are of this case from here on."""
        self._ask({"op": "select", "case": case}, timeout_s)

    def rest(self, timeout_s: float) -> None:
        """Give up what was prepared and returned, and the memory it took."""
        self._ask({"op": "rest"}, timeout_s)

    def prepare(self, variant: int, timeout_s: float) -> None:
        """Draw the inputs of the next timed call from `variant`; what the last call returned is given up."""
        self._ask({"op": "prepare", "variant": variant}, timeout_s)

    def timed_call(self, timeout_s: float) -> Sample:
        """One call on the inputs that were prepared; the cache is flushed before it."""
        self._ask({"op": "flush"}, timeout_s)
        start = time.perf_counter_ns()
        answer = self._ask({"op": "time"}, timeout_s)
        host_us = (time.perf_counter_ns() - start) / 1e3
        return Sample(float(answer["device_us"]), float(answer["late_us"]), host_us)

    def results(self, seed: int, timeout_s: float) -> dict[str, TensorValue]:
        """What the last timed call returned, and its arguments as it left them: of each tensor `CHECKED_ELEMENTS` at
        most, which `seed` chooses; the child hears the choice after the call."""
        listing = self._ask({"op": "listing"}, timeout_s)["tensors"]
        parts = [checked_part(tuple(int(n) for n in entry["shape"]), seed) for entry in listing]
        with tempfile.TemporaryDirectory(prefix="wavesmith-") as folder:
            path = Path(folder) / "results"
            lengths = self._ask({"op": "results", "path": str(path), "parts": parts}, timeout_s)["nbytes"]
            data = path.read_bytes()
        found: dict[str, TensorValue] = {}
        position = 0
        for entry, part, length in zip(listing, parts, lengths, strict=True):
            dtype, shape = str(entry["dtype"]), tuple(int(n) for n in entry["shape"])
            stride = tuple(int(n) for n in entry["stride"])
            if part is not None:
                shape = (sum(count for _, count in part["spans"]), part["width"])
                stride = (part["width"], 1)
            values = np.frombuffer(data[position : position + int(length)], dtype=_BIT_TYPES.get(dtype, dtype))
            position += int(length)
            found[str(entry["place"])] = TensorValue(dtype, shape, stride, values.reshape(shape))
        return found

    def _ask(self, request: Mapping[str, Any], timeout_s: float) -> dict[str, Any]:
        try:
            os.write(self._request, json.dumps(request).encode() + b"\n")
        except BrokenPipeError:
            raise TimingError(self._describe("ended before it was asked")) from None
        line = self._read_line(time.monotonic() + timeout_s, str(request["op"]))
        try:
            answer = json.loads(line)
        except ValueError:
            raise TimingError(self._describe("answered something that is no JSON")) from None
        if not isinstance(answer, dict) or "fault" in answer:
            raise TimingError(self._describe(str(answer.get("fault") if isinstance(answer, dict) else answer)))
        return answer

    def _read_line(self, deadline: float, op: str) -> bytes:
        with selectors.DefaultSelector() as selector:
            selector.register(self._answer, selectors.EVENT_READ)
            while b"\n" not in self._buffer:
                left = deadline - time.monotonic()
                if left <= 0 or not selector.select(left):
                    raise TimingError(self._describe(f"gave no answer to `{op}` in time"))
                chunk = os.read(self._answer, 65536)
                if not chunk:
                    raise TimingError(self._describe(f"ended during `{op}`"))
                self._buffer += chunk
                if len(self._buffer) > _MAX_ANSWER_BYTES:
                    raise TimingError(self._describe("answered too much"))
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line

    def _describe(self, what: str) -> str:
        self.close()
        self._complaints.seek(0)
        tail = self._complaints.read()[-2000:]
        return f"{self._name}: {what}" + (f"\n{tail.decode(errors='replace')}" if tail else "")

    def close(self) -> None:
        """End the process and everything it started; once more does nothing."""
        if self._closed:
            return
        self._closed = True
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for descriptor in (self._request, self._answer):
            with suppress(OSError):
                os.close(descriptor)
