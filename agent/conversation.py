"""One conversation with a model, whatever it is about: every reply is reserved and settled on the job's account."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from agent.model import (
    Message,
    Model,
    Reply,
    Stop,
    Tool,
    ToolCall,
    ToolResult,
    Usage,
    estimate_reply_tokens,
    estimate_tokens,
)
from agent.spend import Ledger

CALL_S = 300.0
"""Longest time one reply may take."""


@dataclass
class Conversation:
    """Asks a model turn by turn. `answer` runs a tool call, `finished` says when enough was submitted."""

    model: Model
    ledger: Ledger
    tools: Sequence[Tool]
    answer: Callable[[ToolCall], ToolResult]
    finished: Callable[[], bool]
    say: Callable[[str], None]
    max_output_tokens: int = 8192

    def hold(self, messages: list[Message], max_turns: int) -> None:
        """Go on until the model calls no tool, enough was submitted, or the turns are used.

        Raises `ModelError` when the provider fails and `BudgetSpent` when the next reply could exceed the budget.
        """
        for _ in range(max_turns):
            reply = self.ask(messages)
            messages.append(reply.message)
            if not reply.calls:
                return
            results = tuple(self._result(reply, n) for n in range(len(reply.calls)))
            if self.finished():
                return
            messages.append(Message("user", results=results))

    def ask(self, messages: Sequence[Message]) -> Reply:
        """One reply, within what is left of the budget."""
        left_s = self.ledger.remaining_s()
        reserved = self.ledger.reserve_call(estimate_tokens(messages, self.tools), self.max_output_tokens)
        used = Usage()
        try:
            reply = self.model.propose(
                messages, self.tools, max_output_tokens=self.max_output_tokens, timeout_s=min(CALL_S, left_s or CALL_S)
            )
            used = reply.usage if reply.usage.total else self._estimate(messages, reply)
        finally:
            self.ledger.settle_call(reserved, used)
        self.say(f"{self.model.name}: {self.ledger.account}")
        return reply

    def _result(self, reply: Reply, n: int) -> ToolResult:
        call = reply.calls[n]
        known = any(tool.name == call.name for tool in self.tools)
        self.say(f"{self.model.name} calls {call.name if known else 'a tool that there is not'}")
        if reply.stop is Stop.TRUNCATED and n == len(reply.calls) - 1 and call.arguments is None:
            said = "Your reply was cut off at the output limit; send fewer edits at once."
            return ToolResult(call.id, said, failed=True)
        return self.answer(call)

    def _estimate(self, messages: Sequence[Message], reply: Reply) -> Usage:
        """What a reply cost by our own count, where its server gave none that can be."""
        output = min(estimate_reply_tokens(reply), self.max_output_tokens)
        return Usage(input=estimate_tokens(messages, self.tools), output=output)
