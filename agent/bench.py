"""The bench of the search: kernels measured and judged, by the cheapest executor that can see the edit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from agent.baseline import Baseline, measure
from agent.candidate import Judgement, Measurement, Proposal, correctness_of
from agent.events import Progress
from agent.job import JobRequest
from sandbox.evaluate import EvaluateOptions, Evaluation, Evaluator
from sandbox.kernel import Kernel
from sandbox.profiler.profile import Profile
from sandbox.verdict import Accepted, NoGain


@dataclass
class SandboxBench:
    """Measures and judges against one recorded workload. Baselines are run once per executor, whatever is judged."""

    request: JobRequest
    baseline: Baseline
    progress: Progress
    _evaluators: dict[tuple[str, str], Evaluator] = field(default_factory=dict)

    def measure(self, kernel: Kernel) -> Measurement:
        return measure(kernel, self.request, self.baseline)

    def judge(self, baseline: Measurement, proposal: Proposal) -> Judgement:
        """The strongest verdict at hand: what the interpreter cannot see is judged again by running the compiled code.

        A rejection by any executor stands.
        """
        executors = self._executors()
        evaluation = self._evaluate(baseline.kernel, proposal, next(executors))
        for executor in executors:
            if not isinstance(evaluation.verdict, Accepted | NoGain) or correctness_of(evaluation.verdict).validated:
                break
            self.progress.step(f"judging {proposal.id} again with the {executor}")
            stronger = self._evaluate(baseline.kernel, proposal, executor)
            if stronger.correctness > evaluation.correctness or not isinstance(stronger.verdict, Accepted | NoGain):
                evaluation = stronger
        return Judgement(evaluation.verdict, evaluation.statements, _metrics(evaluation))

    def _executors(self) -> Iterator[str]:
        yield self.request.options.executor
        if self.request.options.executor == "auto":
            yield "emulator"

    def _evaluate(self, baseline: Kernel, proposal: Proposal, executor: str) -> Evaluation:
        key = (baseline.digest, executor)
        if key not in self._evaluators:
            asked = self.request.options
            options = EvaluateOptions(executor=executor, allow_approx=asked.allow_approx, seed=asked.seed)
            self._evaluators[key] = Evaluator(baseline, self.baseline.stored, self.request.target, options)
        evaluator = self._evaluators[key]
        evaluator.options = replace(evaluator.options, expects=_expectations(proposal))
        return evaluator.evaluate(proposal.kernel)


def _expectations(proposal: Proposal) -> Mapping[str, str]:
    """Metric to direction, without the promise of a repair, which the verdict itself checks."""
    pairs = (e.split(" ", 1) for e in proposal.expects)
    return {name: direction for name, direction in pairs if name != "builds"}


def _metrics(evaluation: Evaluation) -> dict[str, tuple[float, float]]:
    """Every numeric metric both sides have; named by kernel where there are several."""
    before, after = evaluation.baseline_profiles, evaluation.candidate_profiles
    several = len(before) > 1
    found: dict[str, tuple[float, float]] = {}
    for kernel in sorted(before.keys() & after.keys()):
        for name, pair in _pairs(before[kernel], after[kernel]):
            found[f"{kernel} {name}" if several else name] = pair
    return found


def _pairs(before: Profile, after: Profile) -> Iterator[tuple[str, tuple[float, float]]]:
    for metric in before:
        old, new = before.number(metric.name), after.number(metric.name)
        if old is not None and new is not None:
            yield metric.name, (old, new)
