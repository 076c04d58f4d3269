"""Phase 1, Benchmark & Profile: run the user's own harness once and learn what its kernels are on the target."""

from __future__ import annotations

import importlib.util
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from agent.candidate import Failure, Measurement
from agent.events import Progress
from agent.job import JobRequest
from sandbox.bottleneck import LaunchShape, classify
from sandbox.capture import Capture, capture
from sandbox.compiling import Compiled, CompileError, unpack
from sandbox.errors import InputError
from sandbox.isolation import Limits
from sandbox.kernel import Kernel
from sandbox.profiler.metrics import Profile
from sandbox.profiler.static import static_profile
from sandbox.replay import Replay, replay
from sandbox.target import Target
from sandbox.workload import CompileRecord, Launch, StorageRecord, StoredWorkload, TensorRecord, load_workload
from skills.condition import Value as FactValue
from skills.facts import launch_facts, profile_facts
from skills.source_facts import collect_facts, imported_jit


@dataclass(frozen=True, slots=True)
class Baseline:
    """The user's file as it is: the recorded workload, and what is known about its kernels on the target."""

    measurement: Measurement
    stored: StoredWorkload
    executor: str
    notes: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    suggested_harness: str | None = None
    """For a file without a harness: the smallest one that would let its results be compared."""

    @property
    def launch_count(self) -> int:
        return len(self.stored.workload.launches)


def take_baseline(request: JobRequest, progress: Progress) -> Baseline:
    """Run, record, compile and profile the file as it is. Raises `InputError` when it cannot even be imported."""
    if request.workload is not None and request.workload.is_dir():
        return _from_recorded(request, request.workload, progress)
    progress.step(f"running {request.kernel.filename} once and recording its launches")
    # What does not build for the target has results all the same, which candidates in the emulator are compared with.
    asked = request.options.executor
    taken = _capture(request, request.kernel, "interpreter" if asked == "emulator" else asked)
    _check_usable(request, taken)
    launches = taken.launches
    progress.step(f"{len(launches)} launches recorded, {len(taken.workload.kernels())} kernels")
    return Baseline(
        measurement=measurement_of(request.kernel, _recording(taken), request),
        stored=taken.stored,
        executor=_executor(launches),
        notes=(
            *taken.notes,
            *_unknown_notes(launches),
            *_assumed_configs(launches),
            *_passed_over_notes(launches, request.target),
            *_imported_notes(request.kernel),
            *_elsewhere_notes(request.kernel, launches),
        ),
        versions=dict(taken.workload.versions),
        suggested_harness=taken.suggested_harness,
    )


def _from_recorded(request: JobRequest, folder: Path, progress: Progress) -> Baseline:
    """A workload that was captured before: nothing is run for reference results, only compiled again."""
    stored = load_workload(folder)
    if stored.workload.kernel_digest != request.kernel.digest:
        raise InputError(
            f"it was captured from another version of {request.kernel.filename}.",
            file=folder,
            remedy="Capture the file as it is now.",
        )
    progress.step(f"compiling {len(stored.workload.launches)} recorded launches")
    repeated = replay(stored, request.kernel, request.target, executor="none")
    recording = Recording(repeated.launches, repeated.storages, repeated.compiled, _stopped(repeated))
    launches = stored.workload.launches
    return Baseline(
        measurement=measurement_of(request.kernel, recording, request),
        stored=stored,
        executor=_executor(launches),
        notes=(*stored.workload.notes, *_unknown_notes(launches), *_assumed_configs(launches)),
        versions=dict(stored.workload.versions),
    )


def _capture(request: JobRequest, kernel: Kernel, executor: str) -> Capture:
    return capture(kernel, request.target, harness=request.harness, workload=request.workload, executor=executor)


@dataclass(frozen=True, slots=True)
class Recording:
    """What a capture or a replay says about a kernel file: its launches, their compile results, and what stopped it."""

    launches: Sequence[Launch]
    storages: Sequence[StorageRecord]
    compiled: Mapping[str, Mapping[str, bytes]]
    stopped: Failure | None = None


_NOTHING_KEPT = Limits(storage_bytes=0)
"""For runs of which only the code objects count: contents are neither hashed nor sent."""


def measure(kernel: Kernel, request: JobRequest, baseline: Baseline) -> Measurement:
    """Compile a candidate's launches on the recorded inputs without executing them, and profile what came out."""
    if not baseline.stored.workload.entries:
        taken = _capture(request, kernel, "none")
        return measurement_of(kernel, _recording(taken), request)
    repeated = replay(baseline.stored, kernel, request.target, executor="none", limits=_NOTHING_KEPT)
    recording = Recording(repeated.launches, repeated.storages, repeated.compiled, _stopped(repeated))
    return measurement_of(kernel, recording, request)


def _recording(taken: Capture) -> Recording:
    gone = Failure("import", taken.outcome.exception or "no kernel is left of it", taken.outcome.line)
    return Recording(taken.launches, taken.workload.storages, taken.stored.compiled, None if taken.launches else gone)


def _stopped(repeated: Replay) -> Failure | None:
    """Why a replay made fewer launches than it should have: the import or a host call failed."""
    if repeated.import_error is not None:
        return Failure("import", repeated.import_error, repeated.import_error_line)
    if repeated.failure is not None:
        return Failure("run", repeated.failure)
    for result in repeated.results:
        if result.status in ("raised", "missing") and not result.launches:
            return Failure("host code", result.error or f"the entry function is {result.status}", result.line)
    return None


def measurement_of(kernel: Kernel, recording: Recording, request: JobRequest) -> Measurement:
    """Failures, metrics and facts of a recorded run."""
    target = request.target
    observed: dict[str, list[Mapping[str, FactValue]]] = defaultdict(list)
    profiles: dict[str, Profile] = {}
    bottlenecks: dict[str, dict[str, None]] = defaultdict(dict)
    failures = [recording.stopped] if recording.stopped is not None else []
    unlaunchable: dict[Failure, None] = {}
    passed_over = _passed_over(recording.launches, target)
    for launch in recording.launches:
        options = {name: value.value for name, value in launch.options.items()}
        observed[launch.kernel].append(launch_facts(_arguments(launch, recording), launch.grid, options, target))
        observed[launch.kernel].append(_config_facts(launch))
        unlaunchable.update(dict.fromkeys(_too_wide(launch)))
        for record in launch.compiles:
            if record.arch == target.arch:
                failure = _failure(launch, record, recording)
                failures += [failure] if failure is not None and launch.index not in passed_over else []
                observed[launch.kernel].append(_compile_facts(record))
                profile = _profile(record, recording, target)
                if profile is not None:
                    profiles[launch.kernel] = max(profiles.get(launch.kernel, profile), profile, key=_weight)
                    names = [b.name for b in classify(profile, target, _shape(launch))]
                    bottlenecks[launch.kernel] |= dict.fromkeys(names)
                    worst = {"bottleneck.worst": names[0]} if names else {}
                    observed[launch.kernel] += [profile_facts(profile), {"bottlenecks": tuple(sorted(names)), **worst}]
    return Measurement(
        kernel=kernel,
        facts=collect_facts(kernel, target, observed=observed, allow_approx=request.options.allow_approx),
        failures=tuple(dict.fromkeys(failures)),
        profiles=profiles,
        bottlenecks=tuple(f"{kernel}: {', '.join(names)}" for kernel, names in bottlenecks.items() if names),
        unlaunchable=tuple(unlaunchable),
    )


def _shape(launch: Launch) -> LaunchShape:
    stages = launch.options.get("num_stages")
    x, y, z = launch.grid
    return LaunchShape(programs=x * y * z, num_stages=stages.value if stages and type(stages.value) is int else None)


@dataclass(frozen=True, slots=True)
class _Argument:
    """A recorded argument as `skills.facts` reads it."""

    name: str
    kind: str
    dtype: str | None
    storage_bytes: int | None
    integer: int | None
    whole_elements: int | None


def _passed_over(launches: Sequence[Launch], target: Target) -> frozenset[int]:
    """Launches that only a timing made, of a config that the target cannot launch, where the kernel was launched with
    another afterwards: a tuner of the user's own passes over what is out of resources, as Triton's does."""
    fits = {launch.kernel for launch in launches if not launch.benchmark and not _breaks_a_limit(launch, target)}
    timed = [launch for launch in launches if launch.benchmark and launch.kernel in fits]
    return frozenset(launch.index for launch in timed if _breaks_a_limit(launch, target))


def _breaks_a_limit(launch: Launch, target: Target) -> bool:
    """Whether it compiles for the target, but breaks a limit of a launch there."""
    return any(r.arch == target.arch and r.ok and not r.launches for r in launch.compiles)


def _passed_over_notes(launches: Sequence[Launch], target: Target) -> Iterator[str]:
    found = _passed_over(launches, target)
    for kernel in dict.fromkeys(launch.kernel for launch in launches if launch.index in found):
        timed = [launch for launch in launches if launch.kernel == kernel and launch.index in found]
        reason = next(r.limit for r in timed[0].compiles if r.arch == target.arch)
        many = f"{len(timed)} timed launch{'es' if len(timed) > 1 else ''} of {kernel}"
        yield f"{many} cannot be made on {target.arch}, a tuner passes over them: {reason}"


def _arguments(launch: Launch, recording: Recording) -> Iterator[_Argument]:
    sizes = {s.id: s.nbytes for s in recording.storages}
    for argument in launch.args:
        tensor = argument.value.tensor
        dtype = tensor.dtype if tensor else None
        storage = sizes.get(tensor.storage) if tensor else None
        scalar = argument.value.value
        integer = scalar if type(scalar) is int else None
        whole = _whole_elements(tensor, storage) if tensor and storage is not None else None
        yield _Argument(argument.name, argument.kind, dtype, storage, integer, whole)


def _whole_elements(tensor: TensorRecord, storage_bytes: int) -> int | None:
    """The elements of a tensor that fills its storage; None where something else lies beside or between them."""
    width = re.search(r"(?<=t)\d+$", tensor.dtype)
    bits = int(width[0]) if width is not None else 0
    return tensor.numel if bits and storage_bytes * 8 == tensor.numel * bits else None


def _compile_facts(record: CompileRecord) -> dict[str, FactValue]:
    facts: dict[str, FactValue] = {"compile.status": "ok" if record.launches else "failed"}
    if record.message is not None:
        facts["compile.error"] = record.message
    return facts


def _config_facts(launch: Launch) -> dict[str, FactValue]:
    """Every config of the autotuner with its integers."""
    configs = launch.autotune.configs if launch.autotune is not None else ()
    texts = []
    for config in configs:
        values = {**{n: v.value for n, v in config.kwargs.items()}, **config.options}
        texts.append(",".join(f"{n}={v}" for n, v in values.items() if type(v) is int))
    return {"launch.configs": tuple(sorted(texts))} if texts else {}


def _too_wide(launch: Launch) -> Iterator[Failure]:
    """Configs of the autotuner that were compiled, and whose workgroup has more threads than the target launches."""
    for config in launch.autotune.configs if launch.autotune is not None else ():
        if config.fits is False and config.limit_kind == "threads_per_workgroup":
            values = {**{n: v.value for n, v in config.kwargs.items()}, "num_warps": config.options.get("num_warps")}
            named = ", ".join(f"{n}={v}" for n, v in values.items())
            yield Failure(launch.kernel, f"config {named}: {config.reason}", launch.line, limit_kind=config.limit_kind)


def _profile(record: CompileRecord, recording: Recording, target: Target) -> Profile | None:
    blobs = recording.compiled.get(record.blob)
    compiled = unpack(blobs) if record.ok and blobs is not None else None
    return static_profile(compiled, target) if isinstance(compiled, Compiled) else None


def _failure(launch: Launch, record: CompileRecord, recording: Recording) -> Failure | None:
    """Why a launch does not build or may not be launched; None when it may."""
    if record.launches:
        return None
    if record.ok:
        return Failure(launch.kernel, record.limit or "", launch.call_line, limit_kind=record.limit_kind)
    blobs = recording.compiled.get(record.blob)
    error = unpack(blobs) if blobs is not None else None
    source_line = error.source_line if isinstance(error, CompileError) else None
    return Failure(launch.kernel, record.message or record.error_kind or "", record.line, source_line)


def _weight(profile: Profile) -> tuple[int, int]:
    return profile.count("vgpr_count"), profile.count("lds_bytes")


def _check_usable(request: JobRequest, taken: Capture) -> None:
    """A harness that fails before its first launch shows nothing; that is the caller's to mend."""
    outcome = taken.outcome
    if outcome.status == "failed" and (outcome.form == "static" or not taken.launches):
        raise InputError(
            f"it failed before its first kernel launch: {(outcome.exception or '').rstrip('.')}.",
            file=outcome.file or request.kernel.filename,
            line=outcome.line,
            remedy=_remedy(outcome.exception or ""),
        )
    if not taken.launches:
        name = request.kernel.filename
        harness = request.harness.filename if request.harness is not None else None
        if outcome.exception is not None:
            what, remedy = f"it launched no kernel: {outcome.exception}", "Make it reach a launch of the kernel"
        elif taken.left_out:
            what = f"it launches kernels of other files only, and none through {name}"
            remedy = f"Call a function or a kernel of {name} in the harness"
        else:
            what = "no Triton kernel was launched, and none is defined at its module level"
            remedy = "Give the file that holds the @triton.jit kernels"
        raise InputError(f"{what}.", file=harness if taken.left_out else name, remedy=f"{remedy}.")


def _remedy(exception: str) -> str:
    """What to do about a file that fails before it launches anything."""
    if "attempted relative import" in exception:
        return "Give the file where it lies in its package, a folder with __init__.py, with a --harness that calls it."
    missing = re.search(r"No module named '([^']+)'", exception)
    if missing is not None:
        top, _, below = missing[1].partition(".")
        if below and importlib.util.find_spec(top) is not None:
            return f"The installed {top} has no such module: change the import, or install a {top} that has it."
        return f"Install {top} for Wavesmith's Python, or give the file in a checkout of {top} with a --harness."
    return "Make it run where it was written for, or give a file that calls the kernel with --harness."


def _executor(launches: Sequence[Launch]) -> str:
    ran = {launch.execution.by for launch in launches if launch.execution.status == "executed"}
    return ", ".join(sorted(ran)) or "none"


def _unknown_notes(launches: Sequence[Launch]) -> Iterator[str]:
    """One sentence per reason why results of launches are unknown."""
    reasons: dict[tuple[str, str], int] = {}
    for launch in launches:
        if launch.execution.status == "unknown":
            key = (launch.kernel, launch.execution.reason or "not executed")
            reasons[key] = reasons.get(key, 0) + 1
    for (kernel, reason), count in reasons.items():
        yield f"results of {count} of the launches of {kernel} are unknown: {reason}"


def _assumed_configs(launches: Sequence[Launch]) -> Iterator[str]:
    """Which config of an autotuned kernel stands for the baseline."""
    seen: set[str] = set()
    for launch in launches:
        if launch.autotune is not None and launch.kernel not in seen:
            seen.add(launch.kernel)
            tuned = launch.autotune
            config = tuned.configs[tuned.index]
            values = {**{n: v.value for n, v in config.kwargs.items()}, **config.options}
            words = ", ".join(f"{n}={v}" for n, v in values.items() if v is not None)
            yield f"{launch.kernel} is autotuned over {len(tuned.configs)} configs; assumed as baseline: {words}"


def _elsewhere_notes(kernel: Kernel, launches: Sequence[Launch]) -> Iterator[str]:
    """Kernels that the file launches and that lie in another one, perhaps one that was written at run time."""
    places: dict[str, dict[str, None]] = defaultdict(dict)
    for launch in launches:
        if launch.file != kernel.filename:
            places[launch.file][launch.kernel] = None
    for place, names in places.items():
        lies = "lies" if len(names) == 1 else "lie"
        name = PurePosixPath(place).name if PurePosixPath(place).is_absolute() else place
        yield f"{', '.join(names)}, launched here, {lies} in {name}: edits are made to {kernel.filename} only"


def _imported_notes(kernel: Kernel) -> Iterator[str]:
    for name, path in imported_jit(kernel):
        yield f"{name}, which the kernels call, lies in {path}: edits are made to {kernel.filename} only"
