"""Kernels with a generated driver: which of a unit's kernels are the user's, the launches that are made up for them and
survive in the original, and one such launch of a code object in the emulator."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Literal

import numpy as np

from agent.port.detectors import kernel_function
from agent.port.includes import PathIndex, closure
from agent.port.instantiate import instantiation_names, with_instantiations, without_prints
from agent.port.original import Original
from agent.port.reference_run import Argument, Packed, ParameterInfo, ReferenceProgram, buffers_of
from agent.port.request import Project
from agent.port.trials import Shape, compare, lds_is_unknown, make_arguments, shapes
from sandbox.emulator.loader import CodeObject
from sandbox.emulator.memory import Allocation, Memory
from sandbox.emulator.result import EmulationResult
from sandbox.emulator.run import emulate
from sandbox.hip import KernelResources
from sandbox.hip_source import HipSource, KernelFunction

Schedule = Literal["lockstep", "random"]
MAX_TRIED = 40
MORE_SCHEDULES = (3, 4, 5, 6, 7, 2)
INSTRUCTION_BUDGET = 3_000_000


@dataclass(frozen=True)
class Found:
    """A compiled kernel and where the original defines it."""

    kernel: KernelResources
    path: str
    source: HipSource
    function: KernelFunction


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


def found_kernels(kernels: Sequence[KernelResources], unit: str, project: Project) -> list[Found]:
    """The compiled kernels that the unit or a file it includes defines; others come from library headers."""
    texts = {path: file.text for path, file in project.sources.items()}
    sources = {path: HipSource(texts[path]) for path in closure([unit], PathIndex.of(texts), texts.get)}
    found: list[Found] = []
    for kernel in kernels:
        for path, source in sources.items():
            function = kernel_function(source.kernels, kernel)
            if function is not None:
                found.append(Found(kernel, path, source, function))
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


def launches(
    subject: Subject, parameters: Sequence[ParameterInfo], names: Sequence[str], source: HipSource,
    program: ReferenceProgram, base_seed: int,
) -> Iterator[Launch | str]:  # fmt: skip
    """Launches worth a trial, and reasons why others are not."""
    numbers = [int(n) for n in re.findall(r"(?<![\w.])\d+(?![\w.])", subject.spelled.partition("<")[2])]
    useful = 0
    candidates = shapes(source, subject.function, numbers, min(1024, subject.max_threads), subject.static_bytes)
    for tried, shape in enumerate(islice(candidates, MAX_TRIED), 1):
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
        failed = next((r for r in runs if r.status != "ok"), None)
        if failed is not None and len(runs) == 1:
            yield f"the original fails on every launch that was made up: {failed.detail or failed.status}"
            if failed.status in ("unsupported", "timeout"):
                return
        elif failed is not None:
            yield f"the original fails when its threads run in another order: {failed.detail or failed.status}"
        else:
            launch = Launch(shape, seed, arguments, [r.buffers for r in runs])
            itself = [compare(p, g, o, o[0]) for p, g, o in zip(pointers(parameters), *launch.buffers, strict=True)]
            if any(c.compared for c in itself):
                useful += 1
                yield launch
            elif any(c.free for c in itself):
                yield "its results depend on the order of its threads"
            else:
                yield "it writes nothing on the tried launches"


def races(subject: Subject, launch: Launch, original: Original) -> bool:
    """Whether the original's threads race under this made-up launch, so that no result is the right one."""
    shape = launch.shape
    if original.racing is None:
        return False
    runs = original.racing.run(
        subject.index, shape.grid, shape.block, shape.shared_bytes, launch.arguments, schedules=(0,), timeout_s=60.0
    )
    return runs[0].status == "race"


def wider(subject: Subject, launch: Launch, original: Original) -> Launch | None:
    """The launch with more schedules of the original: sums of atomics may have come out alike under two by chance."""
    shape = launch.shape
    if original.program is None:
        return None
    more = original.program.run(
        subject.index, shape.grid, shape.block, shape.shared_bytes, launch.arguments, schedules=MORE_SCHEDULES
    )
    fresh = [r.buffers for r in more if r.status == "ok"]
    return replace(launch, outcomes=[*launch.outcomes, *fresh]) if fresh else None


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
