"""The file of ours inside the child: reads the job, prepares torch and Triton, runs the user's file, reports.

Everything it reports goes to one private descriptor; standard output belongs to the user's file. It takes its limits
upon itself before any code of the user runs, and its own references to the functions it records with.
"""

from __future__ import annotations

import argparse
import faulthandler
import gc
import json
import os
import resource
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sandbox.device_lock import join, narrowed
from sandbox.frames import FrameWriter
from sandbox.isolation import Limits

_RESULT_FD = 511
"""Where the result descriptor is moved to: out of the way of code that closes or reuses low numbers."""
_EXECUTION_SHARE = 0.6
"""Part of the wall clock after which launches are no longer executed, so that the rest of the run is still recorded."""


@dataclass(frozen=True, slots=True)
class Job:
    """What the parent asks for; see `sandbox.capture`, which writes it."""

    mode: str
    folder: Path
    kernel: str
    harness: str | None
    targets: tuple[str, ...]
    executor: str
    limits: Limits
    seed: int = 0
    distribution: str = "recorded"
    compile: bool = True
    cache: str | None = None
    options: Mapping[str, Any] | None = None
    cache_root: str | None = None
    """Where the emulator's compiled core lies."""
    second_chance: bool = False
    """Whether the emulator runs what the interpreter gives up on."""
    device: int | None = None
    """Number of the only GPU the child shall see; None: all that the machine shows."""
    device_lock: Sequence[int] = ()
    """What the parent offers of `sandbox.device_lock`: descriptors to take before the GPU is used."""

    @classmethod
    def read(cls, path: Path) -> Job:
        data = json.loads(path.read_text())
        limits = Limits(**data.pop("limits"))
        return cls(folder=Path(data.pop("folder")), limits=limits, targets=tuple(data.pop("targets")), **data)


def main(arguments: list[str] | None = None) -> None:
    """Entry of the child. Ends the process itself, so that threads the user left behind do not."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--job", type=Path, required=True)
    parser.add_argument("--result-fd", type=int, required=True)
    given = parser.parse_args(arguments)
    job = Job.read(given.job)
    confine(job.limits)
    faulthandler.enable()
    channel = FrameWriter(move_descriptor(given.result_fd))
    code = run(job, channel)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def move_descriptor(fd: int) -> int:
    """The result pipe under a high number, not inherited by programs the user's file starts."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    high = min(_RESULT_FD, limit - 1)
    os.dup2(fd, high, inheritable=False)
    os.close(fd)
    return high


def confine(limits: Limits) -> None:
    """Limits of this process and all below it; they can only be lowered afterwards."""
    wanted = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_FSIZE: limits.file_bytes,
        resource.RLIMIT_NOFILE: limits.open_files,
        resource.RLIMIT_CPU: int(limits.wall_s * (os.cpu_count() or 1)) + 60,
    }
    for kind, value in wanted.items():
        hard = resource.getrlimit(kind)[1]
        bound = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (bound, bound))


@contextmanager
def kept_imports() -> Iterator[None]:
    """For imports as large as torch's: the collector neither runs during them nor looks at what they made afterwards.

    Their objects live as long as the process; walking them again and again takes a fifth of the time to import them.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def run(job: Job, channel: FrameWriter) -> int:
    """Prepare, then run the mode. Exit status 0 whenever the run itself worked, whatever the harness did."""
    if job.cache_root is not None:
        os.environ["WAVESMITH_CACHE_DIR"] = job.cache_root
    if job.device is not None:
        os.environ.update(narrowed(os.environ, job.device))
    with kept_imports():
        import torch
        import triton

        from sandbox.child_session import Session

    channel.send("hello", {"torch": torch.__version__, "triton": triton.__version__, "python": sys.version.split()[0]})
    if job.device_lock:
        turn, use = job.device_lock
        join((turn, use))
    if job.mode == "trials":
        from sandbox.child_trials import run_trials

        run_trials(job, channel)
        channel.send("end", {})
        return 0
    session = Session.prepare(job, channel, time.monotonic() + job.limits.wall_s * _EXECUTION_SHARE)
    gc.collect()
    gc.freeze()
    if job.mode == "capture":
        session.capture()
    elif job.mode == "replay":
        from sandbox.child_replay import replay

        replay(session)
    else:
        raise ValueError(f"unknown mode {job.mode}")
    channel.send("end", {})
    return 0
