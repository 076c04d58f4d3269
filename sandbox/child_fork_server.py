"""Child side of `sandbox.fork_server`: import what takes seconds once, then fork a process for every request.

Stands alone: of the package it imports what it is told to only. No code of a user ever runs in the server itself, and
what it forks has none of its descriptors.
"""

from __future__ import annotations

import ctypes
import fcntl
import gc
import importlib
import json
import os
import random
import selectors
import signal
import socket
import sys
import traceback
import types
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_MAX_REQUEST_BYTES = 1 << 18
_MAX_DESCRIPTORS = 16
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36


def main() -> None:
    """Arguments: the descriptor to talk over, a folder for `sys.path` (may be empty), modules to import."""
    number, root, *modules = sys.argv[1:]
    control = socket.socket(fileno=int(number))
    if root:
        sys.path.append(root)
    gc.disable()
    for name in modules:
        importlib.import_module(name)
    gc.freeze()  # as `sandbox.harness.kept_imports` does: what was imported lives as long as the process
    alone = len(list(Path("/proc/self/task").iterdir())) == 1  # a thread would be missing in the forked process
    control.send(json.dumps({"ready": alone}).encode())
    request = serve(control) if alone else None
    os._exit(0 if request is None else run(request))


def serve(control: socket.socket) -> dict[str, Any] | None:
    """Answer requests until the other side is gone (None). In a forked process: the request it was forked for."""
    woken, wake = os.pipe()
    for end in (woken, wake):
        os.set_blocking(end, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    with selectors.DefaultSelector() as selector:
        selector.register(control, selectors.EVENT_READ)
        selector.register(woken, selectors.EVENT_READ)
        while True:
            ready = {key.fileobj for key, _ in selector.select()}
            if woken in ready:
                os.read(woken, 4096)
            for pid, code in _ended():
                control.send(json.dumps({"ended": pid, "code": code}).encode())
            if control not in ready:
                continue
            data, descriptors, _, _ = socket.recv_fds(control, _MAX_REQUEST_BYTES, _MAX_DESCRIPTORS)
            if not data:
                return None
            started, begun = os.pipe()
            pid = os.fork()
            if pid == 0:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                selector.close()
                control.close()
                request: dict[str, Any] = json.loads(data)
                _become(request, descriptors, begun)
                for own in (woken, wake, started):
                    os.close(own)
                return request
            os.close(begun)
            os.read(started, 1)
            for descriptor in (started, *descriptors):
                os.close(descriptor)
            control.send(json.dumps({"started": pid}).encode())


def _ended() -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return found
        if pid == 0:
            return found
        found.append((pid, os.waitstatus_to_exitcode(status)))


def _become(request: dict[str, Any], descriptors: Sequence[int], begun: int) -> None:
    """A session, folder, environment and descriptors of its own; ends with the server, and keeps its daemons."""
    os.setsid()
    prctl = ctypes.CDLL(None).prctl
    prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    os.close(begun)
    targets = [int(n) for n in request["descriptors"]]
    floor = max([2, begun, *targets, *descriptors]) + 1
    moved = [fcntl.fcntl(d, fcntl.F_DUPFD_CLOEXEC, floor) for d in descriptors]
    for descriptor in descriptors:
        os.close(descriptor)
    request["moved"] = list(zip(moved, targets, strict=True))
    if request["folder"] is not None:
        os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])


def run(request: dict[str, Any]) -> int:
    """What `python -c CODE ARGUMENTS` would do, in a `__main__` of its own; the exit status."""
    for source, target in request["moved"]:
        os.dup2(source, target)
        os.close(source)
    random.seed()
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed()
    gc.enable()
    sys.argv = ["-c", *request["arguments"]]
    sys.modules["__main__"] = program = types.ModuleType("__main__")
    try:
        exec(compile(request["code"], "<string>", "exec"), program.__dict__)
        return 0
    except SystemExit as e:
        return e.code if isinstance(e.code, int) else int(e.code is not None)
    except BaseException:  # noqa: BLE001 - the top of a process
        traceback.print_exc()
        return 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


if __name__ == "__main__":
    main()
