"""A local server that speaks the wire formats of Anthropic's Messages API and of chat completions.

Each request is answered by the next step of a script; requests are kept for inspection. No SDK is imported.
"""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

CLAUDE, GPT = "claude-sonnet-4-6", "gpt-5"
"""The models that the tests ask for: priced, and not deprecated by their SDKs."""


@dataclass
class Step:
    """One answer: a status with a body, or a stream of events.

    `delay_s` passes before it; `cut` ends the connection early, `reset` in the rude way; `drip_s` passes before every
    further byte of it.
    """

    status: int = 200
    body: Any = None
    events: list[Any] | None = None
    headers: dict[str, str] = field(default_factory=dict)
    delay_s: float = 0.0
    cut: bool = False
    reset: bool = False
    drip_s: float = 0.0
    raw: bytes | None = None


@dataclass
class Provider:
    """The running server: its address, the script and what it was sent."""

    url: str
    script: list[Step] = field(default_factory=list)
    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    listing: Step = field(default_factory=lambda: Step(body={"object": "list", "data": [], "has_more": False}))
    """The answer to a request for the list of models."""
    gets: list[tuple[str, dict[str, str]]] = field(default_factory=list)


@contextmanager
def provider() -> Iterator[Provider]:
    state = Provider("")
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            pass

        def do_GET(self) -> None:
            with lock:
                state.gets.append((self.path, {k.lower(): v for k, v in self.headers.items()}))
            self.answer(state.listing)

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", "0")))
            with lock:
                state.requests.append(json.loads(body))
                state.headers.append({k.lower(): v for k, v in self.headers.items()})
                step = state.script.pop(0) if state.script else Step(500, {"error": {"message": "script is empty"}})
            time.sleep(step.delay_s)
            try:
                self.answer(step)
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True

        def answer(self, step: Step) -> None:
            if step.raw is not None:
                data, kind = step.raw, "application/json"
            elif step.events is not None:
                data, kind = b"".join(map(frame, step.events)), "text/event-stream"
            else:
                data, kind = json.dumps(step.body).encode(), "application/json"
            self.send_response(step.status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(data) + (1000 if step.cut or step.reset else 0)))
            for name, value in step.headers.items():
                self.send_header(name, value)
            self.end_headers()
            for n in range(len(data)) if step.drip_s else ():
                self.wfile.write(data[n : n + 1])
                time.sleep(step.drip_s)
            self.wfile.write(b"" if step.drip_s else data)
            if step.reset:
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.connection.close()
            if step.cut or step.reset:
                self.close_connection = True

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    state.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()


def frame(event: Any) -> bytes:
    """A server-sent event; Anthropic's carry their type as event name, chat completions end with `[DONE]`."""
    if isinstance(event, str):
        return f"data: {event}\n\n".encode()
    name = f"event: {event['type']}\n" if "type" in event and "object" not in event else ""
    return f"{name}data: {json.dumps(event)}\n\n".encode()


# --- Anthropic -------------------------------------------------------------------------------------------------------


def claude(
    *content: dict[str, Any],
    stop: str = "end_turn",
    usage: dict[str, int] | None = None,
    model: str = CLAUDE,
) -> dict[str, Any]:
    """A Messages API reply."""
    return {
        "id": "msg_1", "type": "message", "role": "assistant", "model": model, "content": list(content),
        "stop_reason": stop, "stop_sequence": None,
        "usage": usage or {"input_tokens": 100, "output_tokens": 20},
    }  # fmt: skip


def claude_text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def claude_call(name: str, arguments: Any, call_id: str = "toolu_1") -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


def claude_stream(message: dict[str, Any], *, upto: int | None = None) -> list[dict[str, Any]]:
    """The same reply as a stream; `upto` events only."""
    start = {**message, "content": [], "stop_reason": None, "usage": {**message["usage"], "output_tokens": 1}}
    events: list[dict[str, Any]] = [{"type": "message_start", "message": start}]
    for n, block in enumerate(message["content"]):
        if block["type"] == "text":
            events.append({"type": "content_block_start", "index": n, "content_block": {"type": "text", "text": ""}})
            for piece in (block["text"][:3], block["text"][3:]):
                delta = {"type": "text_delta", "text": piece}
                events.append({"type": "content_block_delta", "index": n, "delta": delta})
        else:
            events.append({"type": "content_block_start", "index": n, "content_block": {**block, "input": {}}})
            text = block["input"] if isinstance(block["input"], str) else json.dumps(block["input"])
            for piece in (text[:4], text[4:]):
                delta = {"type": "input_json_delta", "partial_json": piece}
                events.append({"type": "content_block_delta", "index": n, "delta": delta})
        events.append({"type": "content_block_stop", "index": n})
    end = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    events.append(
        {"type": "message_delta", "delta": end, "usage": {"output_tokens": message["usage"]["output_tokens"]}}
    )
    events.append({"type": "message_stop"})
    return events[:upto]


def claude_error(kind: str, message: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": message}}


# --- chat completions ------------------------------------------------------------------------------------------------


def gpt(
    text: str | None = None,
    calls: list[tuple[str | None, str, str]] = [],
    finish: str | None = "stop",
    usage: dict[str, Any] | None = None,
    model: str = GPT,
    done: bool = True,
    index: Callable[[int], int | None] = lambda n: n,
) -> list[Any]:
    """A streamed reply: text in two pieces, each call in two fragments, the end, then the usage chunk."""

    def chunk(delta: dict[str, Any], finish_reason: str | None = None) -> dict[str, Any]:
        return {
            "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": model,
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}],
        }  # fmt: skip

    events: list[Any] = [chunk({"role": "assistant", "content": ""})]
    if text is not None:
        events += [chunk({"content": text[:3]}), chunk({"content": text[3:]})]
    for n, (call_id, name, arguments) in enumerate(calls):
        head: dict[str, Any] = {"type": "function", "function": {"name": name, "arguments": arguments[:2]}}
        tail: dict[str, Any] = {"function": {"arguments": arguments[2:]}}
        if call_id is not None:
            head["id"] = call_id
        for part in (head, tail):
            if index(n) is not None:
                part["index"] = index(n)
            events.append(chunk({"tool_calls": [part]}))
    events.append(chunk({}, finish))
    events.append(
        {
            "id": "chatcmpl-1",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": model,
            "choices": [],
            "usage": usage or {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120},
        }
    )
    return [*events, "[DONE]"] if done else events


def gpt_error(message: str, kind: str = "server_error") -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "param": None, "code": None}}
