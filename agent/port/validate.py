"""Run each kernel's port in the emulator against the original under the 32-lane reference."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from agent.port.assemble import Assembled, new_path
from agent.port.build import UnitBuild, options_for, reached_text, source_tree
from agent.port.detectors import kernel_function
from agent.port.includes import PathIndex, closure
from agent.port.instantiate import instantiation_names, with_instantiations
from agent.port.reference_run import ParameterInfo, ReferenceBuildError, ReferenceProgram, build_reference
from agent.port.reference_source import reference_tree
from agent.port.request import PortRequest, Project
from agent.port.result import KernelVerdict, Trial
from agent.port.trials import Comparison, Shape, compare, lds_is_unknown, make_arguments, shapes
from sandbox.emulator.loader import CodeObject, load_code_object
from sandbox.emulator.memory import Memory
from sandbox.emulator.run import emulate
from sandbox.errors import InputError
from sandbox.hip import HOST, KernelResources, compile_hip
from sandbox.hip_source import HipSource, KernelFunction
from sandbox.toolchain import Toolchain
from sandbox.verdict import Correctness

WANTED_TRIALS = 3
"""Launches per kernel and target, with different shapes, seeds and value ranges."""
MAX_TRIED = 40
INSTRUCTION_BUDGET = 3_000_000
RANDOM_HEADERS = re.compile(r"curand|hiprand|\bclock64\b|globaltimer|%clock")


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
    builds: Sequence[UnitBuild], project: Project, assembled: Assembled, request: PortRequest, toolchain: Toolchain
) -> tuple[KernelVerdict, ...]:
    """Verdicts of all kernels of all units."""
    verdicts: list[KernelVerdict] = []
    for build in builds:
        verdicts += _unit(build, project, assembled, request, toolchain)
    return tuple(verdicts)


def _unit(
    build: UnitBuild, project: Project, assembled: Assembled, request: PortRequest, toolchain: Toolchain
) -> list[KernelVerdict]:
    source = HipSource(project.sources[build.unit].text)
    codes, kernels = _code_objects(build, source, project, assembled, request, toolchain)
    pairs = _found(kernels, build.unit, project)
    if not pairs:
        return []

    def plain(reason: str) -> list[KernelVerdict]:
        return [KernelVerdict(p.kernel.name, p.path, p.function.line, Correctness.COMPILED, reason) for p in pairs]

    random = RANDOM_HEADERS.search(source.uncommented)
    if random is not None:
        return plain(f"its results are random or timed ({random.group()}), so there is nothing to compare")
    spelled = [spell(p.kernel.name) for p in pairs]
    try:
        program = build_reference(reference_tree(project, build.unit, spelled, request.defines), build.unit, toolchain)
    except ReferenceBuildError as e:
        return plain(f"the original cannot be run on a CPU: {e}")
    verdicts: list[KernelVerdict] = []
    for index, (found, name) in enumerate(zip(pairs, spelled, strict=True)):
        threads = found.kernel.max_workgroup_threads
        subject = _Subject(found.path, found.function, name, found.kernel.symbol, index, codes, threads)
        verdicts.append(_verdict(subject, found.kernel, found.source, program, request))
    return verdicts


def _code_objects(
    build: UnitBuild,
    source: HipSource,
    project: Project,
    assembled: Assembled,
    request: PortRequest,
    toolchain: Toolchain,
) -> tuple[dict[str, CodeObject], tuple[KernelResources, ...]]:
    """Loaded code per target; kernel templates nobody instantiated get an instantiation for the occasion."""
    codes = {p: b.code_object for p, b in build.passes.items() if p != HOST and b.code_object is not None}
    kernels = next(b.kernels for p, b in build.passes.items() if p in codes)
    present = {f.name for k in kernels if (f := kernel_function(source.kernels, k)) is not None}
    wanted = [f for f in source.kernels if f.template and f.name not in present]
    names = [n for f in wanted for n in instantiation_names(f)]
    if names:
        text = with_instantiations(assembled.files[build.unit], names)
        trial = replace(assembled, files={**assembled.files, build.unit: text})
        tree = source_tree(project, trial, request, build.unit)
        options = options_for(reached_text(build.unit, project, trial))
        built = [compile_hip(tree, new_path(build.unit), p, toolchain, options) for p in codes]
        if all(b.ok and b.code_object is not None for b in built):
            codes = {b.pass_name: b.code_object for b in built if b.code_object is not None}
            kernels = built[0].kernels
    return {p: load_code_object(c) for p, c in codes.items()}, kernels


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
    subject: _Subject, kernel: KernelResources, source: HipSource, program: ReferenceProgram, request: PortRequest
) -> KernelVerdict:
    parameters = program.parameters[subject.index]
    names = [p.name for p in subject.function.parameters]
    names = names if len(names) == len(parameters) else [""] * len(parameters)

    def verdict(evidence: Correctness, reason: str, trials: Sequence[Trial] = ()) -> KernelVerdict:
        return KernelVerdict(kernel.name, subject.unit, subject.function.line, evidence, reason, tuple(trials))

    other = [n or "a parameter" for n, p in zip(names, parameters, strict=True) if p.kind == "other"]
    if other:
        return verdict(Correctness.COMPILED, f"no input can be made up for {other[0]}")
    if not any(p.kind == "pointer" for p in parameters):
        return verdict(Correctness.COMPILED, "it has no buffer whose contents could be compared")
    if "extern" in source.slice(subject.function.body) and lds_is_unknown(source, subject.function):
        reason = "it asks for more than 48 KB of LDS by a size that only a run tells, so no trial shows that it fits"
        return verdict(Correctness.COMPILED, reason)
    trials, reason = _run_trials(subject, parameters, names, source, program, request)
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


def _run_trials(
    subject: _Subject, parameters: Sequence[ParameterInfo], names: Sequence[str], source: HipSource,
    program: ReferenceProgram, request: PortRequest,
) -> tuple[list[Trial], str]:  # fmt: skip
    numbers = [int(n) for n in re.findall(r"(?<![\w.])\d+(?![\w.])", subject.spelled.partition("<")[2])]
    trials: list[Trial] = []
    done = tried = 0
    reason = ""
    for shape in shapes(source, subject.function, numbers, min(1024, subject.max_threads)):
        if done >= WANTED_TRIALS or tried >= MAX_TRIED:
            break
        tried += 1
        seed = request.seed * 1000 + tried
        wide = done % 2 == 1
        arguments = make_arguments(parameters, names, shape, np.random.default_rng(seed), wide=wide)
        if arguments is None:
            return trials, "no input can be made up for its parameters"
        forward = program.run(subject.index, shape.grid, shape.block, shape.shared_bytes, arguments, reverse=False)
        if forward.status != "ok" and wide:
            arguments = make_arguments(parameters, names, shape, np.random.default_rng(seed), wide=False)
            assert arguments is not None
            forward = program.run(subject.index, shape.grid, shape.block, shape.shared_bytes, arguments, reverse=False)
        if forward.status != "ok":
            reason = f"the original fails on every launch that was made up: {forward.detail or forward.status}"
            if forward.status in ("unsupported", "timeout"):
                break
            continue
        backward = program.run(subject.index, shape.grid, shape.block, shape.shared_bytes, arguments, reverse=True)
        if backward.status != "ok":
            reason = f"the original fails when its threads run in another order: {backward.detail or backward.status}"
            continue
        given = [a[0] for a in arguments if isinstance(a, tuple)]
        both = list(zip(given, forward.buffers, backward.buffers, strict=True))
        itself = [compare(p, g, f, b, f) for p, (g, f, b) in zip(_pointers(parameters), both, strict=True)]
        if not any(c.compared for c in itself):
            free = any(c.free for c in itself)
            reason = (
                "its results depend on the order of its threads" if free else "it writes nothing on the tried launches"
            )
            continue
        done += 1
        schedule = "lockstep" if done == 1 else "random"
        for target, code in subject.codes.items():
            trials.append(_emulated(subject, code, target, shape, arguments, parameters, both, schedule, seed))
        if any(t.status == "different" for t in trials):
            break
    return trials, reason


def _pointers(parameters: Sequence[ParameterInfo]) -> list[ParameterInfo]:
    return [p for p in parameters if p.kind == "pointer"]


def _emulated(
    subject: _Subject, code: CodeObject, target: str, shape: Shape, arguments: Sequence[bytes | tuple[bytes]],
    parameters: Sequence[ParameterInfo], expected: Sequence[tuple[bytes, bytes, bytes]], schedule: str, seed: int,
) -> Trial:  # fmt: skip
    memory = Memory()
    given: list[object] = []
    buffers = []
    for number, argument in enumerate(arguments):
        if isinstance(argument, tuple):
            allocation = memory.allocate(f"argument {number}", np.frombuffer(argument[0], np.uint8).copy())
            buffers.append(allocation)
            given.append(allocation)
        else:
            given.append(argument)

    def trial(status: str, detail: str = "") -> Trial:
        return Trial(target, shape.grid, shape.block, shape.size, seed, status, detail)  # type: ignore[arg-type]

    try:
        result = emulate(
            code, subject.symbol, shape.grid, shape.block, given, memory,  # type: ignore[arg-type]
            dynamic_lds_bytes=shape.shared_bytes, schedule=schedule, seed=seed, instruction_budget=INSTRUCTION_BUDGET,  # type: ignore[arg-type]
        )  # fmt: skip
    except InputError as e:
        return trial("skipped", str(e))
    if result.status in ("unsupported", "budget"):
        return trial("skipped", f"the emulator stopped: {result.reason}")
    if result.status != "completed":
        return trial("failed", f"{result.status}: {result.trap or result.reason}")
    compared: list[Comparison] = [
        compare(p, given_data, forward, backward, b.data.tobytes())
        for p, (given_data, forward, backward), b in zip(_pointers(parameters), expected, buffers, strict=True)
    ]
    wrong = [c.difference for c in compared if c.difference is not None]
    if wrong:
        return trial("different", wrong[0])
    notes = [str(f) for f in result.findings if f.kind == "lds_race"][:1]
    if unordered := sum(c.unordered for c in compared):
        notes.append(f"{unordered} elements depend on the order of threads and were compared as a set")
    if free := sum(c.free for c in compared):
        notes.append(f"{free} elements depend on the order of threads and were not compared")
    return trial("equal", "; ".join(notes))
