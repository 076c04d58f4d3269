"""A language model in one job: its proposer, its account, its transcript, and what the report says of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from agent.candidate import Attempt, Fate
from agent.conclusion import Conclusion
from agent.confirm import Confirmed
from agent.events import Progress
from agent.guided import GuidedProposer
from agent.job import Budget, JobRequest, Meter, ModelChoice
from agent.knowledge import Item, Knowledge, own_items
from agent.memory import Memory
from agent.model import Model
from agent.model_proposer import ModelProposer
from agent.report import ModelPart
from agent.search import Bench, Proposer
from agent.spend import Ledger, Limits, Price, price_of, price_table
from agent.transcript import RecordingModel
from sandbox.errors import InputError
from skills.skill import Library

TRANSCRIPT_NAME = "replay/transcript.jsonl"
"""Relative to the report."""
REMEMBERED_NAME = "replay/remembered.json"
"""What the model could look up of earlier jobs; a replay must find the same."""


@dataclass(frozen=True, slots=True)
class Helper:
    """A model that may help in a job, what it costs, and what earlier jobs taught."""

    model: Model
    price: Price | None = None
    """None when it is not known."""
    memory: Memory | None = None
    """Where wins and failures of this job go; None to keep none."""
    remembered: tuple[Item, ...] = ()


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

    def own(self, attempts: Sequence[Attempt]) -> list[Attempt]:
        """The attempts that the model proposed."""
        return [a for a in attempts if a.proposal.origin == self.proposer.model.name]

    def part(self, confirmed: Confirmed) -> ModelPart:
        """Its part of the report: what was spent, what came of it, and whether that held on fresh inputs."""
        spent, limits, own = self.ledger.spent, self.ledger.limits, self.own(confirmed.found.attempts)
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
            confirmation=confirmed.statement,
            transcript=TRANSCRIPT_NAME,
        )

    def mention_failure(self, conclusion: Conclusion) -> Conclusion:
        """The conclusion; with a sentence where the model failed on the way."""
        if not self.proposer.failed:
            return conclusion
        said = f"The model failed during the job ({self.proposer.ended.rstrip('.')}); nothing further came from it."
        return replace(conclusion, summary=f"{conclusion.summary} {said}")


def put_to_work(helper: Helper, request: JobRequest, folder: Path, at: Workplace) -> ModelWork:
    """A model ready to be asked. Its transcript is begun anew below `folder`."""
    choice = request.options.model
    assert choice is not None
    budget = request.options.budget
    limits = Limits(budget.usd, budget.tokens, budget.wall_s, budget.evaluations)
    ledger = Ledger(limits, choice.name, helper.price, meter=at.meter)
    transcript = folder / TRANSCRIPT_NAME
    transcript.parent.mkdir(parents=True, exist_ok=True)
    transcript.write_text("", encoding="utf-8")
    (folder / REMEMBERED_NAME).write_text(json.dumps([asdict(i) for i in helper.remembered]), encoding="utf-8")
    knowledge = Knowledge([*own_items(request.target, at.library), *helper.remembered])
    recorded = RecordingModel(helper.model, transcript)
    proposer = ModelProposer(request.target, recorded, at.bench, at.library, ledger, at.progress)
    proposer.knowledge = knowledge.lines
    return ModelWork(choice, proposer, ledger, helper.price, at, budget)


def load_remembered(folder: Path) -> tuple[Item, ...]:
    """What the model of a stored job could look up of earlier ones; raises `InputError` when it is missing."""
    path = folder / REMEMBERED_NAME
    try:
        return tuple(Item(**item) for item in json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as e:
        raise InputError(f"what its model remembered cannot be read ({e}).", file=path) from None
