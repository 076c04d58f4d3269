"""The main path of a port: rewrite, repair, compile, look at what the compiler says, repair again; then execute."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace

from agent.port.assemble import Assembled, assemble, new_path, rename_project
from agent.port.build import UnitBuild, build_commands, build_units
from agent.port.detectors import detect
from agent.port.guardrails import refuse_edit
from agent.port.includes import includes_of
from agent.port.intake import open_project
from agent.port.lint import lint
from agent.port.logs import BuildLog, answer_log, read_log
from agent.port.macros import macros_of_the_build
from agent.port.output import ported_files, write_output
from agent.port.perl_lint import perl_lint
from agent.port.program_trial import run_programs, with_programs
from agent.port.record import store_port
from agent.port.rename import load_tables
from agent.port.repair import by_file, repair
from agent.port.request import PortRequest, Project
from agent.port.result import (
    Applied,
    Finding,
    KernelVerdict,
    Outcome,
    PortRefusal,
    PortResult,
    ProgramVerdict,
    Round,
)
from agent.port.rule_drafts import ModelEdit, drafts
from agent.port.rule_table import answer, answer_in_units
from agent.port.unused import leave_out_unused
from agent.port.validate import compiled_only, validate
from agent.shims.catalogue import entries_by_symbol
from sandbox.errors import InputError
from sandbox.hip_diagnostics import Diagnostic, merge_passes
from sandbox.target import load_target
from sandbox.toolchain import Toolchain, prepare_toolchain
from sandbox.verdict import Correctness

Listener = Callable[[str], None]


@dataclass
class _State:
    """What the rounds change."""

    texts: dict[str, str]
    assembled: Assembled
    builds: list[UnitBuild] = field(default_factory=list)
    rounds: list[Round] = field(default_factory=list)
    refusals: list[PortRefusal] = field(default_factory=list)
    model_edits: list[ModelEdit] = field(default_factory=list)


def port(request: PortRequest, listener: Listener = lambda line: None, project: Project | None = None) -> PortResult:
    """Port what the request names, or `project`, files that were read before. `listener` receives one line per step.

    Raises `InputError` for input that cannot be worked on and `ToolMissing` when there is no compiler; every other
    outcome, refusals and wrong results included, is in the result.
    """
    started = time.monotonic()
    request = replace(request, targets=tuple(dict.fromkeys(load_target(t).arch for t in request.targets)))
    _check_targets(request.targets)
    toolchain = prepare_toolchain(listener)
    build_log = read_log(request.log) if request.log is not None else None
    if build_log is not None:
        given = {d.partition("=")[0] for d in request.defines}
        fresh = tuple(d for d in build_log.definitions if d.partition("=")[0] not in given)
        request = replace(request, defines=(*request.defines, *fresh))
    with open_project(request) if project is None else nullcontext(project) as opened:
        result = _port_project(opened, request, toolchain, listener, build_log)
        result = replace(result, seconds=round(time.monotonic() - started, 2))
        if request.out is not None:
            write_output(result, opened, request)
            store_port(request, opened, result)
    return result


def _check_targets(targets: Sequence[str]) -> None:
    for name in targets:
        target = load_target(name)
        if not target.is_amd or target.wavefront_size != 64:
            raise InputError(f"{name} is no target of a port.", remedy="Choose gfx942, gfx950 or gfx90a.")


def _port_project(
    project: Project, request: PortRequest, toolchain: Toolchain, say: Listener, build_log: BuildLog | None
) -> PortResult:
    findings = [f for path, file in project.sources.items() for f in lint(path, file.text)]
    findings += [f for path in project.units for f in perl_lint(path, project.sources[path].text, toolchain)]
    state = _rewrite(project, request, toolchain, build_log)
    blocked = _blocked(state.refusals, request.targets)
    units = [u for u in project.units if u not in blocked]
    say(f"{len(project.sources)} files, {len(units)} units, {len(state.refusals)} constructs without counterpart")
    for _ in range(request.max_rounds):
        state.builds = build_units(units, project, state.assembled, request, toolchain)
        errors = _errors(state.builds)
        state.rounds[-1] = _with_errors(state.rounds[-1], state.builds)
        say(f"round {state.rounds[-1].number}: {len(errors)} errors")
        _raise_for_missing_include(errors, project, units)
        if not errors or not _next_round(state, errors, project, request, toolchain):
            break
    return _conclude(state, units, findings, project, request, toolchain, say)


def _rewrite(project: Project, request: PortRequest, toolchain: Toolchain, build_log: BuildLog | None) -> _State:
    """Round 0: rules that need no compiler, then names, then shims."""
    texts: dict[str, str] = {}
    applied: list[Applied] = []
    refusals: list[PortRefusal] = []
    macros = macros_of_the_build(project, request)
    for path, file in project.sources.items():
        repaired = repair(path, file.text, request.targets, macros=macros)
        texts[path] = repaired.text
        applied += repaired.applied
        refusals += repaired.refusals
    texts, left_out, refusals = leave_out_unused(project, texts, refusals)
    texts, renamed = rename_project(project, texts)
    applied += [*left_out, *renamed]
    if build_log is not None:
        known = frozenset([*load_tables().words, *load_tables().torch_words, *entries_by_symbol()])
        texts, from_log = answer_log(build_log, project, texts, known)
        applied += from_log
    state = _State(texts, assemble(texts, toolchain))
    applied += _shim_records(state.assembled)
    state.refusals = refusals
    state.rounds.append(Round(0, tuple(applied), {}, ()))
    return state


def _shim_records(assembled: Assembled) -> list[Applied]:
    return [
        Applied("shims/wavesmith_compat.h", f"shim:{use.name}", f"{use.contract}: {', '.join(use.symbols) or use.name}")
        for use in assembled.plan.uses
    ]


def _blocked(refusals: Iterable[PortRefusal], targets: Sequence[str]) -> set[str]:
    """Files with a refusal that holds for every target: there is nothing to compile."""
    return {r.file for r in refusals if set(r.targets) >= set(targets)}


def _next_round(
    state: _State, errors: Sequence[Diagnostic], project: Project, request: PortRequest, toolchain: Toolchain
) -> bool:
    """Answer the diagnostics: the rule table, then the skills that read them, then the model's proposals. False when
    nothing changed."""
    applied: list[Applied] = []
    rejected: list[str] = []
    texts = dict(state.assembled.files)
    back = {new_path(path): path for path in texts}
    changed_units, unit_answers = answer_in_units(texts, project.units, errors, request.rules)
    texts |= changed_units
    applied += [Applied(path, a.rule, a.detail) for path, a in unit_answers]
    for name, found in by_file(errors).items():
        path = back.get(name)
        if path is None or path in changed_units:
            continue
        fresh, records, reasons = _answered(path, texts[path], found, request)
        if request.proposer is not None and any(a.rule == "model" for a in records):
            state.model_edits.append(ModelEdit(path, texts[path], fresh, tuple(found), request.proposer.name))
        texts[path] = fresh
        applied += records
        rejected += reasons
    assembled = assemble(texts, toolchain)
    known = {use.name for use in state.assembled.plan.uses}
    applied += [a for a in _shim_records(assembled) if a.rule.removeprefix("shim:") not in known]
    changed = assembled.files != state.assembled.files or assembled.shims != state.assembled.shims
    state.texts, state.assembled = texts, assembled
    if changed or rejected:
        state.rounds.append(Round(len(state.rounds), tuple(applied), {}, (), tuple(rejected)))
    return changed


def _answered(
    path: str, text: str, found: Sequence[Diagnostic], request: PortRequest
) -> tuple[str, list[Applied], list[str]]:
    """One file's text after this round, what was applied to it and what was not taken, with the reason."""
    rejected: list[str] = []
    edited, answers = answer(text, found, own=request.rules)
    if edited != text:
        if (reason := refuse_edit(text, edited, path)) is None:
            return edited, [Applied(path, a.rule, a.detail) for a in answers], []
        rejected.append(f"{path}: {', '.join(a.rule for a in answers)}: {reason}")
    repaired = repair(path, text, request.targets, found)
    if repaired.text != text:
        return repaired.text, list(repaired.applied), rejected
    if request.proposer is not None:
        proposed = request.proposer.propose(new_path(path), text, tuple(str(d) for d in found))
        reason = "no proposal" if proposed is None else refuse_edit(text, proposed, path)
        if proposed is not None and reason is None:
            keys = "; ".join(dict.fromkeys(d.key.text for d in found))
            return proposed, [Applied(path, "model", keys)], rejected
        rejected.append(f"{path}: {reason}")
    return text, [], rejected


def _errors(builds: Iterable[UnitBuild]) -> list[Diagnostic]:
    return [d for d in merge_passes(b.diagnostics for b in builds) if d.severity == "error"]


def _with_errors(current: Round, builds: Sequence[UnitBuild]) -> Round:
    counts: Counter[str] = Counter()
    keys: Counter[str] = Counter()
    for build in builds:
        for pass_name, compiled in build.passes.items():
            counts[pass_name] += len(compiled.errors)
        keys.update(d.key.text for d in build.diagnostics if d.severity == "error")
    return replace(current, errors=dict(counts), keys=tuple(k for k, _ in keys.most_common(40)))


def _raise_for_missing_include(errors: Sequence[Diagnostic], project: Project, units: Sequence[str]) -> None:
    """A header of the user's that was not given, in a port of one unit: nothing can be said without it."""
    if len(units) != 1:
        return
    for d in errors:
        if d.key.message == "'_' file not found":
            header = d.key.header
            places = ((p, i.line) for p, f in project.sources.items() for i in includes_of(f.text) if i.name == header)
            file, line = next(places, (d.file, d.line))
            raise InputError(
                f"`{header}` is included and was not found.", file=file, line=line,
                remedy="Pass its folder with -I FOLDER, or give the folder that holds it.",
            )  # fmt: skip


def _conclude(
    state: _State,
    units: Sequence[str],
    findings: Sequence[Finding],
    project: Project,
    request: PortRequest,
    toolchain: Toolchain,
    say: Listener,
) -> PortResult:
    errors = _errors(state.builds)
    lds = [_lds_refusal(d) for d in errors if "exceeds limit" in d.message and "local memory" in d.message]
    refusals = [*state.refusals, *lds]
    errors = [d for d in errors if "local memory" not in d.message]
    findings = [
        *findings, *(f for b in state.builds for f in detect(b, state.assembled.files[b.unit], toolchain))
    ]  # fmt: skip
    kernels: tuple[KernelVerdict, ...] = ()
    programs: tuple[ProgramVerdict, ...] = ()
    built = [b for b in state.builds if any(p != "host" and c.ok and c.code_object for p, c in b.passes.items())]
    if request.execute and built and not errors:
        say("executing the port against the original")
        kernels = validate(built, project, state.assembled, request, toolchain, say)
        programs = run_programs(built, project, state.assembled, request, toolchain, kernels, say)
        kernels = with_programs(kernels, programs)
    elif built:
        reason = "it does not build for every target yet" if errors else "execution was not asked for"
        kernels = compiled_only(built, project, reason)
    outcome, summary = _outcome(errors, refusals, findings, kernels, programs)
    said = request.proposer.notes if request.proposer is not None else ()
    files = ported_files(project, state.assembled, request)
    return PortResult(
        name=project.name, targets=request.targets, outcome=outcome, summary=summary, files=files.files,
        shims=state.assembled.shims, shim_uses=state.assembled.plan.uses, patch=files.patch,
        rounds=tuple(state.rounds), diagnostics=tuple(errors), refusals=tuple(refusals), findings=tuple(findings),
        kernels=kernels, programs=programs, versions={**toolchain.versions(), "renames": load_tables().origin},
        notes=(*project.skipped, *said),
        build_commands=build_commands(units, project, state.assembled, request, toolchain),
        proposed_rules=drafts(state.model_edits, errors),
    )  # fmt: skip


def _lds_refusal(d: Diagnostic) -> PortRefusal:
    reason = f"{d.message}: the kernel's static shared memory does not fit a workgroup"
    return PortRefusal(d.file, d.line, reason, "Use smaller tiles.", "lds-over-limit", d.passes)


def _outcome(
    errors: Sequence[Diagnostic],
    refusals: Sequence[PortRefusal],
    findings: Sequence[Finding],
    kernels: Sequence[KernelVerdict],
    programs: Sequence[ProgramVerdict],
) -> tuple[Outcome, str]:
    wrong = [k.kernel for k in kernels if k.wrong] + [f"{p.what} of {p.file}" for p in programs if p.wrong]
    if wrong:
        return "nothing", f"The port builds, but {wrong[0]} gives other results than the original."
    if refusals:
        first = refusals[0]
        where = "" if len(refusals[0].targets) > 1 else f" on {first.targets[0]}"
        return "refused", f"{first.file}:{first.line}{where}: {first.reason}. {first.route}"
    if errors:
        return "nothing", f"{len(errors)} errors are left that no rule knows; the first: {errors[0]}"
    blockers = [f for f in findings if f.blocker]
    if blockers:
        return "inconclusive", f"It builds, but: {blockers[0].message} ({blockers[0].file}:{blockers[0].line})."
    shown = [k for k in kernels if k.evidence >= Correctness.EMULATED]
    if kernels and len(shown) == len(kernels):
        return "builds-now", f"Builds for every target; {len(shown)} of {len(kernels)} kernels validated in emulation."
    if not kernels:
        return _outcome_of_programs(programs)
    first_open = next(k for k in kernels if k.evidence < Correctness.EMULATED)
    return "inconclusive", (
        f"Builds for every target; {len(shown)} of {len(kernels)} kernels validated in emulation. "
        f"{first_open.kernel}: {first_open.reason}"
    )


def _outcome_of_programs(programs: Sequence[ProgramVerdict]) -> tuple[Outcome, str]:
    """Of sources without a kernel of their own."""
    if not programs:
        return "inconclusive", "Builds for every target and the host; there is no kernel to execute."
    open_ = [p for p in programs if not p.evidence.validated]
    if open_:
        first = open_[0]
        return "inconclusive", f"Builds for every target; no kernel is its own. {first.what}: {first.reason}"
    what = ", ".join(p.what for p in programs)
    if all(p.evidence is Correctness.EMULATED for p in programs):
        return "builds-now", f"Builds for every target; no kernel is its own, and {what} validated in emulation."
    notes = "; ".join(dict.fromkeys(p.reason for p in programs if p.reason)) or "it launches nothing"
    return "builds-now", f"Builds for every target; no kernel is its own, and {what} validated on the host ({notes})."
