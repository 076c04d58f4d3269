"""Run each kernel's port in the emulator against the original under the 32-lane reference."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache

from agent.port.assemble import Assembled, new_path
from agent.port.build import UnitBuild, options_for, reached_text, source_tree
from agent.port.given import given_note, with_given
from agent.port.instantiate import with_instantiations, without_prints
from agent.port.launches import (
    Found,
    Launch,
    Schedule,
    Subject,
    emulate_launch,
    found_kernels,
    launches,
    missing_instances,
    nudged,
    obstacle,
    pointers,
    settled,
    signature,
    spell,
    wider,
)
from agent.port.original import Original, amd_original, build_original
from agent.port.own_arms import own_note, reached_numbers
from agent.port.reference_run import ParameterInfo
from agent.port.request import PortRequest, Project
from agent.port.result import KernelVerdict, Status, Trial
from agent.port.trials import Comparison, compare
from sandbox.emulator.loader import CodeObject, load_code_object
from sandbox.emulator.memory import Allocation
from sandbox.emulator.result import EmulationResult
from sandbox.errors import InputError
from sandbox.hip import HOST, KernelResources, compile_hip
from sandbox.hip_source import HipSource
from sandbox.toolchain import Toolchain
from sandbox.verdict import Correctness

WANTED_TRIALS = 3
"""Launches per kernel and target, with different shapes, seeds and value ranges."""
MAX_CUT = 6
"""Launches that the emulator may give up on before the kernel counts as too long for it."""
MIN_KERNEL_SECONDS = 5.0
_RANDOM = re.compile(r"curand|hiprand")


def compiled_only(builds: Sequence[UnitBuild], project: Project, reason: str) -> tuple[KernelVerdict, ...]:
    """Every compiled kernel of the user's with the evidence `compiled`, for the given reason."""
    verdicts: list[KernelVerdict] = []
    for build in builds:
        device = next(b for p, b in build.passes.items() if p != HOST and b.code_object is not None)
        for found in found_kernels(device.kernels, build.unit, project):
            verdicts.append(
                KernelVerdict(found.kernel.name, found.path, found.function.line, Correctness.COMPILED, reason)
            )
    return tuple(verdicts)


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
    pairs = found_kernels(kernels, build.unit, project)
    if not pairs:
        return []

    spelled = [spell(p.kernel.name) for p in pairs]
    original = build_original(project, build.unit, spelled, request, toolchain)
    on_amd = cache(lambda: amd_original(project, build.unit, spelled, request, toolchain))
    verdicts: list[KernelVerdict] = []
    for number, (found, name) in enumerate(zip(pairs, spelled, strict=True)):
        reason = _untried(original, number, comparable)
        if reason or time.monotonic() > deadline:
            reason = reason or "the time for the execution of this file was used up"
            kernel, line = found.kernel.name, found.function.line
            verdicts.append(KernelVerdict(kernel, found.path, line, Correctness.COMPILED, reason))
            continue
        until = _share(deadline, len(pairs) - number)
        verdict = _verdict(_subject(found, name, codes, original, number), found, original, request, until)
        numbers = reached_numbers(project, build.unit, original.words[number]) if verdict.wrong else ()
        if numbers and (amd := on_amd()).places.get(number) is not None:
            verdict = _verdict(_subject(found, name, codes, amd, number), found, amd, request, until)
        if verdict.evidence is Correctness.EMULATED:
            notes = [n for n in (given_note(original.words[number]), own_note(numbers)) if n]
            verdict = replace(verdict, reason="; ".join(notes))
        verdicts.append(verdict)
        shown = verdict.evidence is Correctness.EMULATED
        say(f"{name}: {'validated in emulation' if shown else verdict.reason}")
    return verdicts


def _untried(original: Original, number: int, comparable: bool) -> str:
    """Why a kernel cannot be compared with the original; empty when it can be tried."""
    if number in original.left_out:
        reason = f"the original cannot be run on a CPU: {original.left_out[number]}"
        return "its results are random, so there is nothing to compare" if _RANDOM.search(reason) else reason
    given = given_note(original.words.get(number, ()))
    return f"its trial does not compile, in which {given}" if given and not comparable else ""


def _subject(found: Found, name: str, codes: Mapping[str, CodeObject], original: Original, number: int) -> Subject:
    kernel = found.kernel
    return Subject(
        found.path, found.function, name, kernel.symbol, original.places[number], codes,
        kernel.max_workgroup_threads, kernel.lds_bytes, found.around,
    )  # fmt: skip


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
    names = missing_instances(source, kernels)
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


def _verdict(
    subject: Subject, found: Found, original: Original, request: PortRequest, deadline: float
) -> KernelVerdict:
    kernel, source, program = found.kernel, found.source, original.program
    assert program is not None, "a subject has an index into a program"
    parameters, names = signature(program, subject, source)

    def verdict(evidence: Correctness, reason: str, trials: Sequence[Trial] = ()) -> KernelVerdict:
        return KernelVerdict(kernel.name, subject.unit, subject.function.line, evidence, reason, tuple(trials))

    if reason := obstacle(subject.function, parameters, names, source):
        return verdict(Correctness.COMPILED, reason)
    tried = launches(subject, parameters, names, source, program, request.seed)
    trials, reason = _run_trials(subject, parameters, tried, original, deadline)
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
    subject: Subject, parameters: Sequence[ParameterInfo], tried: Iterator[Launch | str],
    original: Original, deadline: float,
) -> tuple[list[Trial], str]:  # fmt: skip
    """Up to `WANTED_TRIALS` launches on every target, and the last reason why a launch was none."""
    trials: list[Trial] = []
    done = cut = 0
    reason = ""
    for launch in tried:
        if isinstance(launch, str):
            reason = launch
        else:
            schedule: Schedule = "lockstep" if done == 0 else "random"
            made = _trials(subject, parameters, launch, original, schedule)
            if isinstance(made, str):
                reason, made = made, []
            else:
                trials = [*trials, *made]
            whole = bool(made) and all(t.status != "skipped" for t in made)
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


def _trials(
    subject: Subject, parameters: Sequence[ParameterInfo], launch: Launch, original: Original, schedule: Schedule
) -> list[Trial] | str:
    """One launch on every target, or why it shows nothing. What differs is looked at again, with what more runs of the
    original tell of it: before a port counts as wrong, its result must be none that the original may have given."""
    ended = {target: _emulated(subject, code, launch, schedule) for target, code in subject.codes.items()}

    def judged(known: Launch) -> list[Trial]:
        return [_judged(target, known, parameters, end) for target, end in ended.items()]

    made = judged(launch)
    if not _differs(made):
        return made
    known = settled(subject, launch, original)
    if isinstance(known, str):
        return known
    known = wider(subject, known, original)
    made = judged(known)
    return judged(nudged(subject, known, parameters, original)) if _differs(made) else made


def _differs(trials: Sequence[Trial]) -> bool:
    return any(t.status == "different" for t in trials)


End = tuple[EmulationResult, list[Allocation]] | str
"""How a launch ended in the emulator and the buffers it left, or why it was not begun."""


def _emulated(subject: Subject, code: CodeObject, launch: Launch, schedule: Schedule) -> End:
    try:
        return emulate_launch(code, subject.symbol, launch, schedule)
    except InputError as e:
        return str(e)


def _judged(target: str, launch: Launch, parameters: Sequence[ParameterInfo], end: End) -> Trial:
    shape, seed = launch.shape, launch.seed

    def trial(status: Status, detail: str = "") -> Trial:
        return Trial(target, shape.grid, shape.block, shape.size, seed, status, detail)

    if isinstance(end, str):
        return trial("skipped", end)
    result, buffers = end
    if result.status in ("unsupported", "budget"):
        return trial("skipped", f"the emulator stopped: {result.reason}")
    if result.status != "completed":
        return trial("failed", f"{result.status}: {result.trap or result.reason}")
    compared: list[Comparison] = [
        compare(p, expected, b.data.tobytes())
        for p, expected, b in zip(pointers(parameters), launch.expected, buffers, strict=True)
    ]
    wrong = [c.difference for c in compared if c.difference is not None]
    if wrong:
        return trial("different", wrong[0])
    if not any(c.compared for c in compared):
        return trial("skipped", "its results depend on the order of its threads or on what nothing has written")
    notes = [str(f) for f in result.findings if f.kind == "lds_race"][:1]
    counts = {
        "depend on the order of threads and were compared as a set": sum(c.unordered for c in compared),
        "depend on the order of threads and were not compared": sum(c.free for c in compared),
        "follow from what nothing has written and were not compared": sum(c.undefined for c in compared),
        "are as near as the original's own on inputs rounded otherwise": sum(c.sensitive for c in compared),
    }
    notes += [f"{count} elements {what}" for what, count in counts.items() if count]
    return trial("equal", "; ".join(notes))
