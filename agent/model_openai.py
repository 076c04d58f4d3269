"""OpenAI's chat completions, and every server that speaks them (vLLM, Ollama, llama.cpp), through OpenAI's SDK."""

from __future__ import annotations

import json
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

_STOPS = {
    "stop": Stop.END,
    "tool_calls": Stop.TOOLS,
    "function_call": Stop.TOOLS,
    "length": Stop.TRUNCATED,
    "content_filter": Stop.REFUSED,
}


@dataclass
class OpenAIModel:
    """One model behind chat completions. With `base_url` only what compatible servers understand is sent."""

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
        """See `agent.model.Model`. The stable parts come first, as prompt caching by prefix wants it."""
        limit = "max_tokens" if self.base_url else "max_completion_tokens"
        request: dict[str, Any] = {
            "model": self.name,
            "messages": [turn for m in messages for turn in _turns(m)],
            limit: max_output_tokens,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if tools:
            request["tools"] = [
                {
                    "type": "function",
                    "function": {"name": t.name, "description": t.description, "parameters": dict(t.parameters)},
                }
                for t in tools
            ]
        if schema is not None:
            request["response_format"] = {
                "type": "json_schema",
                "json_schema": {"name": "reply", "schema": dict(schema), "strict": True},
            }
        reply, attempts = with_retries(lambda left_s: self._ask(request, left_s), timeout_s)
        return replace(reply, attempts=attempts)

    def _ask(self, request: Mapping[str, Any], timeout_s: float) -> Reply:
        import openai

        try:
            stream = self._connect().chat.completions.create(**request, timeout=timeout_s)
            return _collect(stream, self.name, self.api_key)
        except openai.APIStatusError as e:
            raise status_error("the model's server", e.status_code, e.message, e.response.headers, self.api_key) from e
        except openai.APIConnectionError as e:
            raise connection_error("the model's server", e, self.api_key) from e
        except openai.APIError as e:
            # an error event inside a stream carries no status; servers send it for overload and for faults
            raise ModelError(f"the model's server broke off: {first_line(e.message, self.api_key)}") from e
        except transport_errors() as e:
            raise ModelError(f"the model's answer broke off: {first_line(str(e), self.api_key)}") from e
        except (openai.OpenAIError, ValueError) as e:
            raise ModelError(f"the model's reply cannot be used: {first_line(str(e), self.api_key)}", status=400) from e

    def check(self, timeout_s: float) -> None:
        """Whether the server is there and takes the key; raises `ModelError`. Costs no tokens."""
        import openai

        try:
            self._connect().models.list(timeout=timeout_s)
        except openai.APIStatusError as e:
            raise ModelError(f"the model's server answered {e.status_code}", status=e.status_code) from e
        except openai.APIConnectionError as e:
            raise ModelError(f"its server could not be reached ({first_line(str(e)).rstrip('.')})") from e
        except transport_errors() as e:
            raise ModelError("its server's answer broke off") from e
        except (openai.OpenAIError, ValueError) as e:
            raise ModelError(f"its server answers otherwise: {first_line(str(e), self.api_key)}", status=400) from e

    def _connect(self) -> Any:
        if self._client is None:
            import openai

            # local servers want no key, but the SDK insists on one
            key = self.api_key or ("none" if self.base_url else None)
            self._client = openai.OpenAI(
                api_key=key, base_url=self.base_url, max_retries=0, http_client=closed_client(openai)
            )
        return self._client


def _turns(message: Message) -> list[dict[str, Any]]:
    """One of our turns is several of theirs: a tool turn per result, then the text."""
    turns: list[dict[str, Any]] = [
        {"role": "tool", "tool_call_id": r.call_id, "content": r.text} for r in message.results
    ]
    if message.calls:
        turns.append(
            {
                "role": "assistant",
                "content": message.text or None,
                "tool_calls": [
                    {
                        "id": c.id,
                        "type": "function",
                        "function": {"name": wire_name(c.name), "arguments": json.dumps(c.arguments or {})},
                    }
                    for c in message.calls
                ],
            }
        )
    elif message.text or not turns:
        turns.append({"role": message.role, "content": message.text})
    return turns


def _collect(stream: Any, name: str, key: str | None) -> Reply:
    """A streamed reply as one value. Tool calls arrive in fragments by index; some servers leave index and id out."""
    text: list[str] = []
    fragments: dict[int, dict[str, str]] = {}
    finish, refused, usage, model, request_id = None, False, Usage(), name, None
    for chunk in stream:
        model, request_id = chunk.model or model, chunk.id or request_id
        if chunk.usage is not None:
            usage = _usage(chunk.usage)
        for choice in chunk.choices[:1]:
            finish = choice.finish_reason or finish
            delta = choice.delta
            text += [part for part in (delta.content, getattr(delta, "refusal", None)) if part]
            refused = refused or bool(getattr(delta, "refusal", None))
            for position, call in enumerate(delta.tool_calls or ()):
                held = fragments.setdefault(call.index if call.index is not None else position, dict(_EMPTY))
                held["id"] = call.id or held["id"]
                if call.function is not None:
                    held["name"] += call.function.name or ""
                    held["arguments"] += call.function.arguments or ""
    if finish is None:
        raise ModelError("the model's server ended the reply without saying why")
    stop = Stop.REFUSED if refused else _STOPS.get(finish, Stop.END)
    calls = told_apart([_call(held, n, stop, key) for n, held in sorted(fragments.items())])
    if calls and stop is Stop.END:
        stop = Stop.TOOLS
    return Reply(without_key("".join(text), key), calls, stop, usage, str(model), request_id)


_EMPTY = {"id": "", "name": "", "arguments": ""}


def _call(held: Mapping[str, str], index: int, stop: Stop, key: str | None) -> ToolCall:
    call_id = held["id"] or f"call_{index}"
    try:
        arguments = json.loads(held["arguments"] or "{}")
    except ValueError as e:
        reason = "cut off at the output limit" if stop is Stop.TRUNCATED else f"not valid JSON ({first_line(str(e))})"
        return ToolCall(call_id, held["name"], None, f"the arguments are {reason}")
    if not isinstance(arguments, dict):
        return ToolCall(call_id, held["name"], None, "the arguments are not a JSON object")
    return ToolCall(call_id, held["name"], without_key_in(arguments, key))


def _usage(usage: Any) -> Usage:
    """Their input count includes the cached part; ours does not."""
    details = getattr(usage, "prompt_tokens_details", None)
    cached = count_of(getattr(details, "cached_tokens", None))
    prompt, output = count_of(usage.prompt_tokens), count_of(usage.completion_tokens)
    if prompt is None or output is None or cached is None:
        return Usage()
    cached = min(cached, prompt)
    return Usage(input=prompt - cached, cache_read=cached, output=output)
