"""The bench of the search for HIP: candidates compiled for the target, run in the emulator, compared and counted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from agent.candidate import Judgement, Measurement, Proposal
from agent.events import Progress
from agent.hip.baseline import HipBaseline, measurement_of
from agent.hip.comparing import CHECKS, FAULTS, Compared, judge_kernel
from agent.hip.driven import Driven, Run, run_launch
from agent.hip.host import host_text
from agent.hip.program import Program
from agent.job import JobRequest
from agent.port.launches import INSTRUCTION_BUDGET
from sandbox.gain import (
    COUNTED,
    MODELLED,
    Improvement,
    improvement_in_counts,
    modelled_improvement,
    more_spills_in,
    static_improvement,
    summed,
)
from sandbox.gate import Gate
from sandbox.kernel import Kernel
from sandbox.profiler.metrics import changes_between
from sandbox.profiler.static import compare_static
from sandbox.statements import correctness_statement, static_statement
from sandbox.target import Target
from sandbox.unnamed import Side, unnamed_or_static
from sandbox.verdict import Accepted, CompileFailed, Correctness, Crashed, Gain, Inconclusive, NoGain, Speed, Verdict

_SLOWER = 8
"""A candidate may take so many times the instructions of the file before its run is given up."""


@dataclass
class HipBench:
    """Measures and judges versions of one HIP file. Each is compiled, and each of its kernels run, once."""

    request: JobRequest
    baseline: HipBaseline
    progress: Progress
    _programs: dict[str, Program] = field(default_factory=dict)
    _runs: dict[tuple[str, str], tuple[Run, ...]] = field(default_factory=dict)

    def measure(self, kernel: Kernel) -> Measurement:
        program = self.program(kernel)
        runs = {s: r for (digest, s), r in self._runs.items() if digest == kernel.digest}
        if kernel.digest == self.baseline.program.kernel.digest:
            runs = {d.kernel.symbol: d.runs for d in self.baseline.driven}
        return measurement_of(program, runs, self.request)

    def judge(self, baseline: Measurement, proposal: Proposal) -> Judgement:
        """Whether the proposal does what the user's file does, and is better than `baseline`."""
        start, parent = self.baseline.program, self.program(baseline.kernel)
        program = self.program(proposal.kernel)
        changes = changes_between(parent.profiles, program.profiles)
        if program.failures:
            first = program.failures[0]
            return Judgement(CompileFailed(first.message, file=first.kernel, line=first.line), (), changes)
        if start.failures:
            doubt = "the file did not build, so there is nothing that its results could be compared with"
            built = Accepted(Correctness.COMPILED, Speed.NONE, None, built_now=True)
            return Judgement(built, (doubt,), changes, doubt)
        if proposal.kernel.digest == start.kernel.digest:
            reason = "the candidate is the baseline, byte for byte"
            return Judgement(NoGain(Correctness.NONE, reason), (reason,), changes)
        gate = Gate()
        changed = program.changed_from(start)
        verdict, compared = self._results(gate, program, changed)
        if verdict is not None:
            return Judgement(verdict, (), changes)
        shown = self._level(proposal.kernel, changed, compared)
        gain = self._improvement(parent, program, _expectations(proposal))
        return self._judgement(gate, gain, shown, compared, changes)

    def program(self, kernel: Kernel) -> Program:
        """A version of the file, compiled."""
        if kernel.digest == self.baseline.program.kernel.digest:
            return self.baseline.program
        if kernel.digest not in self._programs:
            self._programs[kernel.digest] = self.baseline.compiler.program(kernel, self.baseline.threads)
        return self._programs[kernel.digest]

    def _results(
        self, gate: Gate, program: Program, changed: tuple[str, ...]
    ) -> tuple[Verdict | None, dict[str, Compared]]:
        """What rejects the candidate, if anything does, and how much of each changed kernel was compared."""
        compared: dict[str, Compared] = {}
        crashed: Crashed | Inconclusive | None = None
        for driven in self.baseline.driven:
            if driven.kernel.symbol not in changed:
                continue
            if driven.kernel.symbol not in program.kernels:
                gate.fail("kernel-not-launched", f"{driven.kernel.name} is no kernel of the candidate")
                continue
            runs = self.runs(program, driven)
            compared[driven.kernel.symbol] = judge_kernel(gate, driven, runs)
            crashed = crashed or _not_ended(driven, runs)
        return gate.first() or crashed, compared

    def runs(self, program: Program, driven: Driven) -> tuple[Run, ...]:
        """A kernel's launches with the code of one version of the file."""
        if program is self.baseline.program:
            return driven.runs
        key = (program.kernel.digest, driven.kernel.symbol)
        if key not in self._runs:
            budgets = [min(INSTRUCTION_BUDGET, _SLOWER * r.instructions + 100_000) for r in driven.runs]
            self._runs[key] = tuple(
                run_launch(program.code, driven.kernel.symbol, launch, n, budget)
                for n, (launch, budget) in enumerate(zip(driven.launches, budgets, strict=True))
            )
        return self._runs[key]

    def _level(
        self, kernel: Kernel, changed: tuple[str, ...], compared: Mapping[str, Compared]
    ) -> tuple[Correctness, str | None]:
        """How far the candidate is shown to be right, and what is missing."""
        if host_text(kernel) != host_text(self.baseline.program.kernel):
            return Correctness.COMPILED, "host code or a constant changed, and only kernels are executed"
        if not changed:
            run = all(d.launches for d in self.baseline.driven)
            return (Correctness.EMULATED, None) if run else (Correctness.COMPILED, "its code is that of the file")
        for driven in self.baseline.driven:
            found = compared.get(driven.kernel.symbol, Compared())
            if driven.kernel.symbol in changed and not found.elements:
                why = driven.reason or "its results depend on the order of its threads"
                return Correctness.COMPILED, f"{driven.kernel.name} was not compared: {why}"
        free = sum(c.free for c in compared.values())
        doubt = f"{free} elements depend on the order of threads and were not compared" if free else None
        return Correctness.EMULATED, doubt

    def _improvement(self, parent: Program, program: Program, expects: Mapping[str, str]) -> Improvement:
        """The strongest claim at hand: counts of emulated runs where a count is what should move, else the code
        objects, else what the emulator predicts."""
        if not expects:
            return self._unnamed(parent, program)
        static = static_improvement(parent.profiles, program.profiles, expects, self.request.target)
        wanted = (COUNTED | MODELLED) & expects.keys()
        if static.gain is not None and not COUNTED & expects.keys():
            return static
        if not wanted:
            return static
        if spilled := more_spills_in(parent.profiles, program.profiles):
            return Improvement(None, spilled)
        counts = self._counts(parent, program)
        if counts is None:
            return static
        counted = improvement_in_counts(*counts, expects, self.request.target)
        if counted.gain is not None:
            return Improvement(_with_price(counted.gain, parent, program, self.request.target))
        if static.gain is not None:
            return static
        predicted = modelled_improvement(*counts, expects, self.request.target)
        return predicted if predicted.gain is not None or not COUNTED & expects.keys() else counted

    def _unnamed(self, parent: Program, program: Program) -> Improvement:
        """What got better where nobody said what should."""
        static = static_improvement(parent.profiles, program.profiles, {}, self.request.target)
        counts = self._counts(parent, program)
        if counts is None:
            return static
        before, after = Side(counts[0], parent.profiles), Side(counts[1], program.profiles)
        return unnamed_or_static(before, after, static, self.request.target)

    def _counts(self, parent: Program, program: Program) -> tuple[dict[str, int], dict[str, int]] | None:
        """Counters of all launches of the kernels whose code is not the parent's; None when one was not run."""
        changed = program.changed_from(parent)
        driven = [d for d in self.baseline.driven if d.kernel.symbol in changed]
        if not driven or any(not d.launches for d in driven):
            return None
        sides = []
        for side in (parent, program):
            runs = [r for d in driven for r in self.runs(side, d)]
            if not all(r.completed for r in runs):
                return None
            sides.append(summed(r.counters for r in runs))
        return sides[0], sides[1]

    def _judgement(
        self, gate: Gate, gain: Improvement, shown: tuple[Correctness, str | None],
        compared: Mapping[str, Compared], changes: Mapping[str, tuple[float, float]],
    ) -> Judgement:  # fmt: skip
        level, doubt = shown
        launches = sum(c.launches for c in compared.values())
        gate.ran((*CHECKS, *FAULTS), f"{launches} launches" if launches else "")
        said = correctness_statement(level, self.request.target, calls=launches)
        statements = (said, *((doubt,) if doubt else ()), gain.gain.statement if gain.gain else gain.reason)
        verdict: Verdict = NoGain(level, gain.reason, gate.checks())
        if gain.gain is None and not level.validated and doubt is not None:
            verdict = Inconclusive(doubt, gate.checks())
        if gain.gain is not None:
            verdict = Accepted(level, gain.gain.level, gain.gain, checks=gate.checks())
        return Judgement(verdict, statements, changes, doubt)


def _with_price(gain: Gain, parent: Program, program: Program, target: Target) -> Gain:
    """The gain with what got worse in the code objects for it."""
    worse: dict[str, tuple[float, float]] = {}
    for name, old in parent.profiles.items():
        if (new := program.profiles.get(name)) is not None:
            worse |= compare_static(old, new, {}, target).worsened
    return replace(gain, statement=f"{gain.statement}; {static_statement(worse)}") if worse else gain


def _not_ended(driven: Driven, runs: tuple[Run, ...]) -> Crashed | Inconclusive | None:
    """What a candidate's launch that did not end says, where the file's own did."""
    for run in runs:
        if run.status in ("unsupported", "budget"):
            return Inconclusive(f"the emulator stopped {driven.kernel.name}: {run.reason or run.status}")
        if not run.completed:
            return Crashed(f"{driven.kernel.name}: {run.reason or run.status}")
    return None


def _expectations(proposal: Proposal) -> dict[str, str]:
    """What the proposal promises."""
    pairs = dict(e.split(" ", 1) for e in proposal.expects)
    return {name: direction for name, direction in pairs.items() if name != "builds"}
