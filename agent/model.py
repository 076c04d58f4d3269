"""What a language model is to us: messages and tools in, one reply out, with its token counts. Nothing here judges.

Provider adapters live beside this file (`model_anthropic`, `model_openai`); a scripted model stands in for tests, demos
and replay. A reply that cannot be used (cut off, refused, malformed arguments) is a value that says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from sandbox.errors import WavesmithError


class ModelError(WavesmithError):
    """The provider could not be asked, or refused the request. `status` is its HTTP status where there was one."""

    def __init__(self, message: str, *, status: int | None = None, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after_s = retry_after_s

    @property
    def retryable(self) -> bool:
        """Rate limits, overload, server faults and lost connections pass; bad requests and bad keys do not."""
        return self.status is None or self.status in (408, 409, 425, 429) or self.status >= 500


class Stop(StrEnum):
    """Why a reply ended."""

    END = "end"
    TOOLS = "tools"
    """The model waits for the results of its tool calls."""
    TRUNCATED = "truncated"
    """It hit the output limit: whatever came last is incomplete."""
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Tool:
    """Something the model may call. `parameters` is a JSON schema of type object."""

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call. `arguments` is None when they were no JSON object; `problem` then says what was wrong."""

    id: str
    name: str
    arguments: Mapping[str, Any] | None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The answer to one call, as text. `failed` marks an error the model should correct."""

    call_id: str
    text: str
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Message:
    """One turn. An assistant turn may carry calls, the user turn after it the results of all of them."""

    role: str
    """`system`, `user` or `assistant`; the system turn comes first and only once."""
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    results: tuple[ToolResult, ...] = ()
    carried: tuple[Mapping[str, Any], ...] = ()
    """The provider's own blocks of an assistant turn, which go back as they came; nothing of ours reads them."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one call. `input` excludes cached tokens, whatever the provider's own convention."""

    input: int = 0
    cache_read: int = 0
    cache_write: int = 0
    output: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input + other.input,
            self.cache_read + other.cache_read,
            self.cache_write + other.cache_write,
            self.output + other.output,
        )

    @property
    def total(self) -> int:
        return self.input + self.cache_read + self.cache_write + self.output


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer. `text` is None-free; a structured reply is JSON text, still to be validated by the caller."""

    text: str
    calls: tuple[ToolCall, ...]
    stop: Stop
    usage: Usage
    """All zero when the server gave no account that can be."""
    model: str
    request_id: str | None = None
    attempts: int = 1
    """Requests made for this reply, the failed ones included."""
    carried: tuple[Mapping[str, Any], ...] = ()
    """See `Message.carried`."""

    @property
    def message(self) -> Message:
        return Message("assistant", self.text, self.calls, carried=self.carried)


class Model(Protocol):
    """One configured model of one provider."""

    @property
    def name(self) -> str: ...

    def propose(
        self,
        messages: Sequence[Message],
        tools: Sequence[Tool] = (),
        schema: Mapping[str, Any] | None = None,
        *,
        max_output_tokens: int = 8192,
        timeout_s: float = 300.0,
    ) -> Reply:
        """Ask for one reply; with `schema`, its text is JSON of that schema. Raises `ModelError` after retries."""


@dataclass
class ScriptedModel:
    """A model whose replies are given: a list, or a function of the messages. Counts what it was asked."""

    script: Iterable[Reply] | Callable[[Sequence[Message], Sequence[Tool]], Reply]
    name: str = "scripted"
    asked: list[tuple[Message, ...]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._rest = None if callable(self.script) else iter(self.script)

    def propose(
        self,
        messages: Sequence[Message],
        tools: Sequence[Tool] = (),
        schema: Mapping[str, Any] | None = None,
        *,
        max_output_tokens: int = 8192,
        timeout_s: float = 300.0,
    ) -> Reply:
        """The next reply; raises `ModelError` when the script is at its end."""
        self.asked.append(tuple(messages))
        if callable(self.script):
            return self.script(messages, tools)
        assert self._rest is not None
        for reply in self._rest:
            return reply
        raise ModelError("the script holds no further reply", status=400)


def estimate_tokens(messages: Sequence[Message], tools: Sequence[Tool] = ()) -> int:
    """An upper estimate of the input, for budgets before a call: three characters per token, and overhead per part."""
    chars = sum(len(m.text) + sum(len(r.text) for r in m.results) for m in messages)
    chars += sum(len(str(c.arguments)) for m in messages for c in m.calls)
    chars += sum(len(str(block)) for m in messages for block in m.carried)
    chars += sum(len(t.description) + len(str(t.parameters)) for t in tools)
    return chars // 3 + 16 * (len(messages) + len(tools)) + 64


def estimate_reply_tokens(reply: Reply) -> int:
    """An upper estimate of what a reply cost as output, for a server that gave no account."""
    chars = len(reply.text) + sum(len(c.name) + len(str(c.arguments)) for c in reply.calls)
    chars += sum(len(str(block)) for block in reply.carried)
    return chars // 3 + 16 * (1 + len(reply.calls))
