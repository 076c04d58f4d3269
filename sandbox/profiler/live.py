"""rocprofv3 on a recorded workload: the program it runs, which repeats the recorded calls on the GPU and ends normally.

The user's file runs without confinement here, because the profiler has to see the process and to write beside it: it is
meant for files one would run anyway.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from sandbox.errors import InputError
from sandbox.isolation import Limits
from sandbox.kernel import Kernel
from sandbox.profiler.dispatches import ProfilerData
from sandbox.profiler.rocprof import find_rocprofv3, run_rocprof
from sandbox.profiler.rocprof_plan import plan_passes
from sandbox.target import Target
from sandbox.trials import Request, inputs_only
from sandbox.variants import RECORDED, Step
from sandbox.workload import StoredWorkload, save

_REPEATS = 3
"""Times each call is made: the first pays for compilation and cold caches."""
_BOOT = """\
import os, pathlib, sys
sys.path.append({root!r})
from sandbox.frames import FrameWriter
from sandbox.harness import Job, run
sys.exit(run(Job.read(pathlib.Path({job!r})), FrameWriter(os.open(os.devnull, os.O_WRONLY))))
"""
"""Ends by returning, not by `os._exit`: the profiler writes its files when the process ends."""


@dataclass(frozen=True, slots=True)
class LiveOptions:
    """How a live run is made. `timeout_s` holds for each pass; `env` is that of the profiled process."""

    timeout_s: float = 300.0
    executable: str | None = None
    executor: str = "gpu"
    env: Mapping[str, str] | None = None


def replay_command(
    stored: StoredWorkload, kernel: Kernel, target: Target, folder: Path, executor: str = "gpu"
) -> list[str]:
    """Write the workload below `folder` and return the command that repeats its calls. Raises `InputError` for none."""
    entries = stored.workload.entries
    if not entries:
        raise InputError("no host call was recorded that could be repeated.", file=kernel.filename)
    source = folder / "source"
    source.mkdir(parents=True, exist_ok=True)
    kernel.write_to(source)
    save(inputs_only(stored), folder)
    steps = [Request(Step(e.index, RECORDED), n) for n, e in enumerate(entries) for _ in range(_REPEATS)]
    job = {
        "mode": "trials",
        "folder": str(source),
        "kernel": kernel.filename,
        "harness": None,
        "targets": [target.board.name],
        "executor": executor,
        "limits": asdict(Limits()),
        "options": {"steps": [r.to_json() for r in steps], "seed": 0},
    }
    path = folder / "job.json"
    path.write_text(json.dumps(job), encoding="utf-8")
    root = Path(__file__).resolve().parent.parent.parent
    return [sys.executable, "-P", "-s", "-c", _BOOT.format(root=str(root), job=str(path))]


def kernel_regex(names: Sequence[str]) -> str:
    """An expression that matches these kernels, and names specialised from them."""
    return "^(" + "|".join(re.escape(name) for name in names) + ")"


def profile_live(
    stored: StoredWorkload, kernel: Kernel, target: Target, folder: Path, options: LiveOptions | None = None
) -> ProfilerData:
    """Plan the passes for `target`, run rocprofv3 on the repeated workload once for each, read and merge what it wrote.

    A pass that hangs, aborts or writes nothing costs its own counters only, with a note. Outputs stay in `folder`.
    Raises `ToolMissing` without rocprofv3, `InputError` for a target without counter limits or nothing to repeat.
    """
    live = options or LiveOptions()
    tool = find_rocprofv3(live.executable)
    passes = plan_passes(target)
    command = replay_command(stored, kernel, target, folder / "replay", live.executor)
    return run_rocprof(
        command,
        passes,
        folder,
        kernel_regex=kernel_regex(stored.workload.kernels()),
        timeout_s=live.timeout_s,
        executable=tool,
        env=live.env,
    )
