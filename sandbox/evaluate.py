"""The main path of verification: is a candidate right, and is it better? It assumes that the candidate cheats.

Static scan; calls of baseline and candidate in confined processes of their own, on recorded and secret inputs; named
checks; resources of the code objects; times where there is a GPU. What comes out says no more than what was run.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from sandbox.benchmark import TimingPlan
from sandbox.capture import choose_executor
from sandbox.cheats import BlindEdits, Finding, Severity, find_blind_edits, scan
from sandbox.correctness import informative
from sandbox.errors import InputError
from sandbox.gain import (
    COUNTED,
    Improvement,
    build_failure,
    builds,
    improvement,
    more_spills,
    profiles_of,
)
from sandbox.gate import Gate
from sandbox.harness_judge import judge_by_harness
from sandbox.isolation import Limits
from sandbox.judging import errors_of, hardware_faults, judge_calls, judge_hardware, without_findings
from sandbox.kernel import Kernel, Language
from sandbox.oracle import Reference, other_inputs, references, unanswered
from sandbox.profiler.metrics import Profile
from sandbox.statements import correctness_statement
from sandbox.target import Target
from sandbox.timed import CallTimer, Clock, RecordedCall, heard, timed_gain
from sandbox.timing_session import TimingError
from sandbox.trial_calls import PlannedCall, candidate_requests, run_baseline
from sandbox.trials import Request, Trial, run_trial, source_digest
from sandbox.unnamed import counted_or_static, mends_spills_elsewhere
from sandbox.variants import is_dear, plan_steps, reductions
from sandbox.verdict import (
    Accepted,
    Check,
    Correctness,
    Crashed,
    Inconclusive,
    NoGain,
    Speed,
    TimedOut,
    Verdict,
)
from sandbox.workload import StoredWorkload

LIMITS = Limits(wall_s=300.0)
"""What one run of a program has."""


@dataclass(frozen=True, slots=True)
class EvaluateOptions:
    """How to evaluate. `expects` names metrics that must move (`down`, `up`, `zero`), as a skill's `expects` does.

    `seed` None draws a secret one. `allow_approx` permits fewer bits in `tl.dot`. `disabled_checks` is for tests alone.
    """

    executor: str = "auto"
    limits: Limits = LIMITS
    expects: Mapping[str, str] = field(default_factory=dict)
    allow_approx: bool = False
    seed: int | None = None
    budget_s: float = 60.0
    clock: Clock = "heard"
    """What a clock of another GPU than the target may say of this candidate."""
    timing: TimingPlan | None = None
    """How to time where there is a GPU; None takes the usual plan."""
    harness: Kernel | None = None
    """The file that imports the kernel's, where the harness is not in the kernel's own file."""
    disabled_checks: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A verdict and what it rests on. `statements` are sentences that may be shown as they are."""

    verdict: Verdict
    correctness: Correctness
    checks: tuple[Check, ...] = ()
    findings: tuple[Finding, ...] = ()
    baseline_profiles: Mapping[str, Profile] = field(default_factory=dict)
    candidate_profiles: Mapping[str, Profile] = field(default_factory=dict)
    statements: tuple[str, ...] = ()
    doubt: str | None = None
    """What stands between `correctness` and a higher level."""


def evaluate(
    baseline: Kernel,
    candidate: Kernel,
    workload: StoredWorkload,
    target: Target,
    *,
    options: EvaluateOptions | None = None,
) -> Evaluation:
    """Judge one candidate. For several candidates of one baseline keep an `Evaluator`: the baseline then runs once."""
    return Evaluator(baseline, workload, target, options).evaluate(candidate)


class Evaluator:
    """One baseline, its workload and target; evaluates candidates against it.

    Raises `InputError` for languages other than Triton and for a workload of another file, `SandboxError` when no child
    process can run.
    """

    def __init__(
        self, baseline: Kernel, workload: StoredWorkload, target: Target, options: EvaluateOptions | None = None
    ) -> None:
        if baseline.language is not Language.TRITON:
            raise InputError("only Triton files are evaluated here.", file=baseline.filename)
        self.baseline = baseline
        self.workload = workload
        self.target = target
        self.options = options or EvaluateOptions()
        self.executor = choose_executor(self.options.executor)
        self.reference_executor = "interpreter" if self.executor == "emulator" else self.executor
        seed = self.options.seed if self.options.seed is not None else secrets.randbits(62)
        self._rng = np.random.default_rng(seed)
        on_gpu = self.executor == "gpu"
        self.steps = plan_steps(workload.workload, self._rng, budget_s=self.options.budget_s, reduce=on_gpu)
        self._draws = int(self._rng.integers(1, 2**31))
        """Shifts every seed of host code, which no program can know; one for all, since draws are inputs too."""
        entries = workload.workload.entries
        self._dear = frozenset(e.index for e in entries if is_dear(workload.workload, e))
        self._baseline_trial: Trial | None = None
        self._references: list[Reference] | None = None
        self._trials: dict[tuple[str, str], Trial] = {}
        self._timer: CallTimer | None = None

    # --- the main path ----------------------------------------------------------------------------------------------

    def evaluate(
        self,
        candidate: Kernel,
        *,
        parent: Kernel | None = None,
        executor: str | None = None,
        disabled_checks: frozenset[str] | None = None,
    ) -> Evaluation:
        """The verdict on one candidate. `executor` runs it instead of the one of the options.

        It is right when it does what the baseline does, and better when it improves on `parent`, a candidate that was
        judged before (the baseline without one). The baseline always runs where its results can be known whether or not
        it builds: a candidate in the emulator is compared with what the interpreter makes of the baseline.
        """
        executor = choose_executor(executor or self.executor)
        gate = Gate(self.options.disabled_checks if disabled_checks is None else disabled_checks)
        if candidate.digest == self.baseline.digest:
            reason = "the candidate is the baseline, byte for byte"
            return Evaluation(NoGain(Correctness.NONE, reason), Correctness.NONE)
        findings = self._scan(gate, candidate)
        if (rejected := gate.first()) is not None:
            return Evaluation(rejected, Correctness.NONE, gate.checks(), findings)
        expected = self.references
        trial = self._candidate_trial(candidate, expected, executor)
        before = self._parent_trial(parent, expected, executor)
        base = {"findings": findings, "baseline_profiles": profiles_of(before, self.target)}
        failure = self._outright_failure(gate, trial, candidate, expected)
        if failure is not None:
            return Evaluation(failure, Correctness.NONE, gate.checks(), **base)  # type: ignore[arg-type]
        if executor == "emulator":
            if hardware_faults(trial):
                judge_hardware(gate, trial, self._emulation(self.baseline, expected))
            trial = without_findings(trial)
        judge_calls(gate, expected, trial, self.baseline_trial)
        base["candidate_profiles"] = profiles_of(trial, self.target)
        if (rejected := gate.first()) is not None:
            return Evaluation(rejected, Correctness.COMPILED, gate.checks(), **base)  # type: ignore[arg-type]
        blind = find_blind_edits(self.baseline, candidate)
        level, doubt = self._level(gate, candidate, trial, expected, blind, executor)
        gain = self._improvement(parent or self.baseline, before, candidate, trial, expected)
        built_now = not builds(before) and builds(trial)
        worth_it = gain.gain is not None or built_now or parent is None
        if level is Correctness.INTERPRETED and executor == "interpreter" and worth_it and not blind.orders:
            level, doubt = self._emulated_too(gate, candidate, expected)
        if (rejected := gate.first()) is not None:
            return Evaluation(rejected, Correctness.COMPILED, gate.checks(), **base)  # type: ignore[arg-type]
        emulated_only = level is Correctness.EMULATED and executor == "interpreter"
        calls = len(self._emulation(candidate, expected).calls) if emulated_only else len(expected)
        verdict, statements = self._verdict(trial, level, doubt, gate, gain, calls, built_now=built_now)
        return Evaluation(
            verdict,
            level,
            gate.checks(),
            statements=statements,
            doubt=doubt,
            **base,  # type: ignore[arg-type]
        )

    def _level(
        self,
        gate: Gate,
        candidate: Kernel,
        trial: Trial,
        expected: list[Reference],
        blind: BlindEdits,
        executor: str,
    ) -> tuple[Correctness, str | None]:
        """How far the candidate is shown to be right, and what is missing; the emulator and the harness are asked where
        the executed calls show nothing."""
        level, doubt = self._correctness(trial, expected, blind, executor)
        if doubt is not None and level is Correctness.COMPILED and expected and executor == "interpreter":
            level, doubt = (level, doubt) if blind.orders else self._emulated(gate, candidate, expected, doubt)
        if not expected and level is Correctness.COMPILED:
            level, doubt = self._by_harness(gate, candidate, doubt or "")
        return level, doubt

    def _verdict(
        self,
        trial: Trial,
        level: Correctness,
        doubt: str | None,
        gate: Gate,
        gain: Improvement,
        calls: int,
        *,
        built_now: bool,
    ) -> tuple[Verdict, tuple[str, ...]]:
        said = correctness_statement(level, self.target, calls=calls, device=trial.device)
        statements = (said, *((doubt,) if doubt else ()), *((gain.gain.statement,) if gain.gain else (gain.reason,)))
        checks = gate.checks()
        if level < Correctness.COMPILED or (doubt is not None and level <= Correctness.COMPILED and not calls):
            return Inconclusive(doubt or "nothing was shown", checks), statements
        if gain.gain is not None or built_now:
            speed = gain.gain.level if gain.gain is not None else Speed.NONE
            return Accepted(level, speed, gain.gain, built_now, checks), statements
        return NoGain(level, gain.reason, checks, gain.timed_on, gain.doubted), statements

    # --- steps ------------------------------------------------------------------------------------------------------

    def _scan(self, gate: Gate, candidate: Kernel) -> tuple[Finding, ...]:
        findings = tuple(scan(self.baseline, candidate))
        for finding in findings:
            allowed = finding.check == "lower-precision" and self.options.allow_approx
            if finding.severity is Severity.REJECT and not allowed:
                place = f"{finding.filename} line {finding.line}"
                gate.fail(finding.check, f"{place}: {finding.message}", {"line": finding.line})
        gate.ran(("harness-edit", "monkeypatch", "introspection", "system-access", "dynamic-code", "hidden-state"))
        return findings

    @property
    def baseline_trial(self) -> Trial:
        """The baseline's calls: plain, in float64 throughout, with programs in another order, and once more."""
        if self._baseline_trial is None:
            entries = self.workload.workload.entries
            wanted = [PlannedCall(s, n, known=entries[s.entry].known, huge=any(reductions(entries[s.entry])),
                                  dear=s.entry in self._dear) for n, s in enumerate(self.steps)]  # fmt: skip

            def run(requests: list[Request], executor: str, wall_s: float) -> Trial:
                limits = replace(self.options.limits, wall_s=min(self.options.limits.wall_s, wall_s))
                return self._run(self.baseline, requests, executor, limits)

            self._baseline_trial = run_baseline(wanted, self.reference_executor, run)
        return self._baseline_trial

    @property
    def references(self) -> list[Reference]:
        """What the baseline answered, the same for every candidate."""
        if self._references is None:
            self._references = references(self.workload, self.steps, self.baseline_trial)
        return self._references

    def _parent_trial(self, parent: Kernel | None, expected: list[Reference], executor: str) -> Trial:
        if parent is None or parent.digest == self.baseline.digest:
            return self.baseline_trial
        return self._candidate_trial(parent, expected, executor)

    def _candidate_trial(self, candidate: Kernel, expected: list[Reference], executor: str) -> Trial:
        """The candidate's calls: every step the baseline answers, in an order of their own, some of them twice."""
        key = (candidate.digest, executor)
        if key not in self._trials:
            shuffle = not any(call.orderings for call in self.baseline_trial.calls)
            requests = candidate_requests(expected, self.steps, executor, self._dear, self._rng, shuffle=shuffle)
            self._trials[key] = self._run(candidate, requests, executor)
        return self._trials[key]

    def _run(self, kernel: Kernel, requests: list[Request], executor: str, limits: Limits | None = None) -> Trial:
        limits, seed = limits or self.options.limits, self._draws
        return run_trial(kernel, self.workload, self.target, requests, executor=executor, limits=limits, seed=seed)

    def _outright_failure(
        self, gate: Gate, trial: Trial, candidate: Kernel, expected: list[Reference]
    ) -> Verdict | None:
        """What ends an evaluation before any result is compared."""
        if trial.failure is not None and "channel was misused" in trial.failure:
            gate.fail("result-channel", trial.failure)
        if trial.source_sha256 is not None and trial.source_sha256 != source_digest(candidate):
            gate.fail("source-identity", "the child loaded another source than the candidate's")
        gate.ran(("result-channel", "source-identity"))
        if (rejected := gate.first()) is not None:
            return rejected
        if trial.import_error is not None:
            return Crashed(f"importing the candidate raised {trial.import_error}", line=trial.import_error.line)
        if (unbuilt := build_failure(trial)) is not None:
            return unbuilt
        if trial.ended.ending == "timeout":
            return TimedOut(self.options.limits.wall_s)
        if trial.failure is not None:
            return Crashed(trial.failure, signal=trial.ended.signal)
        return self._first_error(gate, trial, expected)

    def _first_error(self, gate: Gate, trial: Trial, expected: list[Reference]) -> Verdict | None:
        errors = errors_of(expected, trial)
        for call in sorted(errors.values(), key=lambda c: c.request.number):
            assert call.error is not None
            variant = call.request.step.variant
            if variant.kind == "recorded":
                return Crashed(f"on {variant.name} it raised {call.error}", line=call.error.line)
            check = {"sizes": "held-out-shapes", "scalars": "held-out-arguments"}.get(variant.kind, "tolerance")
            gate.fail(check, f"on {variant.name} it raised {call.error}, the baseline does not")
        return gate.first()

    def _by_harness(self, gate: Gate, candidate: Kernel, doubt: str) -> tuple[Correctness, str | None]:
        """Where the baseline answers nothing, what the harness compares is all there is to compare."""
        outside = self.workload.workload.harness_filename is not None
        if self.executor != "interpreter" or (outside and self.options.harness is None):
            return Correctness.COMPILED, doubt
        if any(launch.execution.over_budget for launch in self.workload.workload.launches):
            return Correctness.COMPILED, doubt  # the harness would launch as much once more, three times
        seeds = [int(self._rng.integers(1, 2**31)) for _ in range(2)]
        passed, reason = judge_by_harness(
            candidate, self.target, self.options.harness, executor=self.executor, limits=self.options.limits,
            seeds=seeds,
        )  # fmt: skip
        if passed is False:
            gate.fail("tolerance", reason)
        return (Correctness.INTERPRETED, None) if passed else (Correctness.COMPILED, f"{doubt}; {reason}")

    def _emulation(self, kernel: Kernel, expected: list[Reference]) -> Trial:
        """The code objects of a program executed in the emulator, on the recorded inputs and on one drawn anew."""
        key = (kernel.digest, "emulator, a few inputs")
        if key not in self._trials:
            chosen = [r for r in expected if r.step.variant.kind == "recorded"]
            chosen += [r for r in expected if r.step.variant.kind == "seed" or r.step.variant.reduced][:1]
            chosen = chosen or expected[-2:]
            requests = [Request(r.step, r.number, compile=True, watch=r.call.changed) for r in chosen]
            self._trials[key] = self._run(kernel, requests, "emulator")
        return self._trials[key]

    def _emulated(
        self, gate: Gate, candidate: Kernel, expected: list[Reference], doubt: str
    ) -> tuple[Correctness, str | None]:
        """Execute the candidate's code objects for what the interpreter could not show."""
        if not self.target.is_amd or not any(informative(r.results) for r in expected):
            return Correctness.COMPILED, doubt
        trial = self._emulation(candidate, expected)
        if trial.failure is not None:
            return Correctness.COMPILED, f"{doubt}; emulating it failed: {trial.failure}"
        if hardware_faults(trial):
            judge_hardware(gate, trial, self._emulation(self.baseline, expected))
        unexecuted = [x.reason for c in trial.calls for x in c.launches if not x.executed]
        if unexecuted or not any(c.launches for c in trial.calls):
            reason = unexecuted[0] if unexecuted else "it launched nothing"
            return Correctness.COMPILED, f"{doubt}; the emulator did not run it: {reason}"
        judge_calls(gate, expected, without_findings(trial), self.baseline_trial)
        return Correctness.EMULATED, other_inputs(expected)

    def _emulated_too(self, gate: Gate, candidate: Kernel, expected: list[Reference]) -> tuple[Correctness, str | None]:
        """What the interpreter showed, shown for the candidate's code objects too, unless that is out of reach.

        Code of the compiler that is wrong for the baseline as well is no reproach to the candidate.
        """
        own = Gate(gate.disabled)
        level, doubt = self._emulated(own, candidate, expected, "")
        if level is not Correctness.EMULATED:
            return Correctness.INTERPRETED, other_inputs(expected)
        if own.failures and builds(self.baseline_trial):
            theirs = Gate(gate.disabled)
            self._emulated(theirs, self.baseline, expected, "")
            shared = {f.check for f in theirs.failures}
            if all(f.check in shared for f in own.failures):
                return Correctness.INTERPRETED, "emulated, the code objects of both versions give other results"
        gate.failures += own.failures
        return level, doubt

    def _improvement(
        self, parent: Kernel, before: Trial, candidate: Kernel, after: Trial, expected: list[Reference]
    ) -> Improvement:
        """The strongest claim at hand: times on a GPU, counts of emulated runs where a count is what should move, else
        the code objects."""
        if after.executor != "gpu" or not expected:
            return self._untimed(parent, before, candidate, after, expected)
        decides = after.device_arch == self.target.arch or self.options.clock == "alone"
        code = (profiles_of(before, self.target), profiles_of(after, self.target))
        unnamed = not self.options.expects and mends_spills_elsewhere(after.device_arch, *code, self.target)
        if (self.options.clock == "absent" or unnamed) and not decides:
            return self._untimed(parent, before, candidate, after, expected)
        timed = self._timed(parent, candidate, expected)
        return timed if decides else heard(timed, lambda: self._untimed(parent, before, candidate, after, expected))

    def _untimed(
        self, parent: Kernel, before: Trial, candidate: Kernel, after: Trial, expected: list[Reference]
    ) -> Improvement:
        expects = self.options.expects
        static = improvement(before, after, expects, self.target)
        if not self.target.is_amd or not expected or (expects and not COUNTED & expects.keys()):
            return static
        if spilled := more_spills(before, after, self.target):
            return Improvement(None, spilled)
        old, new = (self._emulation(k, expected) for k in (parent, candidate))
        return counted_or_static(old, new, static, expects, self.target)

    def _timed(self, parent: Kernel, candidate: Kernel, expected: list[Reference]) -> Improvement:
        if self._timer is None:
            recorded = [RecordedCall.of(r) for r in expected if r.step.variant.kind == "recorded"]
            self._timer = CallTimer(self.workload, recorded, self.options.timing)
        try:
            calls = self._timer.time(parent, candidate)
        except TimingError as e:
            return Improvement(None, f"the times could not be taken: {str(e).splitlines()[0]}", doubted=True)
        return timed_gain(calls, self.target)

    def _correctness(
        self, trial: Trial, expected: list[Reference], blind: BlindEdits, executor: str
    ) -> tuple[Correctness, str | None]:
        """The level that the executed calls reach, and what is missing to a higher one."""
        if not expected:
            reason = unanswered(self.baseline_trial)
            return (Correctness.COMPILED if builds(trial) else Correctness.NONE), reason
        ran = [c for c in trial.calls if c.request.execute and c.skipped is None and c.error is None]
        unexecuted = [launch.reason for c in ran for launch in c.launches if not launch.executed]
        if unexecuted:
            return Correctness.COMPILED, f"not every launch of the candidate could be executed: {unexecuted[0]}"
        if not any(informative(r.results) for r in expected):
            return Correctness.COMPILED, "the results are constant or not finite on every input: agreement says nothing"
        if executor == "interpreter":
            if blind.only:
                return Correctness.COMPILED, f"the interpreter cannot see what changed: {', '.join(blind.options[:4])}"
            if blind.semantic:
                return Correctness.COMPILED, f"the interpreter cannot check {', '.join(blind.semantic[:3])}"
            return Correctness.INTERPRETED, other_inputs(expected)
        if executor == "emulator" and blind.orders:
            return Correctness.COMPILED, f"one processor cannot show that {', '.join(blind.orders[:3])} is right"
        if executor == "emulator":
            return Correctness.EMULATED, other_inputs(expected)
        if executor == "gpu":
            here = trial.device_arch == self.target.arch
            return (Correctness.EXECUTED if here else Correctness.EXECUTED_ELSEWHERE), other_inputs(expected)
        return Correctness.COMPILED, "nothing was executed"
