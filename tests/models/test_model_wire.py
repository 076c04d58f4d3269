"""The less common things a provider does on the wire: half replies, odd numbers, redirects, echoes. None is trusted."""

from __future__ import annotations

import json
import sys
import time
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from provider import (
    Provider,
    Step,
    claude,
    claude_call,
    claude_error,
    claude_stream,
    claude_text,
    gpt,
    provider,
)
from test_model_adapters import ASK, BOTH, TOOL, error_step, model, reply_step

from agent import retry
from agent.conversation import Conversation
from agent.model import Message, ModelError, Stop, Tool, ToolResult, Usage, estimate_tokens
from agent.spend import BudgetSpent, Ledger, Limits, Price
from agent.transcript import RecordingModel, ReplayModel

PRICE = Price(input=Decimal(3), output=Decimal(15), cache_read=Decimal("0.3"), cache_write=Decimal("3.75"))
ANTHROPIC = ["anthropic", "anthropic-stream"]
OPENAI = ["openai", "openai-compatible"]
pytestmark = pytest.mark.usefixtures("quick_retries")


def ask(kind: str, server: Provider, *, timeout_s: float = 120.0) -> Any:
    asked, options = model(kind, server)
    return asked.propose(ASK, [TOOL], timeout_s=timeout_s, **options)


def half(kind: str) -> Step:
    """A reply whose stream ends in the middle of a tool's argument; without a stream, in the middle of the body."""
    whole = reply_step(kind, None, [("c1", "compile", {"code": "import triton"})], Stop.TOOLS)
    if whole.events is None:
        return Step(raw=json.dumps(whole.body).encode()[:150])
    whole.events = whole.events[:3]
    return whole


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("how", ["cut", "reset"])
def test_a_call_whose_argument_breaks_off_is_asked_for_again(server: Provider, kind: str, how: str) -> None:
    broken = half(kind)
    setattr(broken, how, True)
    server.script = [broken, reply_step(kind, None, [("c1", "compile", {"code": "x"})], Stop.TOOLS)]
    reply = ask(kind, server)
    assert [c.arguments for c in reply.calls] == [{"code": "x"}] and reply.attempts == 2


@pytest.mark.parametrize("kind", BOTH)
def test_a_stream_that_ends_politely_but_too_early_is_no_reply(server: Provider, kind: str) -> None:
    server.script = [half(kind) for _ in range(9)]
    with pytest.raises(ModelError):
        ask(kind, server)
    assert len(server.requests) <= retry.MAX_ATTEMPTS


def with_usage(kind: str, usage: Any) -> Step:
    """A reply whose account is `usage`; None leaves it out."""
    step = reply_step(kind, "x" * 300, [], Stop.END)
    for part in [step.body] if step.body is not None else step.events or []:
        for holder in (part, part.get("message", {})) if isinstance(part, dict) else ():
            if "usage" in holder:
                holder["usage"] = usage
                if usage is None:
                    del holder["usage"]
    return step


ODD = [
    None,
    {"input_tokens": -500, "output_tokens": -9, "prompt_tokens": -500, "completion_tokens": -9, "total_tokens": -509},
    {"input_tokens": float("nan"), "output_tokens": 3, "prompt_tokens": float("nan"), "completion_tokens": 3},
    {"input_tokens": float("inf"), "output_tokens": 3, "prompt_tokens": float("inf"), "completion_tokens": 3},
    {"input_tokens": "12", "output_tokens": "x", "prompt_tokens": "12", "completion_tokens": "x"},
    {"input_tokens": None, "output_tokens": None, "prompt_tokens": None, "completion_tokens": None},
    {},
]


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("usage", ODD, ids=range(len(ODD)))
def test_an_account_that_cannot_be_is_replaced_by_our_own_estimate(server: Provider, kind: str, usage: Any) -> None:
    """Never less than was sent: a server that counts wrongly or not at all does not make tokens free."""
    server.script = [with_usage(kind, usage)]
    if kind == "anthropic-stream" and usage is None:
        with pytest.raises(ModelError, match="stream cannot be read"):
            ask(kind, server)
        return
    asked, options = model(kind, server)
    ledger = Ledger(Limits(tokens=1_000_000, usd=Decimal(1)), asked.name, PRICE)
    talk = Conversation(asked, ledger, [TOOL], lambda c: ToolResult(c.id, ""), lambda: False, lambda _: None, **options)
    reply = talk.ask(ASK)
    assert reply.text == "x" * 300
    spent = ledger.spent
    assert spent.usage.input == estimate_tokens(ASK, [TOOL]) and spent.usage.output >= 100
    assert spent.usd is not None and 0 < spent.usd < Decimal("0.01")


@pytest.mark.parametrize("kind", BOTH)
def test_tokens_that_are_not_counted_end_at_the_budget_all_the_same(server: Provider, kind: str) -> None:
    server.script = [with_usage(kind, {}) for _ in range(200)]
    asked, options = model(kind, server)
    limit = 2 * options["max_output_tokens"]
    ledger = Ledger(Limits(tokens=limit), asked.name, None)
    talk = Conversation(asked, ledger, [TOOL], lambda c: ToolResult(c.id, ""), lambda: False, lambda _: None, **options)
    with pytest.raises(BudgetSpent, match="tokens"):
        while True:
            talk.ask(ASK)
    assert 1 < len(server.requests) < 200 and ledger.spent.tokens <= limit


@pytest.mark.parametrize("kind", OPENAI)
def test_more_cached_tokens_than_there_were(server: Provider, kind: str) -> None:
    usage = {"prompt_tokens": 10, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 99}}
    server.script = [Step(events=gpt("x", usage=usage))]
    assert ask(kind, server).usage == Usage(0, 10, 0, 2)


@pytest.mark.parametrize("kind", BOTH)
def test_calls_of_one_id_are_told_apart(server: Provider, kind: str) -> None:
    """In the conversation that goes back each result needs a call of its own."""
    calls = [("c1", "compile", {"code": "x"}), ("c1", "compile", {"code": "y"}), ("", "compile", {})]
    server.script = [reply_step(kind, None, calls, Stop.TOOLS), reply_step(kind, "done", [], Stop.END)]
    asked, options = model(kind, server)
    reply = asked.propose(ASK, [TOOL], **options)
    ids = [c.id for c in reply.calls]
    assert ids[0] == "c1" and len(set(ids)) == 3 and all(ids)
    results = tuple(ToolResult(c.id, "ok") for c in reply.calls)
    asked.propose([*ASK, reply.message, Message("user", results=results)], [TOOL], **options)
    sent = json.dumps(server.requests[1]["messages"])
    assert all(sent.count(json.dumps(i)) == 2 for i in ids)


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("name", ["run shell", "naïve\n", "x" * 300, ""])
def test_a_name_that_no_tool_may_have_does_not_spoil_the_next_request(server: Provider, kind: str, name: str) -> None:
    server.script = [reply_step(kind, None, [("c1", name, {})], Stop.TOOLS), reply_step(kind, "ok", [], Stop.END)]
    asked, options = model(kind, server)
    reply = asked.propose(ASK, [TOOL], **options)
    asked.propose([*ASK, reply.message, Message("user", results=(ToolResult("c1", "no"),))], [TOOL], **options)
    turn = server.requests[1]["messages"][-2]
    sent = turn["content"][0]["name"] if kind in ANTHROPIC else turn["tool_calls"][0]["function"]["name"]
    assert sent and len(sent) <= 64 and sent.isascii() and sent.replace("_", "").replace("-", "").isalnum()


@pytest.mark.parametrize("kind", OPENAI)
def test_parallel_calls_may_come_in_turns(server: Provider, kind: str) -> None:
    events = gpt(None, [("c1", "compile", '{"code": "x"}'), ("c2", "compile", '{"code": "y"}')], "tool_calls")
    head, (a1, a2, b1, b2), tail = events[:1], events[1:5], events[5:]
    server.script = [Step(events=[*head, a1, b1, b2, a2, *tail])]
    assert [c.arguments for c in ask(kind, server).calls] == [{"code": "x"}, {"code": "y"}]


@pytest.mark.parametrize("kind", OPENAI)
def test_chunks_without_choices_alone_are_no_reply(server: Provider, kind: str) -> None:
    empty = [e for e in gpt("x") if e == "[DONE]" or not e["choices"]]
    server.script = [Step(events=empty), Step(events=gpt("ok"))]
    assert ask(kind, server).text == "ok"


@pytest.mark.parametrize("kind", OPENAI)
def test_a_refusal_in_its_own_field_is_a_refusal(server: Provider, kind: str) -> None:
    events = gpt("")
    events[1]["choices"][0]["delta"] = {"refusal": "I cannot help with that."}
    server.script = [Step(events=events)]
    reply = ask(kind, server)
    assert reply.stop is Stop.REFUSED and reply.text == "I cannot help with that."


@pytest.mark.parametrize("kind", OPENAI)
def test_a_content_filter_in_the_middle_of_a_call_runs_nothing(server: Provider, kind: str) -> None:
    server.script = [Step(events=gpt(None, [("c1", "compile", '{"code": "x')], "content_filter"))]
    reply = ask(kind, server)
    assert reply.stop is Stop.REFUSED and reply.calls[0].arguments is None


def test_overload_that_is_told_inside_a_stream_is_tried_again(server: Provider) -> None:
    start = claude_stream(claude(claude_text("half")))[:2]
    error = claude_error("overloaded_error", "Overloaded")
    server.script = [Step(events=[*start, error]), reply_step("anthropic-stream", "ok", [], Stop.END)]
    assert ask("anthropic-stream", server).text == "ok"
    wrong = claude_error("invalid_request_error", "no such thing")
    server.script = [Step(events=[*start, wrong])] * 9
    server.requests.clear()
    with pytest.raises(ModelError, match="no such thing"):
        ask("anthropic-stream", server)
    assert len(server.requests) == 1


@pytest.mark.parametrize("kind", OPENAI)
def test_an_error_inside_a_stream_is_tried_again(server: Provider, kind: str) -> None:
    events = [*gpt("half")[:2], {"error": {"message": "The server is overloaded", "type": "server_error", "code": 529}}]
    server.script = [Step(events=events), Step(events=gpt("ok"))]
    assert ask(kind, server).text == "ok"


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("past", [False, True])
def test_retry_after_may_be_a_date(server: Provider, kind: str, past: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr(
        retry.with_retries, "__kwdefaults__", {**retry.with_retries.__kwdefaults__, "sleep": slept.append}
    )
    at = datetime.now(UTC) + timedelta(seconds=-500 if past else 80)
    step = error_step(kind, 429, "later", retry_after=format_datetime(at, usegmt=True))
    server.script = [step, reply_step(kind, "ok", [], Stop.END)]
    assert ask(kind, server, timeout_s=600).text == "ok"
    (waited,) = slept
    assert waited == 0 if past else 1 < waited <= 80


@pytest.mark.parametrize("value", ["-5", "nan", "inf", "soon", "", "99999999999", "Mon, 99 Foo 2026"])
def test_a_retry_after_that_says_nothing_is_left_aside(server: Provider, value: str) -> None:
    server.script = [error_step("openai", 429, "later", retry_after=value), reply_step("openai", "ok", [], Stop.END)]
    assert ask("openai", server).text == "ok"


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize(
    ("status", "words"),
    [
        (401, "the key was refused"),
        (403, "the key may not be used for this"),
        (404, "there is no such model or page"),
        (413, "the request is too large"),
        (529, "the server is overloaded"),
        (502, "the server has a fault"),
        (418, "418"),
    ],
)
def test_a_status_is_said_in_words(server: Provider, kind: str, status: int, words: str) -> None:
    html = b"<html>\n<head><title>Error</title></head>\n<body><h1>nginx \x1b[31m" + b"x" * 5000 + b"</h1></body></html>"
    server.script = [Step(status, raw=html) for _ in range(9)]
    with pytest.raises(ModelError, match=f"{status}") as e:
        ask(kind, server)
    said = str(e.value)
    assert words in said and said.isprintable() and len(said) < 500 and "<" not in said


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_not_followed_with_the_key(server: Provider, kind: str, status: int) -> None:
    with provider() as other:
        other.script = [reply_step(kind, "stolen", [], Stop.END)] * 9
        server.script = [Step(status, body={}, headers={"location": f"{other.url}/v1/messages"})]
        with pytest.raises(ModelError, match="sends on to another address"):
            ask(kind, server)
        assert not other.requests and not other.gets


@pytest.mark.parametrize("kind", BOTH)
def test_a_server_that_speaks_no_tls(server: Provider, kind: str) -> None:
    asked, options = model(kind, server)
    asked.base_url, asked._client = server.url.replace("http:", "https:"), None  # type: ignore[attr-defined]
    with pytest.raises(ModelError, match=r"could not be reached.*SSL"):
        asked.propose(ASK, timeout_s=20, **options)


@pytest.mark.parametrize("kind", BOTH)
def test_a_reply_that_drips_ends_at_the_time_limit(server: Provider, kind: str) -> None:
    """A byte now and then keeps every single read alive; the limit is for the whole reply."""
    step = reply_step(kind, "x" * 4000, [], Stop.END)
    step.drip_s = 0.2
    server.script = [step] * 9
    began = time.monotonic()
    with pytest.raises(ModelError):
        ask(kind, server, timeout_s=2)
    assert time.monotonic() - began < 120, "the whole reply would take far longer"


@pytest.mark.parametrize("kind", BOTH)
def test_a_key_that_a_server_echoes_is_kept_nowhere(server: Provider, kind: str, tmp_path: Path) -> None:
    path = tmp_path / "transcript.jsonl"
    asked, options = model(kind, server)
    recorded = RecordingModel(asked, path)
    server.script = [reply_step(kind, "Your key is sk-test.", [("c1", "compile", {"code": "sk-test"})], Stop.TOOLS)]
    reply = recorded.propose(ASK, [TOOL], **options)
    assert reply.text == "Your key is [key]." and reply.calls[0].arguments == {"code": "[key]"}
    server.script = [error_step(kind, 401, "Incorrect API key provided: sk-test")]
    with pytest.raises(ModelError, match=r"provided: \[key\]"):
        recorded.propose(ASK, [TOOL], **options)
    assert "sk-test" not in path.read_text()


@pytest.mark.parametrize("kind", ANTHROPIC)
def test_thinking_goes_back_as_it_came(server: Provider, kind: str, tmp_path: Path) -> None:
    """Models that think want their own blocks back with the results of their calls, signature and all."""
    thought = {"type": "thinking", "thinking": "Fewer stages.", "signature": "c2ln"}
    hidden = {"type": "redacted_thinking", "data": "ZW5j"}
    said = [thought, hidden, claude_text("I compile."), claude_call("compile", {"code": "x"})]
    message = claude(*said, stop="tool_use")
    first = Step(events=thinking_stream(message)) if kind == "anthropic-stream" else Step(body=message)
    server.script = [first, reply_step(kind, "done", [], Stop.END)]
    asked, options = model(kind, server)
    recorded = RecordingModel(asked, tmp_path / "t.jsonl")
    reply = recorded.propose(ASK, [TOOL], **options)
    assert reply.text == "I compile." and len(reply.calls) == 1
    talk = [*ASK, reply.message, Message("user", results=(ToolResult("toolu_1", "ok"),))]
    recorded.propose(talk, [TOOL], **options)
    assert server.requests[1]["messages"][1] == {"role": "assistant", "content": said}
    replayed = ReplayModel(tmp_path / "t.jsonl", "m")
    again = replayed.propose(ASK, [TOOL])
    assert again.message == reply.message
    assert replayed.propose([*ASK, again.message, talk[-1]], [TOOL]).text == "done"


def thinking_stream(message: dict[str, Any]) -> list[dict[str, Any]]:
    """`claude_stream` with the blocks of thinking, which it does not know."""
    events: list[dict[str, Any]] = []
    plain = {**message, "content": [b for b in message["content"] if "thinking" not in b["type"]]}
    shift = len(message["content"]) - len(plain["content"])
    for event in claude_stream(plain):
        events.append({**event, "index": event["index"] + shift} if "index" in event else event)
    for n, block in reversed(list(enumerate(message["content"][:shift]))):
        empty = {**block, "thinking": "", "signature": ""} if block["type"] == "thinking" else block
        deltas = [
            {"type": "thinking_delta", "thinking": block["thinking"]},
            {"type": "signature_delta", "signature": block["signature"]},
        ] if block["type"] == "thinking" else []  # fmt: skip
        events[1:1] = [
            {"type": "content_block_start", "index": n, "content_block": empty},
            *({"type": "content_block_delta", "index": n, "delta": d} for d in deltas),
            {"type": "content_block_stop", "index": n},
        ]
    return events


def test_a_tool_of_ours_is_all_that_is_offered(server: Provider) -> None:
    """A server cannot add one: what it calls is looked up in our list."""
    other = Tool("shell", "Run a command.", {"type": "object", "properties": {}})
    server.script = [reply_step("openai", None, [("c1", other.name, {"cmd": "id"})], Stop.TOOLS)]
    asked, options = model("openai", server)
    ran: list[str] = []
    talk = Conversation(
        asked, Ledger(Limits(), "m", None), [TOOL], lambda c: ToolResult(c.id, ran.append(c.name) or ""),
        lambda: True, lambda _: None, **options,
    )  # fmt: skip
    talk.hold([*ASK], 3)
    assert ran == ["shell"] and [t["function"]["name"] for t in server.requests[0]["tools"]] == ["compile"]
