"""Start a child process that runs code nobody vouches for, and bring back what it says on one private pipe.

Two levels. `bubblewrap`: own user, process, network, IPC and host-name spaces, an allow-list of read-only folders, no
capabilities. `process`: own process group, limits and an empty environment only, where bubblewrap is missing or refused
by the machine; callers report which one was used. Facts behind the choices: bubblewrap as root keeps its capabilities
unless told otherwise; `--clearenv` alone leaves the spawner's environment readable at /proc/1/environ, so the spawner's
child gets an empty one; exit status 1 is ambiguous, so the status pipe decides whether the program ran at all. In
`process` a program that imports torch is forked from `sandbox.fork_server`.
"""

from __future__ import annotations

import json
import os
import selectors
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Literal

from sandbox.device_lock import visible_devices
from sandbox.errors import SandboxError
from sandbox.fork_server import ForkedProcess, Process, PythonProgram, fork
from sandbox.process_tree import descendants, descendants_among_all, parent_of, private_bytes, session_of

Level = Literal["bubblewrap", "process"]
Ending = Literal["exit", "signal", "timeout", "memory", "output", "result"]

_MIB = 1024 * 1024
_CHUNK_BYTES = 1 * _MIB
_TICK_S = 0.25
_DRAIN_S = 5.0
_SYSTEM_FOLDERS = ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/opt/rocm", "/etc/ld.so.cache", "/etc/alternatives")
_GPU_NODES = (
    "/dev/kfd",
    "/dev/dri",
    "/dev/nvidiactl",
    "/dev/nvidia-uvm",
    "/dev/nvidia-uvm-tools",
    "/dev/nvidia-modeset",
)


@dataclass(frozen=True, slots=True)
class Limits:
    """What one child run may use. Times in seconds of wall clock, sizes in bytes."""

    wall_s: float = 600.0
    launch_s: float = 20.0
    """Execution budget of one kernel launch; over it the launch's outputs are unknown and the run goes on."""
    compile_s: float = 180.0
    memory_bytes: int = 16 * 1024 * _MIB
    """Memory of the child's process tree that is really touched."""
    result_bytes: int = 8 * 1024 * _MIB
    output_bytes: int = 64 * _MIB
    """Standard output and error, together; only their tails are kept."""
    tail_bytes: int = 64 * 1024
    file_bytes: int = 4 * 1024 * _MIB
    open_files: int = 1024
    storage_bytes: int = 1024 * _MIB
    """A tensor storage with more touched bytes than this is recorded without its contents."""
    stored_bytes: int = 4 * 1024 * _MIB
    """All tensor contents of one run together."""
    max_launches: int = 512
    """Launches beyond it still run, but are not recorded."""


@dataclass(frozen=True, slots=True)
class Confinement:
    """What the child may see. `read_only` and `writable` appear at their own paths; everything else is absent."""

    read_only: tuple[Path, ...] = ()
    writable: tuple[Path, ...] = ()
    work: Path | None = None
    """Current folder of the child in `process` mode; `bubblewrap` uses an empty in-memory folder instead."""
    gpu: bool = False
    triton_cache: Path | None = None
    """Writable, too: where Triton keeps what it compiles. None: in the child's own folder."""
    memory_folder_bytes: int = 4 * 1024 * _MIB
    """Size of each of the two in-memory folders, /tmp and /dev/shm."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How the child ended. `code` for `exit`, `signal` for `signal`; the other endings are kills by us."""

    ending: Ending
    level: Level
    elapsed_s: float
    code: int | None = None
    signal: int | None = None
    stdout: str = ""
    stderr: str = ""


def isolation_level() -> Level:
    """The level that this machine gives. `WAVESMITH_ISOLATION=process` asks for the weaker one."""
    if os.environ.get("WAVESMITH_ISOLATION", "") == "process":
        return "process"
    return "bubblewrap" if _bubblewrap_works() else "process"


@cache
def _bubblewrap_works() -> bool:
    if shutil.which("bwrap") is None:
        return False
    probe = [*_bubblewrap(Confinement(), None), "--", sys.executable, "-S", "-c", "print(6 * 7)"]
    try:
        done = subprocess.run(probe, env={}, capture_output=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0 and done.stdout.strip() == b"42"


def run_isolated(
    command: Sequence[str] | PythonProgram,
    *,
    confinement: Confinement,
    limits: Limits,
    on_result: Callable[[bytes], None],
    result_option: str = "--result-fd",
    pass_fds: tuple[int, ...] = (),
) -> Ended:
    """Run `command` to its end or its limits. Bytes it writes to descriptor N, `result_option N`, go to `on_result`.

    `pass_fds` are open in the child under their own numbers.

    Blocks the calling thread, which must outlive the child (bubblewrap dies with the *thread* that started it). Raises
    `SandboxError` when the child could not be started at all.
    """
    level = isolation_level()
    read_fd, write_fd = os.pipe()
    status_read, status_write = os.pipe()
    try:
        # bubblewrap's alone: a daemon that gets away would keep the pipe open, and us waiting for its end.
        told = status_write if level == "bubblewrap" else None
        process = _spawn(_with(command, result_option, str(write_fd)), confinement, (write_fd, *pass_fds), told)
    except BaseException:
        for fd in (read_fd, status_read):
            os.close(fd)
        raise
    finally:
        os.close(write_fd)
        os.close(status_write)
    with os.fdopen(read_fd, "rb", buffering=0) as result, os.fdopen(status_read, "rb") as status:
        pump = _Pump(process, result.fileno(), limits, on_result)
        try:
            pump.run()
        finally:
            pump.kill()
            process.wait()
        pump.drain()
        _close(process)
        return _ended(process, pump, level, status.read())


def _with(command: Sequence[str] | PythonProgram, *words: str) -> Sequence[str] | PythonProgram:
    if isinstance(command, PythonProgram):
        return replace(command, arguments=(*command.arguments, *words))
    return [*command, *words]


def _spawn(
    command: Sequence[str] | PythonProgram, confinement: Confinement, fds: tuple[int, ...], status: int | None
) -> Process:
    """Under bubblewrap where there is a descriptor for its `status`."""
    env: dict[str, str] = {} if status is not None else child_environment(confinement.work, confinement)
    if isinstance(command, PythonProgram):
        forked = _fork(command, confinement, env, fds) if status is None else None
        if forked is not None:
            return forked
        command = command.command()
    if status is not None:
        command, fds = [*_bubblewrap(confinement, status), "--", *command], (*fds, status)
    try:
        return subprocess.Popen(
            command,
            env=env,
            cwd=confinement.work if status is None else None,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=fds,
            start_new_session=True,
        )
    except OSError as e:
        raise SandboxError(f"the child process could not be started: {e}") from e


def _fork(
    program: PythonProgram, confinement: Confinement, environment: dict[str, str], fds: tuple[int, ...]
) -> ForkedProcess | None:
    """The same from a server that has imported torch, with pipes for what it prints; None where there is none."""
    out_read, out_write = os.pipe()
    err_read, err_write = os.pipe()
    try:
        process = fork(
            program,
            environment=environment,
            libraries=child_environment(None),
            folder=confinement.work,
            descriptors={1: out_write, 2: err_write, **{fd: fd for fd in fds}},
        )
    finally:
        os.close(out_write)
        os.close(err_write)
    if process is None:
        os.close(out_read)
        os.close(err_read)
        return None
    process.stdout, process.stderr = os.fdopen(out_read, "rb"), os.fdopen(err_read, "rb")
    return process


def child_environment(work: Path | None, confinement: Confinement | None = None) -> dict[str, str]:
    """The whole environment of a child: nothing of the caller's own passes, but which GPUs it may use."""
    home = str(work) if work is not None else "/tmp"
    confinement = confinement or Confinement()
    return {
        "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
        "HOME": home,
        "TMPDIR": home,
        "LANG": "C.UTF-8",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",
        "PYTHONUNBUFFERED": "1",
        "TRITON_CACHE_DIR": str(confinement.triton_cache or f"{home}/triton"),
        "OMP_NUM_THREADS": str(max(1, len(os.sched_getaffinity(0)))),
        # numpy multiplies tiles only, in the interpreter: threads cost more than they gain, sevenfold on busy cores.
        "OPENBLAS_NUM_THREADS": "1",
        **(visible_devices() if confinement.gpu else {}),
    }


def _bubblewrap(confinement: Confinement, status_fd: int | None) -> list[str]:
    args = ["bwrap", "--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts"]
    args += ["--unshare-cgroup-try", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    args += ["--uid", "65534", "--gid", "65534", "--hostname", "sandbox", "--clearenv"]
    for name in _SYSTEM_FOLDERS:
        args += _bind_system(Path(name))
    args += ["--proc", "/proc", "--ro-bind", "/proc/sys", "/proc/sys", "--dev", "/dev"]
    for name in ("/dev/shm", "/tmp"):
        args += ["--size", str(confinement.memory_folder_bytes), "--tmpfs", name]
    for path in [*python_folders(), *confinement.read_only]:
        args += ["--ro-bind", str(path), str(path)]
    for path in (*confinement.writable, *([confinement.triton_cache] if confinement.triton_cache else [])):
        args += ["--bind", str(path), str(path)]
    if confinement.gpu:
        nodes = [Path(n) for n in _GPU_NODES] + sorted(Path("/dev").glob("nvidia[0-9]*"))
        args += [a for node in nodes if node.exists() for a in ("--dev-bind", str(node), str(node))]
        args += ["--ro-bind", "/sys", "/sys", "--ro-bind", "/etc", "/etc"]
    args += ["--dir", "/tmp/work", "--chdir", "/tmp/work"]
    for name, value in child_environment(Path("/tmp/work"), confinement).items():
        args += ["--setenv", name, value]
    args += ["--remount-ro", "/"]
    if status_fd is not None:
        args += ["--json-status-fd", str(status_fd)]
    return args


def _bind_system(path: Path) -> list[str]:
    if path.is_symlink():
        return ["--symlink", str(path.readlink()), str(path)]
    return ["--ro-bind", str(path), str(path)] if path.exists() else []


@cache
def python_folders() -> tuple[Path, ...]:
    """Folders the interpreter and its packages live in, outer ones only; of our own tree just the `sandbox` package."""
    package = Path(__file__).resolve().parent
    wanted = [Path(sys.prefix), Path(sys.base_prefix), Path(sys.executable).resolve().parent.parent, package]
    wanted += [Path(p) for p in sys.path if p and Path(p).is_dir() and Path(p).resolve() != package.parent]
    chosen: list[Path] = []
    for path in sorted({p.absolute() for p in wanted}, key=lambda p: len(p.parts)):
        inside_system = any(path.is_relative_to(s) for s in ("/usr", "/lib", "/lib64", "/bin"))
        too_wide = package.is_relative_to(path) and path != package and path not in (Path(sys.prefix),)
        if path.exists() and not inside_system and not too_wide and not any(path.is_relative_to(c) for c in chosen):
            chosen.append(path)
    return tuple(chosen)


@dataclass(slots=True)
class _Pump:
    """Moves the child's three streams while it lives, and watches its limits."""

    process: Process
    result_fd: int
    limits: Limits
    on_result: Callable[[bytes], None]
    tails: dict[str, bytearray] = field(default_factory=lambda: {"stdout": bytearray(), "stderr": bytearray()})
    output_bytes: int = 0
    result_bytes: int = 0
    verdict: Ending | None = None
    started: float = field(default_factory=time.monotonic)
    selector: selectors.DefaultSelector = field(default_factory=selectors.DefaultSelector)
    seen: set[int] = field(default_factory=set)
    peak_bytes: int = 0

    def run(self) -> None:
        assert self.process.stdout is not None and self.process.stderr is not None
        self.selector.register(self.process.stdout.fileno(), selectors.EVENT_READ, "stdout")
        self.selector.register(self.process.stderr.fileno(), selectors.EVENT_READ, "stderr")
        self.selector.register(self.result_fd, selectors.EVENT_READ, "result")
        next_watch = 0.0
        while self.verdict is None and self.process.poll() is None:
            self._move(_TICK_S / 5)
            now = time.monotonic()
            if now - self.started > self.limits.wall_s:
                self.verdict = "timeout"
            elif now >= next_watch:
                next_watch = now + _TICK_S
                self._watch_memory()

    def drain(self) -> None:
        """What is still in the pipes after the tree is dead."""
        deadline = time.monotonic() + _DRAIN_S
        while self.selector.get_map() and time.monotonic() < deadline:
            self._move(0.05)
        self.selector.close()

    def _move(self, timeout_s: float) -> None:
        for key, _ in self.selector.select(timeout_s):
            data = os.read(key.fd, _CHUNK_BYTES)
            if not data:
                self.selector.unregister(key.fd)
            elif key.data == "result":
                self.result_bytes += len(data)
                if self.result_bytes > self.limits.result_bytes:
                    self.verdict = self.verdict or "result"
                else:
                    self.on_result(data)
            else:
                self._keep(key.data, data)

    def _keep(self, stream: str, data: bytes) -> None:
        self.output_bytes += len(data)
        if self.output_bytes > self.limits.output_bytes:
            self.verdict = self.verdict or "output"
        tail = self.tails[stream]
        tail += data
        del tail[: -self.limits.tail_bytes]

    def _watch_memory(self) -> None:
        tree = descendants(self.process.pid)
        self.seen |= tree
        used = sum(private_bytes(pid) for pid in tree)
        self.peak_bytes = max(self.peak_bytes, used)
        if used > self.limits.memory_bytes:
            self.verdict = self.verdict or "memory"

    def kill(self) -> None:
        """End the whole tree: the process group, and whoever left it while we watched."""
        self.seen |= descendants_among_all(self.process.pid)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        for pid in self.seen:
            with suppress(ProcessLookupError, PermissionError):
                if session_of(pid) == self.process.pid or parent_of(pid) in (self.process.pid, *self.seen, 1):
                    os.kill(pid, signal.SIGKILL)


def _close(process: Process) -> None:
    for stream in (process.stdout, process.stderr):
        if stream is not None:
            stream.close()


def _ended(process: Process, pump: _Pump, level: Level, status: bytes) -> Ended:
    elapsed = time.monotonic() - pump.started
    out, err = (bytes(pump.tails[name]).decode(errors="replace") for name in ("stdout", "stderr"))
    if pump.verdict is not None:
        return Ended(pump.verdict, level, elapsed, stdout=out, stderr=err)
    code = process.wait()
    if level == "bubblewrap":
        reported = _exit_code(status)
        if reported is None and code > 0:
            raise SandboxError(f"bubblewrap did not start the child (status {code}): {err[-2000:].strip()}")
        code = reported if reported is not None else code
        if code > 128:
            code = -(code - 128)
    if code < 0:
        return Ended("signal", level, elapsed, signal=-code, stdout=out, stderr=err)
    return Ended("exit", level, elapsed, code=code, stdout=out, stderr=err)


def _exit_code(status: bytes) -> int | None:
    for line in status.splitlines():
        with suppress(ValueError):
            record = json.loads(line)
            if isinstance(record, Mapping) and "exit-code" in record:
                return int(record["exit-code"])
    return None
