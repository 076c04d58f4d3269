"""Kernels with a generated driver: which of a unit's kernels are the user's, the launches that are made up for them and
survive in the original, and one such launch of a code object in the emulator."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from agent.port.detectors import kernel_function
from agent.port.includes import PathIndex, closure
from agent.port.instantiate import instantiation_names, with_instantiations, without_prints
from agent.port.original import Original
from agent.port.reference_run import (
    REFILLED,
    Argument,
    Packed,
    ParameterInfo,
    ReferenceProgram,
    ReferenceRun,
    buffers_of,
)
from agent.port.request import Project
from agent.port.trials import Expected, Shape, compare, lds_is_unknown, make_arguments, nudge_arguments, shapes
from sandbox.emulator.loader import CodeObject
from sandbox.emulator.memory import Allocation, Memory
from sandbox.emulator.result import EmulationResult
from sandbox.emulator.run import emulate
from sandbox.hip import KernelResources
from sandbox.hip_source import HipSource, KernelFunction
from skills.cuda_launches import Dim

Schedule = Literal["lockstep", "random"]
MAX_TRIED = 40
MORE_SCHEDULES = (3, 4, 5, 6, 7, 2)
NUDGES = 8
"""How often the original is run with inputs that differ by their rounding."""
INSTRUCTION_BUDGET = 3_000_000


@dataclass(frozen=True)
class Found:
    """A compiled kernel and where the original defines it. `around`: that source first, then the others of its unit."""

    kernel: KernelResources
    path: str
    source: HipSource
    function: KernelFunction
    around: tuple[HipSource, ...]


@dataclass(frozen=True)
class Subject:
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
    around: tuple[HipSource, ...]
    """The sources that may launch it and define its sizes, its own first."""


def found_kernels(kernels: Sequence[KernelResources], unit: str, project: Project) -> list[Found]:
    """The compiled kernels that the unit or a file it includes defines; others come from library headers."""
    texts = {**project.others, **{path: file.text for path, file in project.sources.items()}}
    sources = {path: HipSource(texts[path]) for path in closure([unit], PathIndex.of(texts), texts.get)}
    found: list[Found] = []
    for kernel in kernels:
        for path, source in sources.items():
            if path not in project.sources:
                continue
            function = kernel_function(source.kernels, kernel)
            if function is not None:
                around = (source, *(s for s in sources.values() if s is not source))
                found.append(Found(kernel, path, source, function, around))
                break
    return found


def missing_instances(source: HipSource, kernels: Sequence[KernelResources]) -> list[str]:
    """Instantiations to make up for the kernel templates of `source` that are not among the compiled `kernels`."""
    present = {f.name for k in kernels if (f := kernel_function(source.kernels, k)) is not None}
    wanted = [f for f in source.kernels if f.template and f.name not in present]
    return [n for f in wanted for n in instantiation_names(f)]


def executable_text(text: str, source: HipSource, kernels: Sequence[KernelResources]) -> str:
    """`text` with instantiations for the kernel templates of `source` that are not among the compiled `kernels`, and
    without prints."""
    names = missing_instances(source, kernels)
    text = without_prints(text)
    return with_instantiations(text, names) if names else text


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


def signature(program: ReferenceProgram, subject: Subject, source: HipSource) -> tuple[list[ParameterInfo], list[str]]:
    """The parameters of a kernel as the compiler sees them, with their names in the source."""
    function = subject.function
    single = re.search(r"\bfloat\b", source.masked[function.start : function.body.end]) is not None
    parameters = [replace(p, single=single) for p in program.parameters[subject.index]]
    names = [p.name for p in function.parameters]
    return parameters, names if len(names) == len(parameters) else [""] * len(parameters)


def obstacle(
    function: KernelFunction, parameters: Sequence[ParameterInfo], names: Sequence[str], source: HipSource
) -> str:
    """Why no launch can be made up for a kernel; empty when one can be tried."""
    other = [n or "a parameter" for n, p in zip(names, parameters, strict=True) if p.kind == "other"]
    if other:
        return f"no input can be made up for {other[0]}"
    if not pointers(parameters):
        return "it has no buffer whose contents could be compared"
    if "extern" in source.slice(function.body) and lds_is_unknown(source, function):
        return "it asks for more than 48 KB of LDS by a size that only a run tells, so no trial shows that it fits"
    return ""


@dataclass(frozen=True)
class Launch:
    """A launch that the original survives, and what it makes of its buffers: per run the bytes of each."""

    shape: Shape
    seed: int
    arguments: Sequence[Argument]
    outcomes: Sequence[Sequence[bytes]]
    """A run per schedule of its threads."""
    refilled: Sequence[Sequence[bytes]] = ()
    nudged: Sequence[Sequence[bytes]] = ()

    @property
    def expected(self) -> list[Expected]:
        """What is expected of each buffer."""
        many = (self.outcomes, self.refilled, self.nudged)
        return [
            Expected(given, *([run[i] for run in runs] for runs in many))
            for i, given in enumerate(buffers_of(self.arguments))
        ]


def launches(
    subject: Subject, parameters: Sequence[ParameterInfo], names: Sequence[str], source: HipSource,
    program: ReferenceProgram, base_seed: int,
) -> Iterator[Launch | str]:  # fmt: skip
    """Launches worth a trial, and reasons why others are not."""
    useful = 0
    asked: set[Dim] = set()
    candidates = _shapes(subject)
    for tried in range(1, MAX_TRIED + 1):
        shape = next(candidates, None)
        if shape is None:
            return
        seed = base_seed * 1000 + tried
        for wide in (True, False) if useful % 2 else (False,):
            made = make_arguments(parameters, names, shape, np.random.default_rng(seed), wide=wide)
            if made is None:
                yield "no input can be made up for its parameters"
                return
            arguments = made
            runs = program.run(subject.index, shape.grid, shape.block, shape.shared_bytes, arguments)
            if runs[0].status == "ok":
                break
        block = _asked_block(runs[0])
        if block is not None and block not in asked:
            asked.add(block)
            candidates = _shapes(subject, block)
        elif any(r.status != "ok" for r in runs):
            yield _failure(runs)
            if runs[0].status in ("unsupported", "timeout"):
                return
        else:
            found = _useful(subject, parameters, Launch(shape, seed, arguments, [r.buffers for r in runs]), program)
            useful += isinstance(found, Launch)
            yield found


def _shapes(subject: Subject, only: Dim | None = None) -> Iterator[Shape]:
    numbers = [int(n) for n in re.findall(r"(?<![\w.])\d+(?![\w.])", subject.spelled.partition("<")[2])]
    most = min(1024, subject.max_threads)
    return shapes(subject.around, subject.function, numbers, most, subject.static_bytes, only)


def _asked_block(run: ReferenceRun) -> Dim | None:
    """The block that a collective of the kernel is compiled for, where the run ended for having another."""
    m = re.search(r"blocks of (\d+)x(\d+)x(\d+)", run.detail) if run.status == "block-size" else None
    return (int(m[1]), int(m[2]), int(m[3])) if m else None


def _failure(runs: Sequence[ReferenceRun]) -> str:
    failed = next(r for r in runs if r.status != "ok")
    if len(runs) == 1:
        return f"the original fails on every launch that was made up: {failed.detail or failed.status}"
    return f"the original fails when its threads run in another order: {failed.detail or failed.status}"


def _useful(
    subject: Subject, parameters: Sequence[ParameterInfo], launch: Launch, program: ReferenceProgram
) -> Launch | str:
    """The launch, or why it shows nothing."""
    if any(o != launch.outcomes[0] for o in launch.outcomes):
        shape = launch.shape
        (again,) = program.run(
            subject.index, shape.grid, shape.block, shape.shared_bytes, launch.arguments, schedules=(REFILLED,)
        )
        if again.status != "ok":
            return f"the original reads what nothing has written: {again.detail or again.status}"
        launch = replace(launch, refilled=[again.buffers])
    itself = [compare(p, e, e.outcomes[0]) for p, e in zip(pointers(parameters), launch.expected, strict=True)]
    if any(c.compared for c in itself):
        return launch
    if any(c.undefined for c in itself):
        return "its results follow from what nothing has written"
    if any(c.free for c in itself):
        return "its results depend on the order of its threads"
    return "it writes nothing on the tried launches"


def settled(subject: Subject, launch: Launch, original: Original) -> Launch | str:
    """The launch with a run whose local variables start with other contents, or why no result of it is the right one:
    threads that race, or contents that decide whether it ends."""
    shape = launch.shape
    if original.racing is None:
        return launch
    (run,) = original.racing.run(
        subject.index, shape.grid, shape.block, shape.shared_bytes, launch.arguments, schedules=(0,), timeout_s=60.0
    )
    if run.status == "race":
        return "its threads race on the tried launches"
    if run.status in ("fault", "undefined", "deadlock"):
        return f"the original reads what nothing has written: {run.detail or run.status}"
    return replace(launch, refilled=[*launch.refilled, run.buffers]) if run.status == "ok" else launch


def races(subject: Subject, launch: Launch, original: Original) -> bool:
    """Whether this made-up launch of the original has no right result, as `settled` says."""
    return isinstance(settled(subject, launch, original), str)


def wider(subject: Subject, launch: Launch, original: Original) -> Launch:
    """The launch with more schedules of the original: sums of atomics may have come out alike under two by chance."""
    shape = launch.shape
    if original.program is None:
        return launch
    more = original.program.run(
        subject.index, shape.grid, shape.block, shape.shared_bytes, launch.arguments, schedules=MORE_SCHEDULES
    )
    return replace(launch, outcomes=[*launch.outcomes, *(r.buffers for r in more if r.status == "ok")])


def nudged(
    subject: Subject, launch: Launch, parameters: Sequence[ParameterInfo], original: Original
) -> Launch:  # fmt: skip
    """The launch with runs of the original on inputs that differ by their rounding: how far its results move."""
    shape, rng = launch.shape, np.random.default_rng(launch.seed)
    if original.program is None:
        return launch
    moved: list[Sequence[bytes]] = []
    for _ in range(NUDGES):
        arguments = nudge_arguments(parameters, launch.arguments, rng)
        (run,) = original.program.run(
            subject.index, shape.grid, shape.block, shape.shared_bytes, arguments, schedules=(0,)
        )
        moved += [run.buffers] if run.status == "ok" else []
    return replace(launch, nudged=moved)


def pointers(parameters: Sequence[ParameterInfo]) -> list[ParameterInfo]:
    """What each buffer of a launch holds, in the order of its arguments; structures may hold several."""
    return [q for p in parameters for q in p.pointers]


def emulate_launch(
    code: CodeObject, symbol: str, launch: Launch, schedule: Schedule, *,
    budget: int = INSTRUCTION_BUDGET, model: bool = False,
) -> tuple[EmulationResult, list[Allocation]]:  # fmt: skip
    """The launch on the emulator, with how it ended and the buffers it left, in argument order.

    Raises `InputError` for a launch that hardware would refuse.
    """
    memory = Memory()
    given: list[bytes | Allocation] = []
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
    shape = launch.shape
    result = emulate(
        code, symbol, shape.grid, shape.block, given, memory, dynamic_lds_bytes=shape.shared_bytes,
        schedule=schedule, seed=launch.seed, instruction_budget=budget, model=model,
    )  # fmt: skip
    return result, buffers
