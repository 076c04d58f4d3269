"""Both SDKs against a local server that speaks the real wire formats: replies, tools, streams, errors, accounts."""

from __future__ import annotations

import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from provider import (
    CLAUDE,
    GPT,
    Provider,
    Step,
    claude,
    claude_call,
    claude_error,
    claude_stream,
    claude_text,
    gpt,
    gpt_error,
)

from agent import retry
from agent.model import Message, Model, ModelError, Stop, Tool, ToolCall, ToolResult, Usage
from agent.model_anthropic import AnthropicModel
from agent.model_openai import OpenAIModel
from agent.spend import cost_usd, price_of

TOOL = Tool("compile", "Compile the candidate.", {"type": "object", "properties": {"code": {"type": "string"}}})
ASK = [Message("system", "You speed up kernels."), Message("user", "Here is one.")]
BOTH = ["anthropic", "anthropic-stream", "openai", "openai-compatible"]


pytestmark = [pytest.mark.usefixtures("quick_retries"), pytest.mark.filterwarnings("error::DeprecationWarning")]
"""The name of a model that its provider retires would show here."""


def model(kind: str, server: Provider) -> tuple[Model, dict[str, Any]]:
    """The model and the options that select streaming."""
    if kind.startswith("anthropic"):
        options = {"max_output_tokens": 20_000 if kind.endswith("stream") else 1000}
        return AnthropicModel(CLAUDE, "sk-test", server.url), options
    made = OpenAIModel(GPT, "sk-test", f"{server.url}/v1")
    if kind == "openai":
        made._connect()  # to the server at hand, and from here on as if it were the provider's own
        made.base_url = None
    return made, {"max_output_tokens": 1000}


def reply_step(kind: str, text: str | None, calls: list[tuple[str, str, Any]], stop: Stop, **more: Any) -> Step:
    """The same reply in each wire format. A string as arguments is sent as it is."""
    import json

    if kind.startswith("anthropic"):
        words = {Stop.END: "end_turn", Stop.TOOLS: "tool_use", Stop.TRUNCATED: "max_tokens", Stop.REFUSED: "refusal"}
        blocks = [claude_text(text)] if text else []
        blocks += [claude_call(name, arguments, call_id) for call_id, name, arguments in calls]
        message = claude(*blocks, stop=words[stop], **more)
        return Step(events=claude_stream(message)) if kind.endswith("stream") else Step(body=message)
    words = {Stop.END: "stop", Stop.TOOLS: "tool_calls", Stop.TRUNCATED: "length", Stop.REFUSED: "content_filter"}
    encoded = [(i, n, a if isinstance(a, str) else json.dumps(a)) for i, n, a in calls]
    return Step(events=gpt(text, encoded, finish=words[stop], **more))


def error_step(kind: str, status: int, message: str, **headers: str) -> Step:
    body = claude_error("api_error", message) if kind.startswith("anthropic") else gpt_error(message)
    return Step(status, body, headers={k.replace("_", "-"): v for k, v in headers.items()})


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize(
    ("text", "calls", "stop"),
    [
        ("Use fewer stages.", [], Stop.END),
        (None, [("c1", "compile", {"code": "x = 1"})], Stop.TOOLS),
        ("Let me see.", [("c1", "compile", {"code": "x"}), ("c2", "verify", {})], Stop.TOOLS),
        ("Too long an ans", [], Stop.TRUNCATED),
        ("", [], Stop.REFUSED),
        ("naïve – 零拷贝 🚀", [("c1", "compile", {"code": 'tl.load("\\n")'})], Stop.TOOLS),
    ],
)
def test_replies(server: Provider, kind: str, text: str | None, calls: list[tuple[str, str, Any]], stop: Stop) -> None:
    server.script = [reply_step(kind, text, calls, stop)]
    asked, options = model(kind, server)
    reply = asked.propose(ASK, [TOOL], **options)
    assert (reply.text, reply.stop) == (text or "", stop)
    assert [(c.id, c.name, c.arguments, c.problem) for c in reply.calls] == [(i, n, a, "") for i, n, a in calls]
    assert reply.usage == Usage(input=100, output=20)
    assert reply.attempts == 1
    assert reply.request_id


@pytest.mark.parametrize("kind", BOTH)
def test_the_request_carries_everything_in_a_stable_order(server: Provider, kind: str) -> None:
    history = [
        *ASK,
        Message("assistant", "Trying.", (ToolCall("c1", "compile", {"code": "x"}),)),
        Message("user", results=(ToolResult("c1", "error: line 3", failed=True),)),
    ]
    schema = {"type": "object", "properties": {"edits": {"type": "array"}}, "additionalProperties": False}
    server.script = [reply_step(kind, "{}", [], Stop.END) for _ in range(2)]
    asked, options = model(kind, server)
    asked.propose(history, [TOOL], schema, **options)
    asked.propose([*history, Message("user", "Go on.")], [TOOL], schema, **options)
    first, second = server.requests
    if kind.startswith("anthropic"):
        assert first["system"][0]["text"] == "You speed up kernels."
        assert first["system"][0]["cache_control"] == {"type": "ephemeral"}
        assert first["messages"][2]["content"] == [
            {"type": "tool_result", "tool_use_id": "c1", "content": "error: line 3", "is_error": True}
        ]
        assert first["output_config"]["format"]["schema"] == schema
        assert first["tools"][0]["input_schema"] == TOOL.parameters
        # the SDK has moved the key from one header to the other
        sent = server.headers[0]
        assert "sk-test" in (sent.get("x-api-key"), sent.get("authorization", "").removeprefix("Bearer "))
    else:
        assert [m["role"] for m in first["messages"]] == ["system", "user", "assistant", "tool"]
        assert first["messages"][2]["tool_calls"][0]["function"] == {"name": "compile", "arguments": '{"code": "x"}'}
        assert first["response_format"]["json_schema"]["schema"] == schema
        assert first["stream_options"] == {"include_usage": True}
        assert ("max_tokens" in first) == (kind == "openai-compatible")
        assert server.headers[0]["authorization"] == "Bearer sk-test"
    # a cached prefix must not change between calls
    assert second["messages"][: len(first["messages"])] == first["messages"]
    assert {k: v for k, v in first.items() if k != "messages"} == {k: v for k, v in second.items() if k != "messages"}


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 529])
def test_what_may_pass_is_tried_again(server: Provider, kind: str, status: int) -> None:
    server.script = [
        error_step(kind, status, "busy"),
        error_step(kind, status, "busy"),
        reply_step(kind, "ok", [], Stop.END),
    ]
    asked, options = model(kind, server)
    reply = asked.propose(ASK, **options)
    assert (reply.text, reply.attempts) == ("ok", 3)


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422])
def test_what_will_not_pass_is_said_at_once(server: Provider, kind: str, status: int) -> None:
    server.script = [error_step(kind, status, "no such model\nwith details")]
    asked, options = model(kind, server)
    with pytest.raises(ModelError, match=str(status)) as e:
        asked.propose(ASK, **options)
    assert not e.value.retryable
    assert "\n" not in str(e.value)
    assert len(server.requests) == 1


@pytest.mark.parametrize("kind", BOTH)
def test_retry_after_is_obeyed_within_the_deadline(
    server: Provider, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []
    monkeypatch.setattr(
        retry.with_retries, "__kwdefaults__", {**retry.with_retries.__kwdefaults__, "sleep": slept.append}
    )
    server.script = [error_step(kind, 429, "slow down", retry_after="2"), reply_step(kind, "ok", [], Stop.END)]
    asked, options = model(kind, server)
    assert asked.propose(ASK, **options).attempts == 2
    assert slept == [2.0]
    server.script = [error_step(kind, 429, "come back tomorrow", retry_after="4000")]
    with pytest.raises(ModelError, match="429"):
        asked.propose(ASK, timeout_s=5, **options)
    assert slept == [2.0]


@pytest.mark.parametrize("kind", BOTH)
def test_it_gives_up_after_five_attempts(server: Provider, kind: str) -> None:
    server.script = [error_step(kind, 503, "down")] * 9
    asked, options = model(kind, server)
    with pytest.raises(ModelError, match="503"):
        asked.propose(ASK, **options)
    assert len(server.requests) == retry.MAX_ATTEMPTS


@pytest.mark.parametrize("kind", BOTH)
def test_a_server_that_does_not_answer_costs_the_time_limit_only(server: Provider, kind: str) -> None:
    server.script = [Step(delay_s=3.0, body={})] * 9
    asked, options = model(kind, server)
    with pytest.raises(ModelError):
        asked.propose(ASK, timeout_s=0.4, **options)


@pytest.mark.parametrize("kind", BOTH)
def test_no_server_at_all(server: Provider, kind: str) -> None:
    asked, options = model(kind, server)
    dead = "http://127.0.0.1:9"
    asked.base_url = dead
    asked._client = None
    with pytest.raises(ModelError, match="could not be reached"):
        asked.propose(ASK, timeout_s=2, **options)


@pytest.mark.parametrize("kind", BOTH)
def test_cut_connections_are_tried_again(server: Provider, kind: str) -> None:
    cut = reply_step(kind, "half", [], Stop.END)
    cut.cut = True
    if cut.events is not None:
        cut.events = cut.events[:3]
    server.script = [cut, reply_step(kind, "whole", [], Stop.END)]
    asked, options = model(kind, server)
    assert asked.propose(ASK, **options).text == "whole"


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("raw", [b"", b"{", b"<html>proxy error</html>", b"null", b"[]"])
def test_nonsense_bodies_are_a_model_error(server: Provider, kind: str, raw: bytes) -> None:
    server.script = [Step(raw=raw)] * 9
    asked, options = model(kind, server)
    with pytest.raises(ModelError):
        asked.propose(ASK, timeout_s=5, **options)


@pytest.mark.parametrize("kind", ["anthropic", "anthropic-stream"])
def test_a_tool_call_cut_off_at_the_limit_is_not_run(server: Provider, kind: str) -> None:
    message = claude(claude_text("Now:"), claude_call("compile", {"code": "import tri"}), stop="max_tokens")
    server.script = [Step(events=claude_stream(message)) if kind.endswith("stream") else Step(body=message)]
    asked, options = model(kind, server)
    reply = asked.propose(ASK, [TOOL], **options)
    assert reply.stop is Stop.TRUNCATED
    assert reply.calls[0].arguments is None
    assert "cut off" in reply.calls[0].problem


@pytest.mark.parametrize("kind", ["openai", "openai-compatible"])
@pytest.mark.parametrize(
    ("arguments", "finish", "problem"),
    [
        ('{"code": "x', "length", "cut off"),
        ('{"code": x}', "tool_calls", "not valid JSON"),
        ("[1, 2]", "tool_calls", "not a JSON object"),
        ('"text"', "tool_calls", "not a JSON object"),
        ("{}{}", "tool_calls", "not valid JSON"),
    ],
)
def test_malformed_arguments_are_a_value(
    server: Provider, kind: str, arguments: str, finish: str, problem: str
) -> None:
    server.script = [Step(events=gpt(None, [("c1", "compile", arguments)], finish=finish))]
    asked, options = model(kind, server)
    (call,) = asked.propose(ASK, [TOOL], **options).calls
    assert call.arguments is None
    assert problem in call.problem


def test_servers_that_leave_out_ids_indices_or_the_finish_word(server: Provider) -> None:
    asked, options = model("openai-compatible", server)
    server.script = [Step(events=gpt(None, [(None, "compile", "{}")], finish="stop"))]
    reply = asked.propose(ASK, [TOOL], **options)
    assert reply.stop is Stop.TOOLS
    assert reply.calls[0].id == "call_0"
    server.script = [Step(events=gpt("x", finish=None, done=False))] * 9
    with pytest.raises(ModelError, match="without saying why"):
        asked.propose(ASK, **options)


def test_a_local_server_needs_no_key(server: Provider) -> None:
    server.script = [Step(events=gpt("hi"))]
    assert OpenAIModel("llama", None, f"{server.url}/v1").propose(ASK).text == "hi"


@pytest.mark.parametrize(
    ("kind", "usage", "expected", "usd"),
    [
        # 1,000 x 3 + 200 x 15 dollars per million
        ("anthropic", {"input_tokens": 1000, "output_tokens": 200}, Usage(1000, 0, 0, 200), "0.006"),
        # 50 x 3 + 900 x 0.3 + 100 x 3.75 + 10 x 15
        (
            "anthropic-stream",
            {
                "input_tokens": 50, "output_tokens": 10, "cache_read_input_tokens": 900,
                "cache_creation_input_tokens": 100,
            },
            Usage(50, 900, 100, 10),
            "0.000945",
        ),
        # cached tokens are part of their input count: (1000 - 800) x 1.25 + 800 x 0.125 + 40 x 10
        (
            "openai",
            {
                "prompt_tokens": 1000, "completion_tokens": 40, "total_tokens": 1040,
                "prompt_tokens_details": {"cached_tokens": 800},
            },
            Usage(200, 800, 0, 40),
            "0.00075",
        ),
    ],
)  # fmt: skip
def test_costs_by_hand(server: Provider, kind: str, usage: dict[str, Any], expected: Usage, usd: str) -> None:
    server.script = [reply_step(kind, "x", [], Stop.END, usage=usage)]
    asked, options = model(kind, server)
    reply = asked.propose(ASK, **options)
    assert reply.usage == expected
    price = price_of(asked.name)
    assert price is not None
    assert cost_usd(reply.usage, price) == Decimal(usd)
