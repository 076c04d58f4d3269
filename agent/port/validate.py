"""Run each kernel's port in the emulator against the original under the 32-lane reference."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Literal

import numpy as np

from agent.port.assemble import Assembled, new_path
from agent.port.build import UnitBuild, options_for, reached_text, source_tree
from agent.port.detectors import kernel_function
from agent.port.given import given_note, with_given
from agent.port.includes import PathIndex, closure
from agent.port.instantiate import instantiation_names, with_instantiations, without_prints
from agent.port.original import Original, build_original
from agent.port.reference_run import Argument, Packed, ParameterInfo, ReferenceProgram, buffers_of
from agent.port.request import PortRequest, Project
from agent.port.result import KernelVerdict, Trial
from agent.port.trials import Comparison, Shape, compare, lds_is_unknown, make_arguments, shapes
from sandbox.emulator.loader import CodeObject, load_code_object
from sandbox.emulator.memory import Allocation, Memory
from sandbox.emulator.run import emulate
from sandbox.errors import InputError
from sandbox.hip import HOST, KernelResources, compile_hip
from sandbox.hip_source import HipSource, KernelFunction
from sandbox.toolchain import Toolchain
from sandbox.verdict import Correctness

Schedule = Literal["lockstep", "random"]
WANTED_TRIALS = 3
"""Launches per kernel and target, with different shapes, seeds and value ranges."""
MAX_TRIED = 40
MORE_SCHEDULES = (3, 4, 5, 6, 7, 2)
MAX_CUT = 6
"""Launches that the emulator may give up on before the kernel counts as too long for it."""
MIN_KERNEL_SECONDS = 5.0
INSTRUCTION_BUDGET = 3_000_000
_RANDOM = re.compile(r"curand|hiprand")


@dataclass(frozen=True)
class _Found:
    """A compiled kernel and where the original defines it."""

    kernel: KernelResources
    path: str
    source: HipSource
    function: KernelFunction


@dataclass(frozen=True)
class _Subject:
    """One kernel ready to be tried."""

    unit: str
    function: KernelFunction
    spelled: str
    """C++ spelling of the instantiation."""
    symbol: str
    index: int
    codes: Mapping[str, CodeObject]
    max_threads: int
    static_bytes: int


def compiled_only(builds: Sequence[UnitBuild], project: Project, reason: str) -> tuple[KernelVerdict, ...]:
    """Every compiled kernel of the user's with the evidence `compiled`, for the given reason."""
    verdicts: list[KernelVerdict] = []
    for build in builds:
        device = next(b for p, b in build.passes.items() if p != HOST and b.code_object is not None)
        for found in _found(device.kernels, build.unit, project):
            verdicts.append(
                KernelVerdict(found.kernel.name, found.path, found.function.line, Correctness.COMPILED, reason)
            )
    return tuple(verdicts)


def _found(kernels: Sequence[KernelResources], unit: str, project: Project) -> list[_Found]:
    """The compiled kernels that the unit or a file it includes defines; others come from library headers."""
    texts = {path: file.text for path, file in project.sources.items()}
    sources = {path: HipSource(texts[path]) for path in closure([unit], PathIndex.of(texts), texts.get)}
    found: list[_Found] = []
    for kernel in kernels:
        for path, source in sources.items():
            function = kernel_function(source.kernels, kernel)
            if function is not None:
                found.append(_Found(kernel, path, source, function))
                break
    return found


def validate(
    builds: Sequence[UnitBuild], project: Project, assembled: Assembled, request: PortRequest, toolchain: Toolchain,
    say: Callable[[str], None] = lambda line: None,
) -> tuple[KernelVerdict, ...]:  # fmt: skip
    """Verdicts of all kernels of all units. `say` receives one line per kernel."""
    verdicts: list[KernelVerdict] = []
    deadline = time.monotonic() + request.execute_seconds
    for number, build in enumerate(builds):
        until = _share(deadline, len(builds) - number)
        verdicts += _unit(build, project, assembled, request, toolchain, until, say)
    return tuple(verdicts)


def _share(deadline: float, parts: int) -> float:
    """Until when the first of `parts` equal parts of what is left may last."""
    now = time.monotonic()
    return now + max(MIN_KERNEL_SECONDS, (deadline - now) / parts)


def _unit(
    build: UnitBuild, project: Project, assembled: Assembled, request: PortRequest, toolchain: Toolchain,
    deadline: float, say: Callable[[str], None],
) -> list[KernelVerdict]:  # fmt: skip
    source = HipSource(project.sources[build.unit].text)
    codes, kernels, comparable = _code_objects(build, source, project, assembled, request, toolchain)
    pairs = _found(kernels, build.unit, project)
    if not pairs:
        return []

    spelled = [spell(p.kernel.name) for p in pairs]
    original = build_original(project, build.unit, spelled, request, toolchain)
    verdicts: list[KernelVerdict] = []
    for number, (found, name) in enumerate(zip(pairs, spelled, strict=True)):
        program, index = original.program, original.places.get(number)
        late = time.monotonic() > deadline
        alone = not comparable and given_note(original.words.get(number, ()))
        if program is None or index is None or late or alone:
            reason = "the time for the execution of this file was used up"
            if alone:
                reason = f"its trial does not compile, in which {given_note(original.words[number])}"
            if number in original.left_out:
                reason = f"the original cannot be run on a CPU: {original.left_out[number]}"
                if _RANDOM.search(reason):
                    reason = "its results are random, so there is nothing to compare"
            verdicts.append(
                KernelVerdict(found.kernel.name, found.path, found.function.line, Correctness.COMPILED, reason)
            )
            continue
        threads = found.kernel.max_workgroup_threads
        subject = _Subject(
            found.path, found.function, name, found.kernel.symbol, index, codes, threads, found.kernel.lds_bytes
        )
        until = _share(deadline, len(pairs) - number)
        verdict = _verdict(subject, found.kernel, found.source, original, request, until)
        if verdict.evidence is Correctness.EMULATED:
            verdict = replace(verdict, reason=given_note(original.words[number]))
        verdicts.append(verdict)
        shown = verdicts[-1].evidence is Correctness.EMULATED
        say(f"{name}: {'validated in emulation' if shown else verdicts[-1].reason}")
    return verdicts


def _code_objects(
    build: UnitBuild,
    source: HipSource,
    project: Project,
    assembled: Assembled,
    request: PortRequest,
    toolchain: Toolchain,
) -> tuple[dict[str, CodeObject], tuple[KernelResources, ...], bool]:
    """Loaded code per target, its kernels, and whether it reads what the original is given (see `given`).

    Kernel templates nobody instantiated get an instantiation for the occasion.
    """
    codes = {p: b.code_object for p, b in build.passes.items() if p != HOST and b.code_object is not None}
    kernels = next(b.kernels for p, b in build.passes.items() if p in codes)
    present = {f.name for k in kernels if (f := kernel_function(source.kernels, k)) is not None}
    wanted = [f for f in source.kernels if f.template and f.name not in present]
    names = [n for f in wanted for n in instantiation_names(f)]
    given, headers = with_given(assembled.files)
    given[build.unit] = without_prints(given[build.unit])
    as_it_is = given == dict(assembled.files)
    for instances in (names, []) if names else ([],):
        if as_it_is and not instances:
            break
        files = {**given, build.unit: with_instantiations(given[build.unit], instances)}
        trial = replace(assembled, files=files, shims={**assembled.shims, **headers})
        tree = source_tree(project, trial, request, build.unit)
        options = options_for(reached_text(build.unit, project, trial))
        built = [compile_hip(tree, new_path(build.unit), p, toolchain, options) for p in codes]
        if all(b.ok and b.code_object is not None for b in built):
            codes = {b.pass_name: b.code_object for b in built if b.code_object is not None}
            kernels, as_it_is = built[0].kernels, True
            break
    return {p: load_code_object(c) for p, c in codes.items()}, kernels, as_it_is


def spell(demangled: str) -> str:
    """`void ns::k<float, 4>(float*)` -> `ns::k<float, 4>`, with the original's type names."""
    text = demangled.replace("(anonymous namespace)::", "")
    depth = 0
    for i, character in enumerate(text):
        depth += (character == "<") - (character == ">")
        if character == "(" and depth == 0:
            text = text[:i]
            break
    depth, start = 0, 0
    for i, character in enumerate(text):
        depth += (character == "<") - (character == ">")
        if character == " " and depth == 0:
            start = i + 1
    text = text[start:]
    text = re.sub(r"HIP_vector_type<(\w[\w ]*?), (\d)u?>", _vector_name, text)
    return text.replace("__hip_bfloat16", "__nv_bfloat16")


def _vector_name(m: re.Match[str]) -> str:
    short = {"unsigned int": "uint", "unsigned char": "uchar", "unsigned short": "ushort", "long long": "longlong"}
    return f"{short.get(m[1], m[1])}{m[2]}"


def _verdict(
    subject: _Subject, kernel: KernelResources, source: HipSource, original: Original, request: PortRequest,
    deadline: float,
) -> KernelVerdict:  # fmt: skip
    program = original.program
    assert program is not None, "a subject has an index into a program"
    function = subject.function
    single = re.search(r"\bfloat\b", source.masked[function.start : function.body.end]) is not None
    parameters = [replace(p, single=single) for p in program.parameters[subject.index]]
    names = [p.name for p in subject.function.parameters]
    names = names if len(names) == len(parameters) else [""] * len(parameters)

    def verdict(evidence: Correctness, reason: str, trials: Sequence[Trial] = ()) -> KernelVerdict:
        return KernelVerdict(kernel.name, subject.unit, subject.function.line, evidence, reason, tuple(trials))

    other = [n or "a parameter" for n, p in zip(names, parameters, strict=True) if p.kind == "other"]
    if other:
        return verdict(Correctness.COMPILED, f"no input can be made up for {other[0]}")
    if not _pointers(parameters):
        return verdict(Correctness.COMPILED, "it has no buffer whose contents could be compared")
    if "extern" in source.slice(subject.function.body) and lds_is_unknown(source, subject.function):
        reason = "it asks for more than 48 KB of LDS by a size that only a run tells, so no trial shows that it fits"
        return verdict(Correctness.COMPILED, reason)
    launches = _launches(subject, parameters, names, source, program, request)
    trials, reason = _run_trials(subject, parameters, launches, original, deadline)
    wrong = [t for t in trials if t.status == "different"]
    if wrong:
        return verdict(Correctness.COMPILED, f"{wrong[0].target}: {wrong[0].detail}", trials)
    for target in request.targets:
        if not any(t.target == target and t.status == "equal" for t in trials):
            failed = next((t.detail for t in trials if t.target == target), reason)
            return verdict(
                Correctness.COMPILED, failed or "no launch could be made up that the original survives", trials
            )
    failed_trials = [t for t in trials if t.status == "failed"]
    if failed_trials:
        return verdict(Correctness.COMPILED, f"{failed_trials[0].target}: {failed_trials[0].detail}", trials)
    return verdict(Correctness.EMULATED, "", trials)


@dataclass(frozen=True)
class _Launch:
    """A launch that the original survives, and what it makes of its buffers: per schedule the bytes of each."""

    shape: Shape
    seed: int
    arguments: Sequence[Argument]
    outcomes: Sequence[Sequence[bytes]]

    @property
    def buffers(self) -> tuple[list[bytes], list[list[bytes]]]:
        """Each buffer before the launch, and after it under every schedule."""
        given = buffers_of(self.arguments)
        return given, [[outcome[i] for outcome in self.outcomes] for i in range(len(given))]


def _launches(
    subject: _Subject, parameters: Sequence[ParameterInfo], names: Sequence[str], source: HipSource,
    program: ReferenceProgram, request: PortRequest,
) -> Iterator[_Launch | str]:  # fmt: skip
    """Launches worth a trial, and reasons why others are not."""
    numbers = [int(n) for n in re.findall(r"(?<![\w.])\d+(?![\w.])", subject.spelled.partition("<")[2])]
    useful = 0
    candidates = shapes(source, subject.function, numbers, min(1024, subject.max_threads), subject.static_bytes)
    for tried, shape in enumerate(islice(candidates, MAX_TRIED), 1):
        seed = request.seed * 1000 + tried
        for wide in (True, False) if useful % 2 else (False,):
            made = make_arguments(parameters, names, shape, np.random.default_rng(seed), wide=wide)
            if made is None:
                yield "no input can be made up for its parameters"
                return
            arguments = made
            runs = program.run(subject.index, shape.grid, shape.block, shape.shared_bytes, arguments)
            if runs[0].status == "ok":
                break
        failed = next((r for r in runs if r.status != "ok"), None)
        if failed is not None and len(runs) == 1:
            yield f"the original fails on every launch that was made up: {failed.detail or failed.status}"
            if failed.status in ("unsupported", "timeout"):
                return
        elif failed is not None:
            yield f"the original fails when its threads run in another order: {failed.detail or failed.status}"
        else:
            launch = _Launch(shape, seed, arguments, [r.buffers for r in runs])
            itself = [compare(p, g, o, o[0]) for p, g, o in zip(_pointers(parameters), *launch.buffers, strict=True)]
            if any(c.compared for c in itself):
                useful += 1
                yield launch
            elif any(c.free for c in itself):
                yield "its results depend on the order of its threads"
            else:
                yield "it writes nothing on the tried launches"


def _races(subject: _Subject, launch: _Launch, original: Original) -> bool:
    """Whether the original's threads race under this made-up launch, so that no result is the right one."""
    shape = launch.shape
    if original.racing is None:
        return False
    runs = original.racing.run(
        subject.index, shape.grid, shape.block, shape.shared_bytes, launch.arguments, schedules=(0,), timeout_s=60.0
    )
    return runs[0].status == "race"


def _wider(subject: _Subject, launch: _Launch, original: Original) -> _Launch | None:
    """The launch with more schedules of the original: sums of atomics may have come out alike under two by chance."""
    shape = launch.shape
    if original.program is None:
        return None
    more = original.program.run(
        subject.index, shape.grid, shape.block, shape.shared_bytes, launch.arguments, schedules=MORE_SCHEDULES
    )
    fresh = [r.buffers for r in more if r.status == "ok"]
    return replace(launch, outcomes=[*launch.outcomes, *fresh]) if fresh else None


def _run_trials(
    subject: _Subject, parameters: Sequence[ParameterInfo], launches: Iterator[_Launch | str],
    original: Original, deadline: float,
) -> tuple[list[Trial], str]:  # fmt: skip
    """Up to `WANTED_TRIALS` launches on every target, and the last reason why a launch was none."""
    trials: list[Trial] = []
    done = cut = 0
    reason = ""
    for launch in launches:
        if isinstance(launch, str):
            reason = launch
        else:
            schedule: Schedule = "lockstep" if done == 0 else "random"
            made = [_emulated(subject, c, t, launch, parameters, schedule) for t, c in subject.codes.items()]
            if any(t.status == "different" for t in made) and _races(subject, launch, original):
                reason = "its threads race on the tried launches"
                cut += 1
                if cut >= MAX_CUT:
                    break
                continue
            if any(t.status == "different" for t in made) and (wider := _wider(subject, launch, original)) is not None:
                made = [_emulated(subject, c, t, wider, parameters, schedule) for t, c in subject.codes.items()]
            whole = all(t.status != "skipped" for t in made)
            trials = [*trials, *made]
            done += whole
            cut += not whole
            if any(t.status == "different" for t in made):
                break
        if done >= WANTED_TRIALS or cut >= MAX_CUT:
            break
        if time.monotonic() > deadline:
            reason = reason or "the time for its execution was used up"
            break
    return [t for t in trials if t.status != "skipped" or not done], reason


def _pointers(parameters: Sequence[ParameterInfo]) -> list[ParameterInfo]:
    return [q for p in parameters for q in p.pointers]


def _emulated(
    subject: _Subject, code: CodeObject, target: str, launch: _Launch, parameters: Sequence[ParameterInfo],
    schedule: Schedule,
) -> Trial:  # fmt: skip
    shape, seed = launch.shape, launch.seed
    memory = Memory()
    given: list[object] = []
    buffers: list[Allocation] = []

    def allocated(number: int, data: bytes) -> Allocation:
        buffers.append(memory.allocate(f"argument {number}", np.frombuffer(data, np.uint8).copy()))
        return buffers[-1]

    for number, argument in enumerate(launch.arguments):
        if isinstance(argument, Packed):
            value = bytearray(argument.data)
            for place, data in argument.pointers:
                value[place : place + 8] = allocated(number, data).base.to_bytes(8, "little")
            given.append(bytes(value))
        else:
            given.append(allocated(number, argument[0]) if isinstance(argument, tuple) else argument)

    def trial(status: str, detail: str = "") -> Trial:
        return Trial(target, shape.grid, shape.block, shape.size, seed, status, detail)  # type: ignore[arg-type]

    try:
        result = emulate(
            code, subject.symbol, shape.grid, shape.block, given, memory,  # type: ignore[arg-type]
            dynamic_lds_bytes=shape.shared_bytes, schedule=schedule, seed=seed, instruction_budget=INSTRUCTION_BUDGET,
        )  # fmt: skip
    except InputError as e:
        return trial("skipped", str(e))
    if result.status in ("unsupported", "budget"):
        return trial("skipped", f"the emulator stopped: {result.reason}")
    if result.status != "completed":
        return trial("failed", f"{result.status}: {result.trap or result.reason}")
    given_buffers, after = launch.buffers
    compared: list[Comparison] = [
        compare(p, given_data, outcomes, b.data.tobytes())
        for p, given_data, outcomes, b in zip(_pointers(parameters), given_buffers, after, buffers, strict=True)
    ]
    wrong = [c.difference for c in compared if c.difference is not None]
    if wrong:
        return trial("different", wrong[0])
    if not any(c.compared for c in compared):
        return trial("skipped", "its results depend on the order of its threads")
    notes = [str(f) for f in result.findings if f.kind == "lds_race"][:1]
    if unordered := sum(c.unordered for c in compared):
        notes.append(f"{unordered} elements depend on the order of threads and were compared as a set")
    if free := sum(c.free for c in compared):
        notes.append(f"{free} elements depend on the order of threads and were not compared")
    return trial("equal", "; ".join(notes))
