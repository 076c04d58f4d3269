"""Child side: one run's recorders put together."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from sandbox import child_cuda, child_forms, child_hooks, child_torch
from sandbox.child_checks import CheckRecorder
from sandbox.child_driver import StandInDriver, run_once
from sandbox.child_entries import EntryTracker
from sandbox.child_executors import Stopwatch, executor
from sandbox.child_launches import LaunchRecorder
from sandbox.child_modules import execute, guard, load_module, module_name
from sandbox.child_random import redraw_
from sandbox.child_values import Encoder, SnapshotStore
from sandbox.compile_cache import CompileCache
from sandbox.frames import FrameWriter
from sandbox.target import Target, load_target

if TYPE_CHECKING:
    from sandbox.harness import Job


_OWN_VARIABLES = ("PYTHON", "TRITON_", "CUDA_", "NVIDIA_", "HIP_", "HSA_", "ROCR_", "LD_", "WAVESMITH_")
_MAX_VARIABLE = 4096
"""Characters of a variable that is kept."""


@dataclass(slots=True)
class Session:
    """The state of a capture or replay in the child."""

    job: Job
    channel: FrameWriter
    store: SnapshotStore
    encoder: Encoder
    tracker: EntryTracker
    recorder: LaunchRecorder
    mode: child_torch.DeviceMode | None
    files: dict[str, str]
    notes: set[str] = field(default_factory=set)

    @classmethod
    def prepare(cls, job: Job, channel: FrameWriter, deadline: float, files: dict[str, str] | None = None) -> Session:
        """Put every hook in place. `deadline` ends the execution of launches; `files` are the user's."""
        targets = tuple(load_target(name) for name in job.targets)
        store = SnapshotStore(channel, job.limits)
        own = {"__main__": "" if job.harness is None else "__main__"}
        if job.kernel:  # a whole program has no file of its own
            own[module_name(job.kernel)] = ""
        encoder = Encoder(store, own)
        files = _user_files(job) if files is None else files
        tracker = EntryTracker(files, encoder, channel)
        cache = CompileCache(Path(job.cache)) if job.cache else None
        runner = executor("auto" if job.second_chance else job.executor)
        recorder = LaunchRecorder(
            targets, encoder, tracker, channel, runner, job.limits, Stopwatch(deadline), cache, files,
            compile=job.compile,
        )  # fmt: skip
        recorder.main = str(job.folder / job.kernel) if job.kernel else None
        session = cls(job, channel, store, encoder, tracker, recorder, None, files)
        session._install(targets[0])
        return session

    @property
    def kernel_path(self) -> Path:
        return self.job.folder / self.job.kernel

    @property
    def gpu(self) -> bool:
        return self.job.executor == "gpu"

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.add(text)
            self.channel.send("note", {"text": text})

    def _install(self, target: Target) -> None:
        self.mode = mode = child_torch.DeviceMode(pretend=not self.gpu)
        if self.gpu:
            self.store.is_host = child_torch.lies_in_host_memory
            child_cuda.shift_seeds(self.job.seed)
        else:
            from triton.runtime.driver import driver

            self.store.is_host = child_torch.is_host
            driver.set_active(StandInDriver(target, run_once))
            child_cuda.install(target, mode, self.note, self.job.seed)
        if self.job.seed:
            torch.manual_seed(0)
        if self.job.distribution not in ("recorded", "normal"):
            generator = torch._C.Generator("cpu")
            generator.manual_seed(self.job.seed)
            mode.redraw = lambda tensor: redraw_(tensor, self.job.distribution, generator)
        child_hooks.install(self.recorder, self.note, self.gpu)
        CheckRecorder(self.tracker, self.encoder, self.channel).install(mode)
        child_torch.install(mode)

    def capture(self) -> None:
        """Run the harness and report how it ended, and what it set in the environment."""
        before = dict(os.environ)
        self.tracker.start()
        calls = (self.job.options or {}).get("calls")
        if calls:
            from sandbox.child_calls import run_calls

            outcome = run_calls(self.job.folder, self.job.kernel, calls)
        else:
            outcome = child_forms.run_harness(
                self.job.folder, self.job.kernel, self.job.harness, lambda: self.recorder.count
            )
        with self.tracker.paused():
            if self.job.harness is not None:
                self.channel.send("environment", _set_since(before))
            ending = child_forms.describe(outcome.error, self.all_files(), self.tracker.tainted)
            if self.recorder.count:
                self.channel.send("outcome", {"form": outcome.form, **ending})
                return
        self._static(outcome, ending)

    def _static(self, outcome: child_forms.FormOutcome, ending: dict[str, Any]) -> None:
        """Nothing was launched: compile what the file has, unexecuted, and say which harness to add."""
        from sandbox import child_static, child_stubs

        module = outcome.module
        if isinstance(outcome.error, ImportError):
            child_stubs.install(self.note)
            module = load_module(self.kernel_path, self.kernel_path.stem, child_stubs.PACKAGE)
            again = guard(lambda: execute(module, self.kernel_path))
            if again is not None:
                self.note(
                    f"with placeholders for missing packages the file still fails: {type(again).__name__}: {again}"
                )
        elif self.job.harness is not None:
            module = sys.modules.get(module_name(self.job.kernel), module)
        result = child_static.run_static(module, self.recorder)
        if outcome.error is None:
            ending = {"status": "none"}
        with self.tracker.paused():
            self.channel.send("static", {"harness": result.harness, "called": result.called, "reasons": result.reasons})
            self.channel.send("outcome", {"form": "static", **ending})

    def all_files(self) -> dict[str, str]:
        """The user's files, the harness included."""
        files = dict(self.files)
        if self.job.harness:
            files[str(self.job.folder / self.job.harness)] = self.job.harness
        return files


def _set_since(before: Mapping[str, str]) -> dict[str, str]:
    """Variables set since, but for those that say how Python, Triton and the devices work: these are the sandbox's."""
    now = {k: v for k, v in os.environ.items() if before.get(k) != v and not k.startswith(_OWN_VARIABLES)}
    return {k: v for k, v in now.items() if len(v) <= _MAX_VARIABLE}


def _user_files(job: Job) -> dict[str, str]:
    """Files whose functions can be entries: all the user gave but the harness."""
    found: dict[str, Any] = {str(p): str(p.relative_to(job.folder)) for p in job.folder.rglob("*.py")}
    if job.harness:
        found.pop(str(job.folder / job.harness), None)
    return found
