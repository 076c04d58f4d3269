"""A language model behind the search's one seam: it looks, compiles, and proposes; the validator decides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from agent.candidate import Attempt, Fate, Measurement, Offers, Unmatched
from agent.conversation import Conversation
from agent.events import Progress
from agent.model import Message, Model, ModelError
from agent.search import Bench
from agent.spend import BudgetSpent, Ledger
from agent.toolbox import TOOLS, Toolbox
from prompts import render
from sandbox.kernel import Kernel
from sandbox.target import Target
from skills.skill import Library

MAX_TURNS = 12
"""Replies per conversation; a model that has not submitted by then is not going to."""
_SHOWN_FACTS = 40
_SHOWN_ATTEMPTS = 20


@dataclass
class ModelProposer:
    """Asks one model for candidates, in at most `rounds` conversations. Keeps its account; never exceeds the budget.

    A provider that fails ends the model's part of the job, not the job.
    """

    target: Target
    model: Model
    bench: Bench
    library: Library
    ledger: Ledger
    progress: Progress
    rounds: int = 12
    wanted: int = 2
    max_output_tokens: int = 8192
    knowledge: Callable[[str], list[str]] = lambda _query: []
    ended: str = ""
    """Why no further round will be asked for; empty while there may be one."""
    failed: bool = False
    """Whether it ended because the provider failed."""
    _asked: set[str] = field(default_factory=set)
    _conversations: int = 0

    def propose(self, measured: Measurement, history: Sequence[Attempt]) -> Offers:
        """The candidates of one conversation about whatever holds the kernel back; none for a kernel asked about."""
        if measured.kernel.digest in self._asked:
            return Offers(())
        self._asked.add(measured.kernel.digest)
        return self.rewrite(measured, history, "", measured.kernel)

    def rewrite(self, measured: Measurement, history: Sequence[Attempt], focus: str, stands_on: Kernel) -> Offers:
        """The universal operator: candidates made from one parent in one conversation, to remove one bottleneck.

        `focus` is the bottleneck's name; empty or `any` leaves the choice to the model, `build` asks for a repair.
        `stands_on` is the candidate so far, with which the search compares what comes; `measured` is its parent, which
        may be another. Nothing comes when the rounds or the budget are used up.
        """
        if not self.ended and self._conversations >= self.rounds:
            self.ended = f"its {self.rounds} conversations were used"
        if self.ended:
            return Offers(())
        self._conversations += 1
        toolbox = Toolbox(measured, self.bench, self.library, self.ledger, self.model.name, stands_on, self.knowledge)
        talk = Conversation(
            self.model,
            self.ledger,
            TOOLS,
            toolbox.answer,
            lambda: len(toolbox.submitted) >= self.wanted,
            self.progress.step,
            self.max_output_tokens,
        )
        try:
            talk.hold(self._opening(measured, history, focus), MAX_TURNS)
        except (BudgetSpent, ModelError) as e:
            self.ended, self.failed = str(e), isinstance(e, ModelError)
            self.progress.step(f"{self.model.name}: {e}")
        refused = (
            ()
            if toolbox.submitted
            else (Unmatched(self.model.name, "Model proposals", self.ended or "it proposed nothing"),)
        )
        return Offers(toolbox.submitted, (), refused)

    def _opening(self, measured: Measurement, history: Sequence[Attempt], focus: str) -> list[Message]:
        """The composed prompt: parent, verdict history, bottleneck, and what the knowledge base has on it."""
        bottlenecks = list(measured.bottlenecks)
        aim = focus if focus not in ("", "any", "build") else ""
        query = " ".join([aim, *bottlenecks[:3], *(f.message for f in measured.failures[:2])])
        known = sorted(measured.facts.known.items())
        task = render(
            "task",
            filename=measured.kernel.filename,
            source=measured.kernel.source,
            arch=self.target.arch,
            failures=[f.sentence for f in measured.failures],
            bottlenecks=bottlenecks,
            facts="\n".join(f"{name}: {value}" for name, value in known[:_SHOWN_FACTS]),
            history="\n".join(digest(history)[-_SHOWN_ATTEMPTS:]),
            knowledge=self.knowledge(query)[:5],
            focus=aim,
            wanted=self.wanted,
        )
        return [Message("system", render("system", target=self.target)), Message("user", task)]


def digest(history: Sequence[Attempt]) -> list[str]:
    """What was tried, one line each, equal outcomes of one origin folded together."""
    lines: dict[tuple[str, Fate, str], int] = {}
    for attempt in history:
        key = (attempt.proposal.title, attempt.fate, " ".join(attempt.reason.split())[:200])
        lines[key] = lines.get(key, 0) + 1
    return [
        f"{title}: {fate} ({reason}){f', {n} variants' if n > 1 else ''}" for (title, fate, reason), n in lines.items()
    ]
