"""Child side of `wavesmith capture -- python train.py`: records launches inside a program that is the user's own.

Loaded by a `sitecustomize` at the start of every Python process of the program, so it costs nothing until torch and
Triton are both imported. The first process that launches a kernel claims the result file; others run unrecorded.
Whatever goes wrong in here is one line on standard error: the user's program goes on.
"""

from __future__ import annotations

import atexit
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sandbox.frames import FrameWriter

JOB_VARIABLE = "WAVESMITH_CAPTURE_JOB"
_NEEDED = {"torch", "triton"}


def install() -> None:
    """Called by `sitecustomize`."""
    path = os.environ.get(JOB_VARIABLE)
    if path:
        sys.meta_path.insert(0, _AfterImport(set(_NEEDED), lambda: _begin(Path(path))))


class _AfterImport(importlib.abc.MetaPathFinder):
    """Calls `ready` once when every module of `missing` has been imported."""

    def __init__(self, missing: set[str], ready: Callable[[], None]) -> None:
        self._missing = missing
        self._ready = ready
        self._inside = False

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname not in self._missing or self._inside:
            return None
        self._inside = True
        try:
            spec = importlib.util.find_spec(fullname)
        finally:
            self._inside = False
        if spec is None or spec.loader is None:
            return None
        load = spec.loader.exec_module

        def exec_module(module: types.ModuleType) -> None:
            load(module)
            self._missing.discard(fullname)
            if not self._missing:
                sys.meta_path[:] = [f for f in sys.meta_path if f is not self]
                self._ready()

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def _begin(path: Path) -> None:
    try:
        _prepare(path)
    except Exception as e:  # noqa: BLE001 - the top of our code in somebody else's program
        print(f"wavesmith: this program is not recorded: {type(e).__name__}: {e}", file=sys.stderr)


@dataclass(slots=True)
class ClaimedWriter(FrameWriter):
    """Opens the result file at the first launch; a process that comes second writes nothing."""

    path: Path = Path()
    waiting: list[tuple[str, Mapping[str, Any], bytes]] = field(default_factory=list)
    lost: bool = False

    def send(self, kind: str, data: Mapping[str, Any], *blob: bytes | memoryview) -> None:
        if self.lost or self.getpid() != self.pid:
            return
        if self.fd < 0:
            if kind != "launch":
                self.waiting.append((kind, dict(data), b"".join(blob)))
                return
            self._claim()
        if not self.lost:
            FrameWriter.send(self, kind, data, *blob)

    def _claim(self) -> None:
        try:
            self.fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except OSError:
            self.lost = True
            return
        for kind, data, blob in self.waiting:
            FrameWriter.send(self, kind, data, blob)
        self.waiting.clear()


class ProgramFiles(dict[str, str]):
    """The files that define kernels, as they become known: each JIT function brings its own."""

    def watch(self) -> None:
        from triton.runtime.jit import JITFunction

        made = JITFunction.__init__

        def init(jit: Any, fn: Any, *args: Any, **kwargs: Any) -> None:
            made(jit, fn, *args, **kwargs)
            code = getattr(fn, "__code__", None)
            if code is not None and not str(fn.__module__).startswith("triton."):
                self.setdefault(code.co_filename, code.co_filename)

        JITFunction.__init__ = init


def _prepare(path: Path) -> None:
    import re

    import torch
    import triton

    from sandbox.child_session import Session
    from sandbox.harness import Job
    from sandbox.isolation import Limits

    data = json.loads(path.read_text())
    gpu = torch.cuda.is_available() and data["executor"] in ("auto", "gpu")
    name = "gpu" if gpu else "interpreter" if data["executor"] == "auto" else data["executor"]
    limits = Limits(**data["limits"])
    job = Job("program", Path("/"), "", None, tuple(data["targets"]), name, limits, cache=data["cache"])
    channel = ClaimedWriter(-1, path=Path(data["result"]))
    versions = {"torch": torch.__version__, "triton": triton.__version__, "python": sys.version.split()[0]}
    channel.send("hello", versions)
    files = ProgramFiles()
    files.watch()
    session = Session.prepare(job, channel, float("inf"), files)
    session.recorder.kernel_filter = re.compile(data["kernel"]) if data["kernel"] else None
    session.recorder.per_kernel = int(data["max_launches"])
    session.tracker.start()
    atexit.register(lambda: channel.send("end", {}))
