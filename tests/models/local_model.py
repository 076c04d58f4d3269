"""A real small language model behind chat completions: `python local_model.py FILE.gguf`, prints its address.

For the opt-in test alone. Needs transformers and gguf beside torch; answers one request at a time, streamed, and cuts
long prompts, because such a model reads few tokens per second on a CPU.
"""

from __future__ import annotations

import json
import re
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

MAX_PROMPT_TOKENS, MAX_NEW_TOKENS = 700, 60
_CALL = re.compile(r'\{\s*"name"\s*:\s*"(\w+)"\s*,\s*"arguments"\s*:\s*(\{.*?\})\s*\}', re.DOTALL)


class LocalModel:
    """The model and its tokenizer, from one GGUF file."""

    def __init__(self, path: Path) -> None:
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer

        self.torch = torch
        torch.manual_seed(0)
        self.tokenizer = AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
        self.model = AutoModelForCausalLM.from_pretrained(path.parent, gguf_file=path.name)

    def answer(self, messages: list[dict[str, Any]], limit: int) -> tuple[str, int, int]:
        """Text, tokens read, tokens written."""
        told = "\n".join(f"<|im_start|>{m['role']}\n{m.get('content') or ''}<|im_end|>" for m in messages)
        ids = self.tokenizer(told + "\n<|im_start|>assistant\n", return_tensors="pt").input_ids[:, -MAX_PROMPT_TOKENS:]
        with self.torch.no_grad():
            out = self.model.generate(ids, max_new_tokens=min(limit, MAX_NEW_TOKENS), do_sample=False)
        new = out[0, ids.shape[1] :]
        return self.tokenizer.decode(new, skip_special_tokens=True), ids.shape[1], len(new)


def chunks(text: str, read: int, written: int) -> list[dict[str, Any]]:
    """The answer as the events of a stream; what looks like a call becomes one."""
    head = {"id": "local", "object": "chat.completion.chunk", "created": 1, "model": "local"}

    def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        return {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    events = [chunk({"role": "assistant", "content": text})]
    call = _CALL.search(text)
    if call:
        function = {"name": call[1], "arguments": call[2]}
        events.append(chunk({"tool_calls": [{"index": 0, "id": "c1", "type": "function", "function": function}]}))
    events.append(chunk({}, "tool_calls" if call else "stop"))
    usage = {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}
    return [*events, {**head, "choices": [], "usage": usage}]


def serve(path: Path) -> None:
    local = LocalModel(path)

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

        def do_GET(self) -> None:
            self._send(json.dumps({"object": "list", "data": [{"id": "local", "object": "model"}]}), "application/json")

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
            events = chunks(*local.answer(asked["messages"], int(asked.get("max_tokens", 60))))
            stream = "".join(f"data: {json.dumps(e)}\n\n" for e in events) + "data: [DONE]\n\n"
            self._send(stream, "text/event-stream")

        def _send(self, text: str, kind: str) -> None:
            data = text.encode()
            self.send_response(200)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    server = HTTPServer(("127.0.0.1", 0), Handler)
    print(f"http://127.0.0.1:{server.server_port}/v1", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
