"""A language model in one job: its proposer, its account, its transcript, and what the report says of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from agent.candidate import Attempt, Fate
from agent.conclusion import Conclusion
from agent.events import Progress
from agent.guided import GuidedProposer
from agent.job import Budget, JobRequest, Meter, ModelChoice
from agent.model import Model
from agent.model_proposer import ModelProposer
from agent.report import ModelPart
from agent.search import Bench, Proposer
from agent.spend import Ledger, Limits, Price, price_of, price_table
from agent.transcript import RecordingModel
from skills.skill import Library

TRANSCRIPT_NAME = "replay/transcript.jsonl"
"""Relative to the report."""


@dataclass(frozen=True, slots=True)
class Workplace:
    """What a job lends its model: the bench, the skills, the count of evaluations and a place to speak."""

    bench: Bench
    library: Library
    meter: Meter
    progress: Progress


@dataclass
class ModelWork:
    """One model at work in one job."""

    choice: ModelChoice
    proposer: ModelProposer
    ledger: Ledger
    price: Price | None
    at: Workplace
    budget: Budget

    def guide(self, skills: Proposer) -> GuidedProposer:
        """Skills and model in one graph, with the policy that chooses among them."""
        at = self.at
        return GuidedProposer(skills, self.proposer, at.bench, at.library, self.budget, at.meter)

    def part(self, attempts: Sequence[Attempt]) -> ModelPart:
        """Its part of the report: what was spent, and what came of it."""
        spent, limits = self.ledger.spent, self.ledger.limits
        own = [a for a in attempts if a.proposal.origin == self.proposer.model.name]
        return ModelPart(
            provider=self.choice.provider,
            name=self.choice.name,
            calls=spent.calls,
            input_tokens=spent.usage.input,
            cache_read_tokens=spent.usage.cache_read,
            cache_write_tokens=spent.usage.cache_write,
            output_tokens=spent.usage.output,
            usd=None if spent.usd is None else float(spent.usd),
            prices_as_of=price_table().as_of if self.price == price_of(self.choice.name) is not None else None,
            budget_usd=None if limits.usd is None else float(limits.usd),
            budget_tokens=limits.tokens,
            evaluations=spent.evaluations,
            proposals=len(own),
            kept=sum(a.fate in (Fate.KEPT, Fate.STEP) for a in own),
            ended=self.proposer.ended,
            failed=self.proposer.failed,
            transcript=TRANSCRIPT_NAME,
        )

    def mention_failure(self, conclusion: Conclusion) -> Conclusion:
        """The conclusion; with a sentence where the model failed on the way."""
        if not self.proposer.failed:
            return conclusion
        said = f"The model failed during the job ({self.proposer.ended.rstrip('.')}); this is the result without it."
        return replace(conclusion, summary=f"{conclusion.summary} {said}")


def put_to_work(model: Model, price: Price | None, request: JobRequest, folder: Path, at: Workplace) -> ModelWork:
    """A model ready to be asked. Its transcript is begun anew below `folder`."""
    choice = request.options.model
    assert choice is not None
    budget = request.options.budget
    limits = Limits(budget.usd, budget.tokens, budget.wall_s, budget.evaluations)
    ledger = Ledger(limits, choice.name, price, meter=at.meter)
    transcript = folder / TRANSCRIPT_NAME
    transcript.parent.mkdir(parents=True, exist_ok=True)
    transcript.write_text("", encoding="utf-8")
    recorded = RecordingModel(model, transcript)
    proposer = ModelProposer(request.target, recorded, at.bench, at.library, ledger, at.progress)
    return ModelWork(choice, proposer, ledger, price, at, budget)
