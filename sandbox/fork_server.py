"""Processes that have torch and Triton imported from the start: forked from a server that did it once.

Importing them takes two to three seconds of a core, and a search starts dozens of processes. The server is a child of
ours with an environment that we choose; it imports, runs no code of any user, and forks. What it forks is as far apart
from us and from its sisters as a process that was started by itself: a session, environment, folder and descriptors of
its own. It needs no more trust and gives no more protection; under bubblewrap every process is started anew.

Where the server cannot be had (torch is missing, an import started threads), `fork` gives None, and the caller starts
its process the long way. `WAVESMITH_FORK=0` asks for that.
"""

from __future__ import annotations

import atexit
import errno
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

_START_TIMEOUT_S = 120.0
_FORK_TIMEOUT_S = 60.0
_MAX_MESSAGE_BYTES = 4096
LIBRARIES = ("torch", "triton", "triton.language")


@dataclass(frozen=True, slots=True)
class PythonProgram:
    """`python -c code arguments`, which imports `modules`. `root`: a folder added to its `sys.path`."""

    code: str
    arguments: tuple[str, ...] = ()
    modules: tuple[str, ...] = LIBRARIES
    root: str = ""

    def command(self) -> list[str]:
        """To start it the long way: without the current folder and the user's own packages on its path."""
        path = f"import sys; sys.path.append({self.root!r}); " if self.root else ""
        return [sys.executable, "-P", "-s", "-c", path + self.code, *self.arguments]


@dataclass(slots=True)
class ForkedProcess:
    """As much of `subprocess.Popen` as its users need; `stdout` and `stderr` where the caller has pipes for them."""

    pid: int
    server: _Server
    stdout: IO[bytes] | None = None
    stderr: IO[bytes] | None = None
    returncode: int | None = None

    def poll(self) -> int | None:
        """The exit status, negative for a signal; None while it runs."""
        if self.returncode is None:
            self.returncode = self.server.status(self.pid)
        return self.returncode

    def wait(self) -> int:
        """Its exit status, when it has one."""
        while (code := self.poll()) is None:
            time.sleep(0.002)
        return code


Process = subprocess.Popen[bytes] | ForkedProcess


def fork(
    program: PythonProgram,
    *,
    environment: Mapping[str, str],
    libraries: Mapping[str, str],
    folder: Path | None,
    descriptors: Mapping[int, int],
) -> ForkedProcess | None:
    """Start `program` with `environment` in `folder`; descriptor n of it is our descriptor `descriptors[n]`.

    `libraries` is the environment in which the modules are imported; standard streams that are not among the
    descriptors lead nowhere. None where no server can be had.
    """
    if os.environ.get("WAVESMITH_FORK", "") == "0":
        return None
    request = {
        "code": program.code,
        "arguments": program.arguments,
        "environment": dict(environment),
        "folder": str(folder) if folder is not None else None,
        "descriptors": list(descriptors),
    }
    for _ in range(2):  # the server may have ended meanwhile
        server = _server_for((sys.executable, program.modules, program.root, tuple(sorted(libraries.items()))))
        pid = server.fork(request, list(descriptors.values())) if server is not None else None
        if server is not None and pid is not None:
            return ForkedProcess(pid, server)
    return None


_Preparation = tuple[str, tuple[str, ...], str, tuple[tuple[str, str], ...]]
"""What a server has done before it forks: the interpreter, the modules, the folder on its path, the environment they
were loaded in."""


@dataclass(slots=True)
class _Server:
    """One server process, and what it said."""

    process: subprocess.Popen[bytes]
    control: socket.socket
    owner: int = field(default_factory=os.getpid)
    lock: threading.Lock = field(default_factory=threading.Lock)
    codes: dict[int, int] = field(default_factory=dict)
    alive: bool = True

    @classmethod
    def start(cls, preparation: _Preparation) -> _Server:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            child = Path(__file__).with_name("child_fork_server.py")
            python, modules, root, environment = preparation
            process = subprocess.Popen(
                [python, "-P", "-s", str(child), str(theirs.fileno()), root, *modules],
                env=dict(environment),
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
        return cls(process, ours)

    def is_ready(self) -> bool:
        """Waits until it has imported everything; False where it cannot fork."""
        with self.lock:
            return bool((self._receive(_START_TIMEOUT_S) or {}).get("ready"))

    def fork(self, request: Mapping[str, Any], descriptors: Sequence[int]) -> int | None:
        with self.lock:
            try:
                self.control.settimeout(_FORK_TIMEOUT_S)
                socket.send_fds(self.control, [json.dumps(request).encode()], descriptors)
            except OSError as e:
                self.alive = e.errno == errno.EMSGSIZE  # a request that is too large is no fault of the server
                return None
            deadline = time.monotonic() + _FORK_TIMEOUT_S
            while (said := self._receive(deadline - time.monotonic())) is not None:
                if "started" in said:
                    return int(said["started"])
                self._note(said)
            self.close()
            return None

    def status(self, pid: int) -> int | None:
        """Exit status of a process it forked, once; whatever ran when the server ended was killed with it."""
        with self.lock:
            while self.alive and pid not in self.codes and (said := self._receive(0.0)) is not None:
                self._note(said)
            return self.codes.pop(pid, None if self.alive else -signal.SIGKILL)

    def _note(self, said: Mapping[str, Any]) -> None:
        if "ended" in said:
            self.codes[int(said["ended"])] = int(said["code"])

    def _receive(self, timeout_s: float) -> dict[str, Any] | None:
        """The next message; None where none came in time or will ever come."""
        self.control.settimeout(max(timeout_s, 0.0))
        try:
            data = self.control.recv(_MAX_MESSAGE_BYTES)
        except (BlockingIOError, TimeoutError):
            return None
        except OSError:
            data = b""
        if not data:
            self.alive = False
            return None
        said: dict[str, Any] = json.loads(data)
        return said

    def close(self) -> None:
        """End it, and what it forked."""
        self.alive = False
        self.control.close()
        if self.owner == os.getpid():
            self.process.kill()
            self.process.wait()


_servers: dict[_Preparation, _Server | None] = {}
_mutex = threading.Lock()


def _server_for(preparation: _Preparation) -> _Server | None:
    """The server of this process for such processes, started at its first use; None where it was seen not to work."""
    with _mutex:
        known = _servers.get(preparation)
        if known is not None and known.alive and known.owner == os.getpid():
            return known
        if preparation in _servers and known is None:
            return None
        server = _Server.start(preparation)
        if server.is_ready():
            _servers[preparation] = server
            return server
        server.close()
        _servers[preparation] = None
        return None


@atexit.register
def _close_all() -> None:
    for server in _servers.values():
        if server is not None and server.owner == os.getpid():
            server.close()
