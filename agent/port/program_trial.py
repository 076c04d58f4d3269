"""Run a port as a whole program, natively with its kernels in the emulator, against the original on the CPU model."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, replace

from agent.port.assemble import Assembled, new_path
from agent.port.build import UnitBuild, include_folders, options_for, reached_text, source_tree
from agent.port.given import given_note, with_given
from agent.port.includes import PathIndex, closure
from agent.port.items import Item
from agent.port.program_output import difference, unstable
from agent.port.program_source import (
    ENTRY_HEADER,
    entries,
    entry_main,
    has_main,
    host_headers,
    ported_program,
    with_launches_as_calls,
    without_device_prints,
)
from agent.port.reference_model import model_namespaces
from agent.port.reference_run import OriginalRun, ReferenceBuildError, build_program, run_program
from agent.port.reference_source import device_files
from agent.port.request import PortRequest, Project
from agent.port.result import KernelVerdict, ProgramVerdict
from agent.port.slice import Slice
from sandbox.hip import HOST, HipBuild, compile_hip
from sandbox.hip_source import HipSource
from sandbox.host_program import HostProgram, ProgramRun, build_host_program
from sandbox.isolation import Limits
from sandbox.toolchain import Toolchain
from sandbox.verdict import Correctness

RUN_SECONDS = 120.0
_ELSEWHERE = re.compile(r"\b(chrono|clock_gettime|gettimeofday|clock|time|getpid|random_device|warpSize|__DATE__)\b")
"""What a host asks for that no two runs agree on, or two devices."""
_USES = {"thrust": r"\bthrust\b", "blaslt": r"\bcublasLt"}


@dataclass(frozen=True)
class _Program:
    """What of a unit is run: its `main`, or functions called by a driver."""

    unit: str
    functions: tuple[Item, ...]

    @property
    def names(self) -> list[str]:
        return [n for f in self.functions for n in f.names]

    @property
    def what(self) -> str:
        return ", ".join(f"{n}()" for n in self.names) or "main()"


def run_programs(
    builds: Sequence[UnitBuild], project: Project, assembled: Assembled, request: PortRequest, toolchain: Toolchain,
    kernels: Sequence[KernelVerdict], say: Callable[[str], None] = lambda line: None,
) -> tuple[ProgramVerdict, ...]:  # fmt: skip
    """Verdicts of the units whose kernels have not all been shown right by themselves, or that have none."""
    verdicts: list[ProgramVerdict] = []
    deadline = time.monotonic() + request.execute_seconds
    texts = {path: file.text for path, file in project.sources.items()}
    for build in builds:
        paths = closure([build.unit], PathIndex.of(texts), texts.get)
        own = [k for k in kernels if k.file in paths]
        program = _program(build.unit, project)
        if program is None or (own and all(k.evidence is Correctness.EMULATED for k in own)):
            continue
        if project.uses_torch or time.monotonic() > deadline:
            continue
        left = [k.kernel for k in own if k.evidence is not Correctness.EMULATED]
        verdicts.append(_verdict(_Trial(program, build, project, assembled, request, toolchain, deadline), left))
        say(f"{program.what}: {'validated' if verdicts[-1].evidence.validated else verdicts[-1].reason}")
    return tuple(verdicts)


def _program(unit: str, project: Project) -> _Program | None:
    source = HipSource(project.sources[unit].text)
    if has_main(source):
        return _Program(unit, ())
    found = tuple(entries(source))
    return _Program(unit, found) if found else None


@dataclass(frozen=True)
class _Trial:
    """A program with all that it is built from."""

    program: _Program
    build: UnitBuild
    project: Project
    assembled: Assembled
    request: PortRequest
    toolchain: Toolchain
    deadline: float

    @property
    def seconds(self) -> float:
        """What one run may take."""
        return max(5.0, min(RUN_SECONDS, self.deadline - time.monotonic()))


def _verdict(trial: _Trial, kernels: Sequence[str]) -> ProgramVerdict:
    """The verdict of a program; `kernels` are the ones that nothing else shows right."""
    program = trial.program

    def verdict(reason: str, **more: object) -> ProgramVerdict:
        return ProgramVerdict(program.unit, program.what, Correctness.COMPILED, reason, **more)  # type: ignore[arg-type]

    try:
        binary, words = _original(program, trial.project, trial.request, trial.toolchain)
    except ReferenceBuildError as e:
        return verdict(f"the original's host code cannot be run on a CPU: {e}")
    runs = run_program(binary, trial.seconds)
    if (why := _unusable(runs)) is not None:
        return verdict(why)
    launched: dict[str, int] = {}
    ported = _Ported.of(trial)
    symbols: set[str] | None = None
    for target in ported.codes:
        run = ported.run(target)
        if run.status != "ended":
            return verdict(f"{target}: {run.reason}", launched=launched)
        launched[target] = len(run.launched)
        symbols = set(run.launched) if symbols is None else symbols & set(run.launched)
        found = difference(runs, run)
        if found is not None and _ELSEWHERE.search(trial.project.sources[program.unit].text):
            return verdict(
                f"{target}: {found}; it asks for the time, a random seed or the warp size, so this may differ"
            )
        if found is not None:
            return verdict(f"{target}: {found}", launched=launched, wrong=True)
    unmade, idle = (re.findall(rf"^{word} (\w+)$", runs[0].stdout, re.M) for word in ("unmade", "idle"))
    if unmade and len(unmade) == len(program.names):
        return verdict(f"no arguments can be made up for {', '.join(unmade)}")
    if idle and len({*unmade, *idle}) == len(program.names):
        return verdict(f"nothing that {', '.join(idle)} does could be compared")
    notes = [f"not called: {', '.join(unmade)}"] if unmade else []
    notes += [f"nothing to compare: {', '.join(idle)}"] if idle else []
    notes += [note] if (note := given_note(words)) else []
    shown = tuple(k for k in kernels if _matters(ported.symbol(k), symbols or set(), runs, ported))
    level = Correctness.EMULATED if all(launched.values()) else Correctness.INTERPRETED
    return replace(verdict("; ".join(notes), launched=launched, kernels=shown), evidence=level)


def _matters(symbol: str | None, launched: Set[str], runs: Sequence[OriginalRun], ported: _Ported) -> bool:
    """Whether the output of the port is another when a kernel that it launches is left out."""
    if symbol is None or symbol not in launched or time.monotonic() > ported.trial.deadline:
        return False
    without = ported.run(next(iter(ported.codes)), skip=(symbol,))
    return without.status == "trapped" or (without.status == "ended" and difference(runs, without) is not None)


def _original(
    program: _Program, project: Project, request: PortRequest, toolchain: Toolchain
) -> tuple[bytes, frozenset[str]]:
    """The original as a program for the CPU, and all words that it leads to. Raises `ReferenceBuildError`."""
    texts = device_files(project, program.unit)
    whole = "\n".join(texts.values())
    files = {path: with_launches_as_calls(without_device_prints(text)) for path, text in texts.items()}
    sliced = Slice(files, model_namespaces() | {"thrust"}, host=True)
    roots = program.names or ["main"]
    kept = sliced.texts(roots)
    headers = ["runtime", *(n for n, pattern in _USES.items() if re.search(pattern, whole))]
    main = [
        *(f"#define {name} {value or 1}" for name, _, value in (d.partition("=") for d in request.defines)),
        *(f'#include "wavesmith_{n}.h"' for n in headers), f'#line 1 "{program.unit}"', kept[program.unit],
        entry_main(program.functions, whole, hip=False),
    ]  # fmt: skip
    tree = {**host_headers(), **kept, program.unit: "\n".join(main)}
    numbers = sliced.reached([*roots, "operator"])
    words = frozenset().union(*(sliced.items[n][1].words for n in numbers))
    return build_program(tree, program.unit, toolchain, [".", *include_folders(project)]), words


def _unusable(runs: Sequence[OriginalRun]) -> str | None:
    """Why nothing can be compared with these runs of the original."""
    for run in runs:
        if run.code is None:
            return "the original did not end in time on a CPU"
        if 30 <= run.code <= 34 or run.code > 128:
            said = run.stderr.strip().splitlines()[-1:] or [f"status {run.code}"]
            return f"the original fails on a CPU: {said[0][:200]}"
    return unstable(runs)


@dataclass(frozen=True)
class _Ported:
    """The port as a linked program, and its device code per target."""

    trial: _Trial
    linked: HostProgram
    codes: Mapping[str, HipBuild]

    @classmethod
    def of(cls, trial: _Trial) -> _Ported:
        program, unit = trial.program, trial.program.unit
        files, headers = with_given(trial.assembled.files)
        for path in files:
            files[path] = without_device_prints(files[path]) if path != unit else files[path]
        files[unit] = ported_program(files[unit], program.functions)
        headers |= {ENTRY_HEADER: host_headers()[ENTRY_HEADER]} if program.names else {}
        assembled = replace(trial.assembled, files=files, shims={**trial.assembled.shims, **headers})
        tree = source_tree(trial.project, assembled, trial.request, unit)
        options = options_for(reached_text(unit, trial.project, assembled))
        linked = build_host_program(tree, new_path(unit), trial.toolchain, options)
        targets = [p for p in trial.build.passes if p != HOST]
        return cls(trial, linked, {t: compile_hip(tree, new_path(unit), t, trial.toolchain, options) for t in targets})

    def symbol(self, kernel: str) -> str | None:
        """What a kernel (demangled) is called in the code object."""
        return next((k.symbol for c in self.codes.values() for k in c.kernels if k.name == kernel), None)

    def run(self, target: str, skip: Sequence[str] = ()) -> ProgramRun:
        compiled = self.codes[target]
        if not compiled.ok or compiled.code_object is None:
            said = str(compiled.errors[0]) if compiled.errors else "no code"
            return ProgramRun("unknown", reason=f"it does not compile as a program: {said}")
        return self.linked.run(
            compiled.code_object, target, Limits(wall_s=self.trial.seconds, memory_bytes=4 * 2**30), skip=skip
        )


def with_programs(kernels: Sequence[KernelVerdict], programs: Sequence[ProgramVerdict]) -> tuple[KernelVerdict, ...]:
    """The kernels' verdicts with what programs show of those that could not be tried by themselves."""
    shown = {
        (p.file, k): f"as launched by {p.what}, whose output shows it"
        for p in programs
        for k in p.kernels
        if p.evidence is Correctness.EMULATED
    }
    return tuple(
        replace(k, evidence=Correctness.EMULATED, reason=shown[k.file, k.kernel])
        if (k.file, k.kernel) in shown and not any(t.status in ("different", "failed") for t in k.trials) else k
        for k in kernels
    )  # fmt: skip
