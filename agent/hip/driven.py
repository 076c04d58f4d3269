"""Kernels that are run: launches made up from their signatures that the original survives, and runs of code objects."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from agent.hip.program import Compiler, DeviceKernel, Program
from agent.port.launches import (
    INSTRUCTION_BUDGET,
    Launch,
    Schedule,
    Subject,
    emulate_launch,
    found_kernels,
    launches,
    obstacle,
    pointers,
    races,
    signature,
)
from agent.port.original import Original, build_original
from agent.port.reference_run import ParameterInfo
from agent.port.request import PortRequest, Project
from agent.port.trials import compare
from sandbox.emulator.loader import CodeObject
from sandbox.emulator.result import Finding
from sandbox.errors import InputError

WANTED_LAUNCHES = 4
"""Launches per kernel, with different shapes, seeds and value ranges."""
_LIBRARIES = re.compile(r"cooperative_groups|\bhipcub\b|\brocprim\b|\bcub::")
"""Collectives that the CPU model has in CUDA's width only."""
MAX_DROPPED = 8
"""Launches on which the file's own code object is no yardstick; after so many the kernel counts as not driven."""


@dataclass(frozen=True)
class Run:
    """One launch of a code object in the emulator. Buffers are in argument order, as they were left."""

    status: str
    reason: str = ""
    buffers: tuple[bytes, ...] = field(default=(), repr=False)
    counters: Mapping[str, int] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    instructions: int = 0

    @property
    def completed(self) -> bool:
        return self.status == "completed"


@dataclass(frozen=True)
class Driven:
    """One kernel of the user's file with its launches, and what its own code object makes of them. `reason` says why
    there are none."""

    kernel: DeviceKernel
    parameters: tuple[ParameterInfo, ...] = ()
    launches: tuple[Launch, ...] = ()
    runs: tuple[Run, ...] = ()
    reason: str = ""
    races: Callable[[Launch], bool] = field(default=lambda launch: False, repr=False)
    """Whether the original's threads race under a launch, so that no result of it is the right one."""

    @property
    def buffers(self) -> list[ParameterInfo]:
        """What each buffer of a launch holds, those inside structures too."""
        return pointers(self.parameters)

    @property
    def names(self) -> list[str]:
        """Names of the buffers, by their parameters' position where the source names none."""
        own = [p.name for p in self.kernel.found.function.parameters]
        named = own if len(own) == len(self.parameters) else [f"argument {i}" for i in range(len(self.parameters))]
        found: list[str] = []
        for name, p in zip(named, self.parameters, strict=True):
            inside = [f"{name}.{leaf.name}" for leaf in p.leaves if leaf.pointee_bytes is not None]
            found += [name] if p.kind == "pointer" else inside
        return found

    @cached_property
    def threads(self) -> int | None:
        """Threads of a block of the first launch, which is the source's own where it has one."""
        if not self.launches:
            return None
        x, y, z = self.launches[0].shape.block
        return x * y * z


def schedule_of(number: int) -> Schedule:
    """The order of wavefronts under which launch `number` runs: the first in lockstep, the others at random."""
    return "lockstep" if number == 0 else "random"


def run_launch(code: CodeObject, symbol: str, launch: Launch, number: int, budget: int = INSTRUCTION_BUDGET) -> Run:
    """One launch of a kernel of a code object."""
    try:
        result, buffers = emulate_launch(code, symbol, launch, schedule_of(number), budget=budget, model=True)
    except InputError as e:
        return Run("refused", e.message)
    left = tuple(b.data.tobytes() for b in buffers) if result.completed else ()
    reason = str(result.trap) if result.trap is not None else result.reason
    return Run(result.status, reason, left, result.counters, result.findings, result.instructions)


@dataclass(frozen=True)
class Drivers:
    """What makes up launches for the kernels of one file. `original` is the text whose results count."""

    program: Program
    original: Project
    unit: str
    compiler: Compiler
    seed: int

    def drive(self) -> tuple[Driven, ...]:
        """Every kernel of the program with its launches, in the order of the code object."""
        kernels = list(self.program.kernels.values())
        wanted = [k for k in kernels if not self._foreign_width(k)]
        request = PortRequest(self.unit)
        built = build_original(
            self.original, self.unit, [k.name for k in wanted], request, self.compiler.toolchain, self.lanes
        )
        found: list[Driven] = []
        for kernel in kernels:
            if kernel not in wanted:
                reason = "it uses a library of collectives that the CPU model has for warps of 32 lanes only"
                found.append(Driven(kernel, reason=reason))
            else:
                found.append(self._driven(kernel, wanted.index(kernel), built))
        return tuple(found)

    @property
    def lanes(self) -> int:
        """Of a warp in the original: HIP is written for wavefronts of 64."""
        return 64 if self.unit.endswith(".hip") else 32

    def _foreign_width(self, kernel: DeviceKernel) -> bool:
        return self.lanes == 64 and _LIBRARIES.search(kernel.found.source.masked) is not None

    def _driven(self, kernel: DeviceKernel, number: int, built: Original) -> Driven:
        program, index = built.program, built.places.get(number)
        if program is None or index is None:
            reason = built.left_out.get(number, "it does not build for a CPU")
            return Driven(kernel, reason=f"it cannot be run on a CPU to compare with: {reason}")
        resources = kernel.found.kernel
        defined = found_kernels([resources], self.unit, self.original)
        found = defined[0] if defined else kernel.found
        codes = {self.compiler.target.arch: self.program.code}
        subject = Subject(
            found.path, found.function, kernel.name, kernel.symbol, index, codes,
            resources.max_workgroup_threads, resources.lds_bytes, found.around,
        )  # fmt: skip
        parameters, names = signature(program, subject, found.source)
        if reason := obstacle(found.function, parameters, names, found.source):
            return Driven(kernel, tuple(parameters), reason=reason)
        kept: list[Launch] = []
        runs: list[Run] = []
        reason, dropped = "no launch could be made up that it survives", 0
        for launch in launches(subject, parameters, names, found.source, program, self.seed):
            if isinstance(launch, str):
                reason = launch
                continue
            run = run_launch(self.program.code, kernel.symbol, launch, len(kept))
            if problem := self._problem(parameters, launch, run):
                reason, dropped = problem, dropped + 1
            else:
                kept.append(launch)
                runs.append(run)
            if len(kept) >= WANTED_LAUNCHES or dropped >= MAX_DROPPED:
                break
        reason = "" if kept else reason
        return Driven(
            kernel, tuple(parameters), tuple(kept), tuple(runs), reason, lambda launch: races(subject, launch, built)
        )

    def _problem(self, parameters: Sequence[ParameterInfo], launch: Launch, run: Run) -> str:
        """Why the file's own code object is no yardstick on this launch; empty when it agrees with the original."""
        if not run.completed:
            return f"its own code object does not end in the emulator: {run.reason or run.status}"
        for p, expected, got in zip(pointers(parameters), launch.expected, run.buffers, strict=True):
            if difference := compare(p, expected, got).difference:
                return f"its own code object gives other results than the file on a CPU: {difference}"
        return ""
