"""Run a kernel file once in a confined child and record what it did: `capture`.

The file runs unmodified. Every Triton launch is recorded first, then compiled for the target, then executed by the best
executor at hand; see `sandbox.child_launches`. What comes back is a workload that replays standalone, by
`sandbox.replay`.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from sandbox import device_lock, triton_cache
from sandbox.assembly import Assembly, harness_statements, stored_with
from sandbox.compile_cache import cache_root
from sandbox.emulator import native
from sandbox.errors import InputError, SandboxError, ToolMissing, WavesmithError
from sandbox.fork_server import LIBRARIES, PythonProgram
from sandbox.frames import FrameReader
from sandbox.isolation import Confinement, Ended, Limits, run_isolated
from sandbox.kernel import Kernel, Language
from sandbox.target import Target, Vendor
from sandbox.workload import EntryCall, HarnessOutcome, Launch, StoredWorkload, Workload
from sandbox.workload_file import load_workload_file

_HARNESS = PythonProgram(
    "from sandbox.harness import main; main()",
    modules=(*LIBRARIES, "sandbox.harness", "sandbox.child_session", "sandbox.child_trials", "sandbox.child_replay"),
    root=str(Path(__file__).resolve().parent.parent),
)


@dataclass(frozen=True, slots=True)
class Capture:
    """A recorded run, its bytes, and how the child process ended."""

    stored: StoredWorkload
    ended: Ended
    notes: tuple[str, ...] = ()
    suggested_harness: str | None = None
    """For a file without one: the smallest harness to add at its end, as text."""
    left_out: tuple[str, ...] = ()
    """Launches of the harness that the file has nothing to do with, a sentence for each kernel; no part of it."""

    @property
    def workload(self) -> Workload:
        return self.stored.workload

    @property
    def outcome(self) -> HarnessOutcome:
        return self.workload.outcome

    @property
    def launches(self) -> tuple[Launch, ...]:
        return self.workload.launches

    @property
    def entries(self) -> tuple[EntryCall, ...]:
        return self.workload.entries


@dataclass(frozen=True, slots=True)
class Variant:
    """How a harness is run differently from how it is written: other seeds, values, sizes."""

    seed: int = 0
    """Added to every seed the harness sets; 0 leaves it as written."""
    distribution: str = "recorded"
    """What the random factories give; see `sandbox.child_random.draw`."""
    scale: str | None = None
    """Name of a change of sizes; see `sandbox.rescale`."""


def capture(
    kernel: Kernel,
    target: Target,
    *,
    harness: Kernel | None = None,
    workload: Path | None = None,
    executor: str = "auto",
    limits: Limits | None = None,
    variant: Variant | None = None,
    compile: bool = True,
    also: Sequence[Target] = (),
) -> Capture:
    """Run the file's harness (or `harness`, which imports it) and record it for `target`.

    `workload` is a `workload.yaml` that describes the calls instead (`sandbox.workload_file`).
    `also` are further targets to compile for. Raises `InputError` for a file that is no Triton file, `SandboxError`
    when the child could not run at all; everything the user's code does wrong is in the result.
    """
    if kernel.language is not Language.TRITON:
        raise InputError("only Triton files can be captured.", file=kernel.filename, remedy="Use `wavesmith port`.")
    limits = limits or Limits()
    variant = variant or Variant()
    job = {
        "mode": "capture",
        "kernel": kernel.filename,
        "harness": harness.filename if harness is not None else None,
        "targets": [t.board.name for t in (target, *also)],
        "executor": choose_executor(executor),
        "second_chance": second_chance(executor, target),
        "seed": variant.seed,
        "distribution": variant.distribution,
        "compile": compile,
        "options": {"calls": _calls(workload)} if workload is not None else None,
    }
    assembly, ended, failure = run_child(job, kernel, harness, limits)
    assembly.main_file = kernel.filename
    left_out = assembly.keep_own(kernel.filename) if harness is not None else ()
    launches, entries, numbers = assembly.finish()
    outcome = assembly.harness_outcome(numbers, failure)
    source = kernel.source if harness is None else ""
    recorded = Workload(
        filename=kernel.filename,
        kernel_digest=kernel.digest,
        target=target.arch,
        board=target.board.name,
        launches=launches,
        entries=entries,
        storages=tuple(assembly.storages),
        outcome=outcome,
        versions=assembly.versions,
        skip_statements=harness_statements(source, [d.get("module_line") for d in assembly.launches.values()]),
        harness_filename=harness.filename if harness is not None else None,
        seed=variant.seed,
        distribution=variant.distribution,
        scale=variant.scale,
        environment={str(k): str(v) for k, v in assembly.extra.get("environment", {}).items()},
        notes=tuple(dict.fromkeys((*assembly.notes, *left_out))),
    )
    suggestion = assembly.extra.get("static", {}).get("harness")
    stored = stored_with(recorded, assembly)
    return Capture(stored, ended, recorded.notes, str(suggestion) if suggestion else None, left_out)


def _calls(path: Path) -> list[dict[str, Any]]:
    return [call.model_dump(mode="json") for call in load_workload_file(path).calls]


def choose_executor(name: str) -> str:
    """`auto` is the machine's GPU where torch could use one, else the interpreter."""
    if name not in ("auto", "gpu", "interpreter", "emulator", "none"):
        raise InputError(f"{name!r} is no executor.", remedy="Choose gpu, interpreter, emulator, none or auto.")
    if name != "auto":
        return name
    return "gpu" if has_gpu() else "interpreter"


def second_chance(executor: str, target: Target) -> bool:
    """Whether the emulator takes launches that the interpreter gives up on: where its core is built already."""
    if choose_executor(executor) != "interpreter" or executor != "auto" or not target.is_amd:
        return False
    return native.is_built()


def has_gpu() -> bool:
    """Whether the machine shows an NVIDIA or AMD compute device to this user."""
    return gpu_vendor() is not None


def gpu_vendor() -> Vendor | None:
    """Whose compute device the machine shows to this user; AMD's where it shows both."""
    if Path("/dev/kfd").exists():
        return "amd"
    return "nvidia" if Path("/dev/nvidia0").exists() else None


def run_child(
    job: Mapping[str, Any],
    kernel: Kernel,
    harness: Kernel | None,
    limits: Limits,
    *,
    files: Mapping[str, bytes] | None = None,
    tensors: int | None = None,
) -> tuple[Assembly, Ended, str | None]:
    """One child run: what it said, how it ended, and in words why it did not come to its end (None when it did).

    `files` are written beside the job, and `tensors` is a descriptor of `tensor_file.sealed` for it to map.
    """
    assembly = Assembly()
    reader = FrameReader(assembly.on_frame, limits.result_bytes)
    with tempfile.TemporaryDirectory(prefix="wavesmith-") as name:
        scratch = Path(name)
        source, work = scratch / "source", scratch / "work"
        source.mkdir()
        work.mkdir()
        if harness is not None:
            harness.write_to(source)
        kernel.write_to(source)  # last: a harness that lies beside the kernel brings the unedited file along
        for path, data in (files or {}).items():
            (scratch / path).write_bytes(data)
        cache = cache_root() / "compile" / kernel.digest[:32]
        cache.mkdir(parents=True, exist_ok=True)
        full = {**job, "folder": str(source), "limits": asdict(limits), "cache": str(cache)}
        if tensors is not None:
            full["options"] = {**full["options"], "tensors": tensors}
        readable = [scratch]
        if job["executor"] == "emulator" or job.get("second_chance"):
            # Built here once: inside the child it would be built anew for every run.
            native.library()
            readable.append(cache_root() / "emulator")
            full["cache_root"] = str(cache_root())
        program = replace(_HARNESS, arguments=("--job", str(scratch / "job.json")))
        gpu = job["executor"] == "gpu"
        compiled = triton_cache.folder_of(kernel) if gpu else None
        confinement = Confinement(tuple(p for p in readable if p.exists()), (cache,), work, gpu, compiled)
        with device_lock.offered() if confinement.gpu else nullcontext(()) as locks:
            (scratch / "job.json").write_text(json.dumps({**full, "device_lock": locks}))
            fds = (*locks, *(() if tensors is None else (tensors,)))
            ended = run_isolated(program, confinement=confinement, limits=limits, on_result=reader.feed, pass_fds=fds)
    if not assembly.versions and reader.broken is None:
        raise _never_started(ended)
    return assembly, ended, failure_of(assembly, reader, ended, limits)


def _never_started(ended: Ended) -> WavesmithError:
    """The child ended before it greeted, so before any of the user's code: a fault of the machine, not a result."""
    lines = ended.stderr.strip().splitlines()
    last = lines[-1] if lines else f"it ended by {ended.ending} with status {ended.code} and printed nothing"
    for module in ("torch", "triton"):
        if f"No module named '{module}'" in last:
            return ToolMissing(
                f"{module} is not installed for {sys.executable}. On an AMD machine install its ROCm build, elsewhere"
                " `pip install 'wavesmith[triton]'`."
            )
    return SandboxError(f"the child process could not start: {last}")


def failure_of(assembly: Assembly, reader: FrameReader, ended: Ended, limits: Limits) -> str | None:
    """Why a child did not come to its end, in one sentence; None when it did."""
    if reader.broken is not None:
        return f"the result channel was misused: {reader.broken}"
    if assembly.complete:
        return None
    match ended.ending:
        case "timeout":
            return f"the run did not end within {limits.wall_s:g} s"
        case "memory":
            return f"the run touched more than {limits.memory_bytes // 2**20} MiB of memory"
        case "output":
            return f"the run printed more than {limits.output_bytes // 2**20} MiB"
        case "result":
            return f"the run recorded more than {limits.result_bytes // 2**20} MiB"
        case "signal":
            return f"the process was ended by signal {ended.signal}"
    last = ended.stderr.strip().splitlines()
    return f"the process ended with status {ended.code}: {last[-1] if last else 'it printed nothing'}"
