"""Phase 1 for HIP: the file compiled, its kernels run on launches made up for them; a CUDA file is ported first."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from agent.candidate import Failure, Measurement
from agent.events import Progress
from agent.hip.driven import Driven, Drivers, Run
from agent.hip.program import Compiler, Program, check_source, project_of
from agent.job import JobRequest
from agent.port.assemble import new_path
from agent.port.loop import port
from agent.port.request import PortRequest, Project
from agent.port.result import PortResult
from sandbox.bottleneck import classify
from sandbox.emulator.launch import LDS_BYTES
from sandbox.errors import InputError
from sandbox.gain import summed
from sandbox.kernel import Kernel, Language
from sandbox.toolchain import prepare_toolchain
from skills.condition import Value as FactValue
from skills.facts import profile_facts
from skills.source_facts import collect_facts

_MAX_SEED = 1 << 40


@dataclass(frozen=True)
class HipBaseline:
    """The user's file as it is (ported, where it was CUDA): what is known about its kernels, and how they are run."""

    measurement: Measurement
    program: Program
    driven: tuple[Driven, ...]
    compiler: Compiler
    notes: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    executor: str = "emulator"
    suggested_harness: str | None = None

    @property
    def launch_count(self) -> int:
        return sum(len(d.launches) for d in self.driven)

    @property
    def threads(self) -> dict[str, int]:
        """Threads of a block by `__global__` function, where launches are known."""
        return {d.kernel.function: d.threads for d in self.driven if d.threads is not None}


def take_hip_baseline(request: JobRequest, progress: Progress) -> HipBaseline:
    """Port a CUDA file, compile, make up launches and run them. Raises `InputError` for what cannot be worked on."""
    _check_usable(request)
    toolchain = prepare_toolchain(progress.step)
    compiler = Compiler(request.target, toolchain)
    original = project_of(request.kernel)
    kernel, notes = request.kernel, tuple[str, ...]()
    if kernel.language is Language.CUDA:
        progress.step(f"porting {kernel.filename} to HIP first")
        ported = _ported(request, original, progress)
        if isinstance(ported, Failure):
            return _unusable(request, compiler, [ported])
        kernel, notes = ported
    progress.step(f"compiling {kernel.filename} for {request.target.arch}")
    program = compiler.program(kernel)
    if program.failures:
        return _unusable(request, compiler, program.failures)
    if not program.kernels:
        raise InputError(
            "it holds kernel templates only, and no instantiation could be made up for them.",
            file=request.kernel.filename,
            remedy="Instantiate them in the file, as `template __global__ void k<float>(...);` does.",
        )
    progress.step(f"making up launches for {len(program.kernels)} kernels and running them in the emulator")
    seed = (request.options.seed or 0) % _MAX_SEED
    driven = Drivers(program, original, request.kernel.filename, compiler, seed).drive()
    threads = {d.kernel.function: d.threads for d in driven if d.threads is not None}
    program = compiler.program(kernel, threads)
    runs = {d.kernel.symbol: d.runs for d in driven}
    notes = (*notes, *(_note(d) for d in driven))
    for note in notes:
        progress.step(note)
    return HipBaseline(
        measurement_of(program, runs, request), program, driven, compiler, notes, toolchain.versions()
    )  # fmt: skip


def _check_usable(request: JobRequest) -> None:
    name = request.kernel.filename
    if request.harness is not None or request.workload is not None:
        raise InputError(
            "a HIP or CUDA file takes no harness and no workload.",
            file=name,
            remedy="Leave them out: launches are made up from the kernels' signatures and launch sites.",
        )
    if request.options.executor not in ("auto", "emulator"):
        raise InputError(
            f"HIP code is run in the emulator, not by {request.options.executor!r}.", file=name,
            remedy="Use --executor emulator, or leave it out.",
        )  # fmt: skip
    if request.target.arch not in LDS_BYTES:
        known = ", ".join(LDS_BYTES)
        raise InputError(f"HIP code for {request.target.arch} cannot be run here.", remedy=f"Choose one of {known}.")
    check_source(request.kernel)


def _unusable(request: JobRequest, compiler: Compiler, failures: Sequence[Failure]) -> HipBaseline:
    """A file that does not build: all that is known is why."""
    program = Program(request.kernel, {}, tuple(failures))
    measured = measurement_of(program, {}, request)
    return HipBaseline(measured, program, (), compiler, versions=compiler.toolchain.versions(), executor="none")


def _ported(request: JobRequest, original: Project, progress: Progress) -> tuple[Kernel, tuple[str, ...]] | Failure:
    """The file in HIP with what lies beside it, or why its port is no clean one."""
    name = request.kernel.filename
    asked = PortRequest(name, targets=(request.target.arch,), seed=(request.options.seed or 0) % _MAX_SEED)
    result = port(asked, progress.step, original)
    blockers = [f for f in result.findings if f.blocker]
    if not result.builds or result.refusals or blockers or any(k.wrong for k in result.kernels):
        return Failure("port", f"its port to HIP is not clean. {result.summary}")
    texts = {f.new_path: f.after for f in result.files}
    main = new_path(name)
    beside = {**request.kernel.companions, **{p: t for p, t in texts.items() if p != main}}
    beside |= result.shims
    return Kernel(texts[main], main, Language.HIP, MappingProxyType(beside)), (_port_note(name, result),)


def _port_note(name: str, result: PortResult) -> str:
    edits = sum(len(r.applied) for r in result.rounds)
    return f"{name} was ported to HIP first ({edits} edits; {result.summary.rstrip('.')}); the patch holds the port too"


def _note(driven: Driven) -> str:
    if not driven.launches:
        return f"{driven.kernel.name} was not run: {driven.reason}"
    shapes = "; ".join(str(launch.shape) for launch in driven.launches)
    return f"{driven.kernel.name}: launches made up from its signature and compared with a CPU: {shapes}"


def measurement_of(program: Program, runs: Mapping[str, Sequence[Run]], request: JobRequest) -> Measurement:
    """Failures, profiles and facts of one version; `runs` by symbol, as far as it was run."""
    target = request.target
    observed: dict[str, list[Mapping[str, FactValue]]] = defaultdict(list)
    bottlenecks: list[str] = []
    for kernel in program.kernels.values():
        names = [b.name for b in classify(kernel.profile, target)]
        bottlenecks += [f"{kernel.name}: {', '.join(names)}"] if names else []
        worst = {"bottleneck.worst": names[0]} if names else {}
        observed[kernel.function] += [
            {"kernel.name": kernel.function, "compile.status": "ok", "bottlenecks": tuple(sorted(names)), **worst},
            profile_facts(kernel.profile),
            *_counted(runs.get(kernel.symbol, ()), kernel.profile.number("threads_per_workgroup")),
        ]
    whole: dict[str, FactValue] = {}
    if program.failures:
        whole = {"compile.status": "failed", "compile.error": program.failures[0].message}
    return Measurement(
        kernel=program.kernel,
        facts=collect_facts(
            program.kernel, target, observed=observed, file_values=whole, allow_approx=request.options.allow_approx
        ),
        failures=program.failures,
        profiles=program.profiles,
        bottlenecks=tuple(bottlenecks),
    )


def _counted(runs: Sequence[Run], threads: float | None) -> Iterator[Mapping[str, FactValue]]:
    """Facts that the emulated runs of a kernel give."""
    if not runs or not all(r.completed for r in runs):
        return
    total = summed(r.counters for r in runs)
    yield {
        "executed_lane_atomics": total.get("lane_atomics", 0),
        "executed_instructions": total.get("SQ_INSTS", 0),
        "atomic_contention": max(r.counters.get("lane_atomics_one_address", 0) for r in runs),
        "launch.count": len(runs),
        **({"launch.threads_per_workgroup": int(threads)} if threads else {}),
    }
