"""The bench of the search: kernels measured and judged in the sandbox."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from agent.baseline import Baseline, measure
from agent.candidate import Judgement, Measurement, Proposal
from agent.events import Progress
from agent.fix import TIMED_METRICS
from agent.job import JobRequest
from sandbox.capture import choose_executor
from sandbox.evaluate import LIMITS, EvaluateOptions, Evaluation, Evaluator
from sandbox.kernel import Kernel
from sandbox.profiler.metrics import changes_between
from sandbox.profiler.static import compare_static, resource_gains
from sandbox.target import Target
from sandbox.timed import Clock
from sandbox.verdict import Accepted, CompileFailed, Correctness, Inconclusive, NoGain

_LEAST_RUN_S = 30.0
"""What a run of a candidate has at least; no run may take longer than the whole search is given."""


@dataclass
class SandboxBench:
    """Measures and judges against one recorded workload. The user's file and each candidate are run once."""

    request: JobRequest
    baseline: Baseline
    progress: Progress
    _evaluator: Evaluator | None = None
    _measured: dict[str, Measurement] = field(default_factory=dict)

    def measure(self, kernel: Kernel) -> Measurement:
        if kernel.digest not in self._measured:
            self._measured[kernel.digest] = measure(kernel, self.request, self.baseline)
        return self._measured[kernel.digest]

    def judge(self, baseline: Measurement, proposal: Proposal) -> Judgement:
        """Whether the proposal does what the user's file does, and is better than `baseline`.

        Without a clock, nothing is executed for an edit whose code shows no gain.
        """
        screened = None if proposal.latent else self._screen(baseline, proposal)
        if screened is not None:
            return screened
        evaluation = self._evaluate(baseline.kernel, proposal)
        if proposal.invisible and evaluation.correctness is Correctness.INTERPRETED:
            evaluation = self._emulate(evaluation, baseline.kernel, proposal)
        changes = changes_between(evaluation.baseline_profiles, evaluation.candidate_profiles)
        judgement = Judgement(evaluation.verdict, evaluation.statements, changes, evaluation.doubt)
        return self._mended(judgement, baseline, proposal) if baseline.builds else judgement

    def _mended(self, judgement: Judgement, baseline: Measurement, proposal: Proposal) -> Judgement:
        """The judgement on what may mend failures that no recorded launch meets: a repair of such, or a candidate of
        which nobody said what it is for.

        It counts where code that was compiled showed the failure of configs that the tuner would try on the target, and
        no such config is left. Of a repair, anything else is named, and not claimed to be mended.
        """
        verdict = judgement.verdict
        shown = isinstance(verdict, NoGain) and verdict.correctness.validated
        asked = proposal.latent or (shown and not proposal.expects)
        if not asked or not isinstance(verdict, NoGain | Inconclusive):
            return judgement
        # A GPU's own tuner ran in the recording, which then knows no configs; a compile-only run does.
        before = baseline if baseline.unlaunchable else self.measure(baseline.kernel)
        mended = self.measure(proposal.kernel).mends(before) if before.unlaunchable else ""
        if mended and shown and isinstance(verdict, NoGain):
            return replace(judgement, verdict=verdict.mending(mended))
        if not proposal.latent:
            return judgement
        unmet = "no recorded launch has as many, so nothing shows whether one ever does"
        reason = f"{proposal.latent}; {(judgement.doubt or verdict.reason) if mended else unmet}"
        return replace(judgement, verdict=Inconclusive(reason, verdict.checks))

    def _screen(self, baseline: Measurement, proposal: Proposal) -> Judgement | None:
        """A verdict that the code objects alone give; None when results have to be looked at."""
        if not baseline.builds or choose_executor(self.request.options.executor) == "gpu":
            return None
        after = self.measure(proposal.kernel)
        changes = changes_between(baseline.profiles, after.profiles)
        if after.failures:
            first = after.failures[0]
            return Judgement(CompileFailed(first.message, first.kernel, line=first.line), (), changes)
        expects = _expectations(proposal)
        if (
            proposal.needs_timing
            or not proposal.expects
            or not _all_static(baseline, expects)
            or baseline.profiles.keys() != after.profiles.keys()
        ):
            return None
        reason = _static_obstacle(baseline, after, expects, self.request.target)
        return Judgement(NoGain(Correctness.COMPILED, reason), (), changes) if reason else None

    def _emulate(self, seen: Evaluation, parent: Kernel, proposal: Proposal) -> Evaluation:
        """The verdict where part of the patch is invisible to the interpreter: that of the emulator, or `compiled`."""
        self.progress.step(f"judging {proposal.id} again with the emulator")
        emulated = self.evaluator.evaluate(proposal.kernel, parent=parent, executor="emulator")
        if emulated.correctness.validated or not isinstance(emulated.verdict, Accepted | NoGain | Inconclusive):
            return emulated
        doubt = f"the interpreter cannot see part of the patch; {emulated.doubt or 'the emulator did not run it'}"
        verdict = seen.verdict
        if isinstance(verdict, Accepted | NoGain):
            verdict = replace(verdict, correctness=Correctness.COMPILED)
        return replace(seen, verdict=verdict, correctness=Correctness.COMPILED, statements=(doubt,), doubt=doubt)

    @property
    def evaluator(self) -> Evaluator:
        """What judges every candidate of the job, against the user's own file."""
        if self._evaluator is None:
            asked = self.request.options
            wall_s = min(LIMITS.wall_s, max(_LEAST_RUN_S, asked.budget.wall_s))
            options = EvaluateOptions(
                limits=replace(LIMITS, wall_s=wall_s),
                executor=asked.executor,
                allow_approx=asked.allow_approx,
                seed=asked.seed,
                harness=self.request.harness,
            )
            self._evaluator = Evaluator(self.request.kernel, self.baseline.stored, self.request.target, options)
        return self._evaluator

    def _evaluate(self, parent: Kernel, proposal: Proposal) -> Evaluation:
        evaluator = self.evaluator
        clock: Clock = "absent" if proposal.foreign else "alone" if proposal.needs_timing else "heard"
        evaluator.options = replace(evaluator.options, expects=_expectations(proposal), clock=clock)
        return evaluator.evaluate(proposal.kernel, parent=parent)


def _expectations(proposal: Proposal) -> dict[str, str]:
    """Metric to direction, without what the verdict itself checks (a repair's promise) or a clock measures."""
    pairs = (e.split(" ", 1) for e in proposal.expects)
    return {name: direction for name, direction in pairs if name != "builds" and name not in TIMED_METRICS}


def _all_static(measured: Measurement, expects: Mapping[str, str]) -> bool:
    """Whether every expected metric can be read from the code objects, so that none needs a run to be counted."""
    profiles = measured.profiles.values()
    return bool(profiles) and all(any(p.number(name) is not None for p in profiles) for name in expects)


def _static_obstacle(before: Measurement, after: Measurement, expects: Mapping[str, str], target: Target) -> str:
    """Why the code objects show no gain; empty when they show one."""
    moved = False
    for kernel, old in before.profiles.items():
        new = after.profiles[kernel]
        judged = compare_static(old, new, expects or resource_gains(old, new), target)
        if judged.worsened:
            return judged.statement
        moved = moved or bool(judged.improved)
    return "" if moved else f"no resource moved the right way ({', '.join(expects) or 'none was named'}); not timed"
