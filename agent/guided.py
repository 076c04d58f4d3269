"""Skills and a model in one graph of candidates: the policy decides which idea is tried next, and from which candidate.

Each skill is an operator of its own; a model is the one universal operator, told which bottleneck to remove. One arm is
played at a time: its candidates are offered, judged by the search, and what came of them teaches the next choice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Protocol

from agent.candidate import Attempt, Fate, Measurement, Offers, Proposal, Unmatched, correctness_of
from agent.job import Budget, Meter
from agent.policy import Arm, Policy, reward_of
from agent.population import Population
from agent.search import Bench, Proposer
from sandbox.kernel import Kernel
from sandbox.verdict import NoGain
from skills.skill import Library

UNIVERSAL = "rewrite"
BUILD, ANY = "build", "any"
PATIENCE = 6
"""Rewrites in a row that may come to nothing before the model is asked no further."""
MAX_ARM_FAILURES = 3
"""Rewrites of one named bottleneck that may come to nothing on one candidate."""


class Rewriter(Protocol):
    """The universal operator: rewrites one candidate to remove one bottleneck."""

    @property
    def ended(self) -> str:
        """Why it will propose nothing more; empty while it may."""

    def rewrite(self, measured: Measurement, history: Sequence[Attempt], focus: str, stands_on: Kernel) -> Offers:
        """Candidates made from `measured`; the search compares them with `stands_on`, the candidate so far."""


def bottleneck_names(measured: Measurement) -> list[str]:
    """What holds a candidate back, worst first and once each; `build` alone while it does not build."""
    if not measured.builds:
        return [BUILD]
    names = [n.strip() for text in measured.bottlenecks for n in text.partition(": ")[2].split(",")]
    return list(dict.fromkeys(n for n in names if n))


@dataclass
class GuidedProposer:
    """A proposer for the search. Deterministic for the same seed, measurements and replies.

    Termination: the model is asked no further when its budget is spent, when it failed, after `patience` rewrites in a
    row without a kept one, or when every bottleneck was given up; the search itself ends when nothing new is offered.
    """

    skills: Proposer
    model: Rewriter
    bench: Bench
    library: Library
    budget: Budget
    meter: Meter
    policy: Policy = field(default_factory=Policy)
    population: Population = field(default_factory=Population)
    patience: int = PATIENCE
    arm_failures: int = MAX_ARM_FAILURES
    _arm_of: dict[str, Arm] = field(default_factory=dict)
    _failures: dict[tuple[str, Arm], int] = field(default_factory=dict)
    _learned: int = 0
    _barren: int = 0

    def propose(self, measured: Measurement, history: Sequence[Attempt]) -> Offers:
        """The candidates of the arm that the policy picks; none when every arm is given up."""
        self._learn(history)
        self.population.set_best(measured)
        offers = self.skills.propose(measured, history)
        tried = {a.proposal.kernel.digest for a in history} | {measured.kernel.digest}
        judged = {a.proposal.id for a in history if a.judgement is not None or a.fate is Fate.STEP}
        fresh = [p for p in offers.proposals if p.kernel.digest not in tried and p.id not in judged]
        by_arm = self._skill_arms(measured, fresh)
        unmatched = list(offers.unmatched)
        while arms := [*by_arm, *self._model_arms(measured)]:
            arm = self.policy.choose(arms, self._order(by_arm, arms))
            if arm in by_arm:
                return self._offer(arm, by_arm[arm], offers, unmatched)
            proposals, said = self._rewrite(arm, measured, history, tried)
            unmatched += said
            if proposals:
                return self._offer(arm, proposals, offers, unmatched)
        return Offers((), offers.refusals, unmatched)

    def _offer(self, arm: Arm, proposals: list[Proposal], offers: Offers, unmatched: list[Unmatched]) -> Offers:
        self._arm_of.update((p.kernel.digest, arm) for p in proposals)
        return replace(offers, proposals=proposals, unmatched=tuple(unmatched))

    def _order(self, by_arm: dict[Arm, list[Proposal]], arms: list[Arm]) -> list[Arm]:
        """Of equally promising ideas skills come first, being free, until half the evaluations are used."""
        rest = [a for a in arms if a not in by_arm]
        late = self.meter.evaluations * 2 >= self.budget.evaluations
        return [*rest, *by_arm] if late else [*by_arm, *rest]

    def _skill_arms(self, measured: Measurement, proposals: Sequence[Proposal]) -> dict[Arm, list[Proposal]]:
        """Proposals of skills by arm, each arm with the variants of its first edit only."""
        present = bottleneck_names(measured)
        found: dict[Arm, list[Proposal]] = {}
        for _, group in groupby(proposals, key=lambda p: p.id.split(":", 1)[0]):
            variants = list(group)
            origin = variants[0].origin
            aims = self.library[origin].data.bottlenecks if origin in self.library.skills else []
            aimed = BUILD if not measured.builds else next((n for n in present if n in aims), ANY)
            found.setdefault(Arm(aimed, origin), variants)
        return found

    def _model_arms(self, measured: Measurement) -> list[Arm]:
        if self.model.ended or self._barren >= self.patience:
            return []
        names = bottleneck_names(measured) if not measured.builds else [*bottleneck_names(measured), ANY]
        arms = [Arm(name, UNIVERSAL) for name in names]
        at = measured.kernel.digest
        allowed = {a: self.patience if a.bottleneck in (BUILD, ANY) else self.arm_failures for a in arms}
        return [a for a in arms if self._failures.get((at, a), 0) < allowed[a]]

    def _rewrite(
        self, arm: Arm, measured: Measurement, history: Sequence[Attempt], tried: set[str]
    ) -> tuple[list[Proposal], Sequence[Unmatched]]:
        """What the model makes of one candidate; an arm that gives nothing new comes closer to being given up."""
        parent = self.population.choose().measured if measured.builds else measured
        answer = self.model.rewrite(parent, history, arm.bottleneck, measured.kernel)
        fresh = [p for p in answer.proposals if p.kernel.digest not in tried]
        if not fresh:
            self._note_failure(measured.kernel.digest, arm)
            self.policy.learn(arm, 0.0)
        return fresh, answer.unmatched

    def _learn(self, history: Sequence[Attempt]) -> None:
        """Take in what became of the candidates offered before."""
        for attempt in history[self._learned :]:
            arm = self._arm_of.get(attempt.proposal.kernel.digest)
            if arm is None:
                continue
            self.policy.learn(arm, reward_of(attempt))
            good = attempt.fate in (Fate.KEPT, Fate.STEP)
            if good:
                self._barren = 0
            elif arm.operator == UNIVERSAL:
                self._note_failure(attempt.parent.digest, arm)
            self._keep_as_parent(attempt)
        self._learned = len(history)

    def _note_failure(self, digest: str, arm: Arm) -> None:
        self._barren += 1
        self._failures[digest, arm] = self._failures.get((digest, arm), 0) + 1

    def _keep_as_parent(self, attempt: Attempt) -> None:
        """A right candidate that was no better may still lead somewhere."""
        verdict = attempt.judgement.verdict if attempt.judgement else None
        if isinstance(verdict, NoGain) and correctness_of(verdict).validated:
            self.population.add(self.bench.measure(attempt.proposal.kernel))
