"""Anthropic's Messages API through its own SDK."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agent.model import Message, ModelError, Reply, Stop, Tool, ToolCall, Usage
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
                    message = stream.get_final_message()
            else:
                message = client.messages.create(**request, timeout=timeout_s)
            if not isinstance(message, anthropic.types.Message) or message.stop_reason is None:
                raise ModelError("Anthropic's answer is no complete message")
            return _reply(message)
        except anthropic.APIStatusError as e:
            raise ModelError(
                f"Anthropic answered {e.status_code}: {_first_line(e.message)}",
                status=e.status_code,
                retry_after_s=retry_after_s(e.response.headers),
            ) from e
        except anthropic.APIConnectionError as e:
            raise ModelError(f"Anthropic could not be reached: {_first_line(str(e))}") from e
        except transport_errors() as e:
            raise ModelError(f"Anthropic's answer broke off: {_first_line(str(e))}") from e
        except AssertionError as e:
            # an assertion of the SDK: the stream ended before a message was complete
            raise ModelError("Anthropic's answer broke off") from e
        except (anthropic.AnthropicError, ValueError) as e:
            raise ModelError(f"Anthropic's reply cannot be used: {_first_line(str(e))}", status=400) from e

    def check(self, timeout_s: float) -> None:
        """Whether the server is there and takes the key; raises `ModelError`. Costs no tokens."""
        import anthropic

        try:
            self._connect().models.list(limit=1, timeout=timeout_s)
        except anthropic.APIStatusError as e:
            raise ModelError(f"Anthropic answered {e.status_code}", status=e.status_code) from e
        except anthropic.APIConnectionError as e:
            raise ModelError(f"its server could not be reached ({_first_line(str(e)).rstrip('.')})") from e
        except transport_errors() as e:
            raise ModelError("its server's answer broke off") from e
        except (anthropic.AnthropicError, ValueError) as e:
            raise ModelError(f"its server answers otherwise: {_first_line(str(e))}", status=400) from e

    def _connect(self) -> Any:
        if self._client is None:
            import anthropic

            # compatible servers may want no key, but the SDK insists on one; it adds `/v1` by itself
            key = self.api_key or ("none" if self.base_url else None)
            url = self.base_url.rstrip("/").removesuffix("/v1") if self.base_url else None
            self._client = anthropic.Anthropic(api_key=key, base_url=url, max_retries=0)
        return self._client


def _turn(message: Message) -> dict[str, Any]:
    blocks: list[dict[str, Any]] = [
        {"type": "tool_result", "tool_use_id": r.call_id, "content": r.text, "is_error": r.failed}
        for r in message.results
    ]
    if message.text:
        blocks.append({"type": "text", "text": message.text})
    blocks += [
        {"type": "tool_use", "id": c.id, "name": c.name, "input": dict(c.arguments or {})} for c in message.calls
    ]
    return {"role": message.role, "content": blocks}


def _reply(message: Any) -> Reply:
    stop = _STOPS.get(message.stop_reason or "", Stop.END)
    blocks = list(message.content or [])
    uses = [b for b in blocks if b.type == "tool_use"]
    calls = [_call(b) for b in uses]
    if stop is Stop.TRUNCATED and blocks and blocks[-1].type == "tool_use":
        # the SDK closes the half-written JSON itself, so what is there may look whole
        calls[-1] = replace(calls[-1], arguments=None, problem="the arguments were cut off at the output limit")
    usage = message.usage
    return Reply(
        text="".join(b.text for b in blocks if b.type == "text"),
        calls=tuple(calls),
        stop=stop,
        usage=Usage(
            input=usage.input_tokens or 0,
            cache_read=usage.cache_read_input_tokens or 0,
            cache_write=usage.cache_creation_input_tokens or 0,
            output=usage.output_tokens or 0,
        ),
        model=message.model,
        request_id=getattr(message, "_request_id", None) or message.id,
    )


def _call(block: Any) -> ToolCall:
    if isinstance(block.input, dict):
        return ToolCall(block.id, block.name, block.input)
    return ToolCall(block.id, block.name, None, "the arguments are not a JSON object")


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Seconds the provider asks to wait, from `retry-after` or `retry-after-ms`; None when absent or unreadable."""
    for name, scale in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            seconds = float(headers[name]) / scale
        except (KeyError, ValueError):
            continue
        if 0 <= seconds < 86_400:
            return seconds
    return None


def _first_line(text: str) -> str:
    return (text.strip().splitlines() or ["no message"])[0][:300]
