"""A language model behind the search's one seam: it looks, compiles, and proposes; the validator decides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from agent.candidate import Attempt, Fate, Measurement, Offers, Proposal, Unmatched
from agent.events import Progress
from agent.model import Message, Model, ModelError, Reply, Stop, ToolResult, Usage, estimate_tokens
from agent.search import Bench, Proposer
from agent.spend import BudgetSpent, Ledger
from agent.toolbox import TOOLS, Toolbox
from prompts import render
from sandbox.target import Target
from skills.skill import Library, Refusal

MAX_TURNS = 12
"""Replies per conversation; a model that has not submitted by then is not going to."""
_SHOWN_FACTS = 40


@dataclass
class ModelProposer:
    """Asks one model for candidates, at most `rounds` times per search. Keeps its account; never exceeds the budget.

    A provider that fails ends the model's part of the job, not the job.
    """

    target: Target
    model: Model
    bench: Bench
    library: Library
    ledger: Ledger
    progress: Progress
    rounds: int = 3
    wanted: int = 2
    max_output_tokens: int = 8192
    knowledge: Callable[[str], list[str]] = lambda _query: []
    ended: str = ""
    """Why no further round will be asked for; empty while there may be one."""
    _asked: set[str] = field(default_factory=set)

    def propose(self, measured: Measurement, history: Sequence[Attempt]) -> Offers:
        """The candidates of one conversation; none when the rounds or the budget are used up."""
        if self.ended or measured.kernel.digest in self._asked or len(self._asked) >= self.rounds:
            return Offers(())
        self._asked.add(measured.kernel.digest)
        toolbox = Toolbox(measured, self.bench, self.library, self.ledger, self.model.name, self.knowledge)
        try:
            self._converse(toolbox, self._opening(measured, history))
        except (BudgetSpent, ModelError) as e:
            self.ended = str(e)
            self.progress.step(f"{self.model.name}: {e}")
        refused = (
            ()
            if toolbox.submitted
            else (Unmatched(self.model.name, "Model proposals", self.ended or "it proposed nothing"),)
        )
        return Offers(toolbox.submitted, (), refused)

    def _opening(self, measured: Measurement, history: Sequence[Attempt]) -> list[Message]:
        bottlenecks = list(measured.bottlenecks)
        query = " ".join([*bottlenecks[:3], *(f.message for f in measured.failures[:2])])
        known = sorted(measured.facts.known.items())
        task = render(
            "task",
            filename=measured.kernel.filename,
            source=measured.kernel.source,
            arch=self.target.arch,
            failures=[f.sentence for f in measured.failures],
            bottlenecks=bottlenecks,
            facts=known[:_SHOWN_FACTS],
            history=digest(history),
            knowledge=self.knowledge(query)[:5],
            wanted=self.wanted,
        )
        return [Message("system", render("system", target=self.target)), Message("user", task)]

    def _converse(self, toolbox: Toolbox, messages: list[Message]) -> None:
        for _ in range(MAX_TURNS):
            reply = self._ask(messages)
            messages.append(reply.message)
            if not reply.calls:
                return
            results = tuple(self._answer(toolbox, reply, n) for n in range(len(reply.calls)))
            if len(toolbox.submitted) >= self.wanted:
                return
            messages.append(Message("user", results=results))

    def _answer(self, toolbox: Toolbox, reply: Reply, n: int) -> ToolResult:
        call = reply.calls[n]
        self.progress.step(f"{self.model.name} calls {call.name}")
        if reply.stop is Stop.TRUNCATED and n == len(reply.calls) - 1 and call.arguments is None:
            return ToolResult(
                call.id, "Your reply was cut off at the output limit; send fewer edits at once.", failed=True
            )
        return toolbox.answer(call)

    def _ask(self, messages: Sequence[Message]) -> Reply:
        left_s = self.ledger.remaining_s()
        reserved = self.ledger.reserve_call(estimate_tokens(messages, TOOLS), self.max_output_tokens)
        used = Usage()
        try:
            reply = self.model.propose(
                messages, TOOLS, max_output_tokens=self.max_output_tokens, timeout_s=min(300.0, left_s or 300.0)
            )
            used = reply.usage
        finally:
            self.ledger.settle_call(reserved, used)
        return reply


def digest(history: Sequence[Attempt]) -> list[str]:
    """What was tried, one line each, equal outcomes of one origin folded together."""
    lines: dict[tuple[str, Fate, str], int] = {}
    for attempt in history:
        key = (attempt.proposal.title, attempt.fate, " ".join(attempt.reason.split())[:200])
        lines[key] = lines.get(key, 0) + 1
    return [
        f"{title}: {fate} ({reason}){f', {n} variants' if n > 1 else ''}" for (title, fate, reason), n in lines.items()
    ]


@dataclass(frozen=True)
class Proposers:
    """Several proposers as one. The first is asked always, each further one only when those before offer nothing new.

    Skills are free and come first; a model is asked once they are exhausted on the kernel at hand.
    """

    members: tuple[Proposer, ...]

    def propose(self, measured: Measurement, history: Sequence[Attempt]) -> Offers:
        tried = {a.proposal.kernel.digest for a in history}
        proposals: list[Proposal] = []
        refusals: list[Refusal] = []
        unmatched: list[Unmatched] = []
        for member in self.members:
            offers = member.propose(measured, history)
            proposals += offers.proposals
            refusals += offers.refusals
            unmatched += offers.unmatched
            if any(p.kernel.digest not in tried for p in proposals):
                break
        return Offers(proposals, refusals, unmatched)
