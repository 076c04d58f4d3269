"""Anthropic's Messages API through its own SDK."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agent.model import Message, ModelError, Reply, Stop, Tool, ToolCall, Usage
from agent.model_wire import (
    closed_client,
    connection_error,
    count_of,
    first_line,
    status_error,
    told_apart,
    wire_name,
    without_key,
    without_key_in,
)
from agent.retry import transport_errors, with_retries

_STREAM_ABOVE_TOKENS = 8192
"""The SDK refuses long non-streaming requests; a stream also shows early that a connection is alive."""
_STOPS = {
    "end_turn": Stop.END,
    "stop_sequence": Stop.END,
    "pause_turn": Stop.END,
    "tool_use": Stop.TOOLS,
    "max_tokens": Stop.TRUNCATED,
    "model_context_window_exceeded": Stop.TRUNCATED,
    "refusal": Stop.REFUSED,
}
_STATUSES = {
    "rate_limit_error": 429,
    "timeout_error": 504,
    "api_error": 500,
    "overloaded_error": 529,
    "authentication_error": 401,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "invalid_request_error": 400,
}
"""The status that an error has outside a stream, by its type."""
_THOUGHTS: Mapping[str, tuple[str, ...]] = {"thinking": ("thinking", "signature"), "redacted_thinking": ("data",)}
"""Blocks that go back unread, with their fields."""


@dataclass
class AnthropicModel:
    """One model behind the Messages API. The SDK is imported on first use; without it a `ModelError` says so."""

    name: str
    api_key: str | None = None
    base_url: str | None = None

    def __post_init__(self) -> None:
        self._client: Any = None

    def propose(
        self,
        messages: Sequence[Message],
        tools: Sequence[Tool] = (),
        schema: Mapping[str, Any] | None = None,
        *,
        max_output_tokens: int = 8192,
        timeout_s: float = 300.0,
    ) -> Reply:
        """See `agent.model.Model`. The system turn, the tools and the conversation so far are marked for caching."""
        request: dict[str, Any] = {
            "model": self.name,
            "max_tokens": max_output_tokens,
            "messages": [_turn(m) for m in messages if m.role != "system"],
            "cache_control": {"type": "ephemeral"},
        }
        system = [m.text for m in messages if m.role == "system"]
        if system:
            request["system"] = [{"type": "text", "text": "\n\n".join(system), "cache_control": {"type": "ephemeral"}}]
        if tools:
            request["tools"] = [
                {"name": t.name, "description": t.description, "input_schema": dict(t.parameters)} for t in tools
            ]
        if schema is not None:
            request["output_config"] = {"format": {"type": "json_schema", "schema": dict(schema)}}
        reply, attempts = with_retries(lambda left_s: self._ask(request, left_s), timeout_s)
        return replace(reply, attempts=attempts)

    def _ask(self, request: Mapping[str, Any], timeout_s: float) -> Reply:
        import anthropic

        try:
            client = self._connect()
            if request["max_tokens"] > _STREAM_ABOVE_TOKENS:
                with client.messages.stream(**request, timeout=timeout_s) as stream:
                    message = _final_message(stream)
            else:
                message = client.messages.create(**request, timeout=timeout_s)
            if not isinstance(message, anthropic.types.Message) or message.stop_reason is None:
                raise ModelError("Anthropic's answer is no complete message")
            return _reply(message, self.api_key)
        except anthropic.APIStatusError as e:
            # an error inside a stream comes with the status of the stream; its type says what it is
            status = _STATUSES.get(e.type or "", e.status_code) if e.status_code == 200 else e.status_code
            raise status_error("Anthropic", status, e.message, e.response.headers, self.api_key) from e
        except anthropic.APIConnectionError as e:
            raise connection_error("Anthropic", e, self.api_key) from e
        except transport_errors() as e:
            raise ModelError(f"Anthropic's answer broke off: {first_line(str(e), self.api_key)}") from e
        except AssertionError as e:
            # an assertion of the SDK: the stream ended before a message was complete
            raise ModelError("Anthropic's answer broke off") from e
        except (anthropic.AnthropicError, ValueError) as e:
            raise ModelError(f"Anthropic's reply cannot be used: {first_line(str(e), self.api_key)}", status=400) from e

    def check(self, timeout_s: float) -> None:
        """Whether the server is there and takes the key; raises `ModelError`. Costs no tokens."""
        import anthropic

        try:
            self._connect().models.list(limit=1, timeout=timeout_s)
        except anthropic.APIStatusError as e:
            raise ModelError(f"Anthropic answered {e.status_code}", status=e.status_code) from e
        except anthropic.APIConnectionError as e:
            raise ModelError(f"its server could not be reached ({first_line(str(e)).rstrip('.')})") from e
        except transport_errors() as e:
            raise ModelError("its server's answer broke off") from e
        except (anthropic.AnthropicError, ValueError) as e:
            raise ModelError(f"its server answers otherwise: {first_line(str(e), self.api_key)}", status=400) from e

    def _connect(self) -> Any:
        if self._client is None:
            import anthropic

            # compatible servers may want no key, but the SDK insists on one; it adds `/v1` by itself
            key = self.api_key or ("none" if self.base_url else None)
            url = self.base_url.rstrip("/").removesuffix("/v1") if self.base_url else None
            self._client = anthropic.Anthropic(
                api_key=key, base_url=url, max_retries=0, http_client=closed_client(anthropic)
            )
        return self._client


def _final_message(stream: Any) -> Any:
    """The message of a stream; raises `ModelError` where the SDK stumbles over an event that lacks what it needs."""
    try:
        return stream.get_final_message()
    except (AttributeError, TypeError, KeyError, IndexError) as e:
        raise ModelError(f"Anthropic's stream cannot be read ({first_line(str(e))})", status=400) from e


def _turn(message: Message) -> dict[str, Any]:
    if message.carried:
        return {"role": message.role, "content": [dict(block) for block in message.carried]}
    blocks: list[dict[str, Any]] = [
        {"type": "tool_result", "tool_use_id": r.call_id, "content": r.text, "is_error": r.failed}
        for r in message.results
    ]
    if message.text:
        blocks.append({"type": "text", "text": message.text})
    return {"role": message.role, "content": [*blocks, *map(_use, message.calls)]}


def _use(call: ToolCall) -> dict[str, Any]:
    return {"type": "tool_use", "id": call.id, "name": wire_name(call.name), "input": dict(call.arguments or {})}


def _reply(message: Any, key: str | None) -> Reply:
    stop = _STOPS.get(message.stop_reason or "", Stop.END)
    blocks = list(message.content or [])
    calls = [_call(b, key) for b in blocks if b.type == "tool_use"]
    if stop is Stop.TRUNCATED and blocks and blocks[-1].type == "tool_use":
        # the SDK closes the half-written JSON itself, so what is there may look whole
        calls[-1] = replace(calls[-1], arguments=None, problem="the arguments were cut off at the output limit")
    apart = told_apart(calls)
    return Reply(
        text=without_key("".join(b.text for b in blocks if b.type == "text"), key),
        calls=apart,
        stop=stop,
        usage=_usage(message.usage),
        model=str(message.model),
        request_id=getattr(message, "_request_id", None) or message.id,
        carried=_carried(blocks, apart, key),
    )


def _usage(usage: Any) -> Usage:
    names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")
    counts = [count_of(getattr(usage, name, None)) for name in names]
    known = [n for n in counts if n is not None]
    return Usage(*known) if len(known) == len(counts) else Usage()


def _carried(blocks: list[Any], calls: tuple[ToolCall, ...], key: str | None) -> tuple[dict[str, Any], ...]:
    """The whole turn as it came, when the model thought: it wants its own blocks back, where they stood."""
    if not any(b.type in _THOUGHTS for b in blocks):
        return ()
    rest = iter(calls)
    turn: list[dict[str, Any]] = []
    for block in blocks:
        if block.type == "tool_use":
            turn.append(_use(next(rest)))
        elif block.type == "text" and block.text:
            turn.append({"type": "text", "text": without_key(block.text, key)})
        elif block.type in _THOUGHTS:
            turn.append({"type": block.type, **{name: getattr(block, name) for name in _THOUGHTS[block.type]}})
    return tuple(turn)


def _call(block: Any, key: str | None) -> ToolCall:
    if isinstance(block.input, dict):
        return ToolCall(str(block.id or ""), str(block.name or ""), without_key_in(block.input, key))
    return ToolCall(str(block.id or ""), str(block.name or ""), None, "the arguments are not a JSON object")
