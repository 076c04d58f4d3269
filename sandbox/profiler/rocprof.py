"""rocprofv3: finding and reading what it wrote, and running it pass by pass with a time limit that holds."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from sandbox.errors import InputError, ToolMissing
from sandbox.profiler.dispatches import ProfilerData, merge
from sandbox.profiler.rocpd import read_rocpd
from sandbox.profiler.rocprof_csv import read_csv
from sandbox.profiler.rocprof_json import is_results, load_json, read_json
from sandbox.profiler.rocprof_plan import Pass

_READABLE = (".csv", ".csv.gz", ".json", ".json.gz", ".db")
_TAIL_CHARS = 2000


def read_rocprof(path: Path) -> ProfilerData:
    """Everything below a file or folder, merged. A file that cannot be read is left out with a note saying why.

    Layouts differ by version and options, so the tree is searched whole. Raises `InputError` when nothing was readable.
    """
    if not path.exists():
        raise InputError("there is no such file or folder.", file=path, remedy="Check the path.")
    files = [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file() and _readable(p))
    parts: list[ProfilerData] = []
    refused: list[str] = []
    for file in files:
        try:
            parts.append(read_file(file))
        except InputError as e:
            if path.is_file():
                raise
            refused.append(str(e))
    if not parts:
        reason = refused[0] if refused else "it holds no CSV, JSON or rocpd file."
        raise InputError(
            f"no profiler output was found: {reason}", file=path, remedy="Give the folder of rocprofv3 -d."
        )
    return merge([*parts, ProfilerData(notes=tuple(refused))])


def _readable(path: Path) -> bool:
    return path.name.endswith(_READABLE)


def read_file(path: Path) -> ProfilerData:
    """One output file, by its ending; raises `InputError` when it is of no known kind."""
    if path.stat().st_size == 0:
        raise InputError("the file is empty.", file=path, remedy="Profile again: the run wrote nothing.")
    if path.suffix == ".db":
        return read_rocpd(path)
    if path.name.endswith((".json", ".json.gz")):
        document = load_json(path)
        if not is_results(document):
            raise InputError("it is JSON of another tool.", file=path, remedy="`wavesmith trace` reads kernel traces.")
        return read_json(path, document)
    return read_csv(path)


def find_rocprofv3(executable: str | None = None) -> str:
    """The path of rocprofv3; raises `ToolMissing` when it is not installed."""
    found = shutil.which(executable or "rocprofv3") or shutil.which("/opt/rocm/bin/rocprofv3")
    if found is None:
        raise ToolMissing("rocprofv3 is not installed; it comes with ROCm 6.2 and later (package rocprofiler-sdk).")
    return found


def run_rocprof(
    argv: Sequence[str],
    passes: Sequence[Pass],
    folder: Path,
    *,
    kernel_regex: str | None = None,
    timeout_s: float = 300.0,
    executable: str | None = None,
    env: Mapping[str, str] | None = None,
) -> ProfilerData:
    """Run a program once for its kernel trace and once per counter pass, each its own process tree within `timeout_s`.

    A pass that hangs, aborts (over capacity, say) or writes nothing costs its own counters only; the note says
    which and why. Raises `ToolMissing` without rocprofv3. Outputs stay below `folder`.
    """
    tool = find_rocprofv3(executable)
    folder.mkdir(parents=True, exist_ok=True)
    jobs: list[tuple[str, list[str]]] = [("trace", ["--kernel-trace"])]
    for n, wanted in enumerate(passes):
        plan = folder / f"pass{n}.yaml"
        plan.write_text(wanted.input_file(kernel_regex), encoding="utf-8")
        jobs.append((f"pass{n}", ["-i", str(plan)]))
    parts: list[ProfilerData] = []
    for name, options in jobs:
        out = folder / name
        out.mkdir(exist_ok=True)
        command = [tool, *options, "--output-format", "csv", "-d", str(out), "-o", name, "--", *argv]
        fault = run_tree(command, timeout_s, env)
        try:
            parts.append(read_rocprof(out))
        except InputError:
            fault = fault or "it ended well but wrote nothing: no kernel was dispatched, or none matched"
        if fault:
            parts.append(ProfilerData(notes=(f"{name}: {fault}",)))
    return merge(parts)


def run_tree(command: Sequence[str], timeout_s: float, env: Mapping[str, str] | None = None) -> str | None:
    """Run a command in a process group of its own; None when it exits with 0, else what happened and its last words."""
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, env=env and dict(env)
        )
        try:
            code = process.wait(timeout_s)
            fault = None if code == 0 else f"it ended with {code}"
        except subprocess.TimeoutExpired:
            fault = f"it did not end within {timeout_s:g} s and was stopped"
        _kill_group(process)
        if fault is None:
            return None
        size = log.seek(0, os.SEEK_END)
        log.seek(max(0, size - _TAIL_CHARS))
        words = log.read().decode("utf-8", errors="replace").strip().splitlines()
        return f"{fault}: {words[-1]}" if words else fault


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    """End what is left of the group, politely first where the leader still lives."""
    for sig, grace_s in ((signal.SIGTERM, 2.0), (signal.SIGKILL, 10.0)):
        try:
            os.killpg(process.pid, sig)
        except ProcessLookupError:
            break
        deadline = time.monotonic() + grace_s
        while process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
    process.wait()
