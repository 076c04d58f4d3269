"""Everything a model was asked and answered, stored as JSON lines, and a model that answers from such a file.

A job with a stored transcript can be replayed without a network: the same messages get the same replies, so the same
candidates are judged and the same patch comes out.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from agent.model import Message, Model, ModelError, Reply, Stop, Tool, ToolCall, Usage
from sandbox.errors import InputError


def fingerprint(messages: Sequence[Message], tools: Sequence[Tool], schema: Mapping[str, Any] | None) -> str:
    """SHA-256 over everything that was asked."""
    asked = {"messages": [asdict(m) for m in messages], "tools": [t.name for t in tools], "schema": schema}
    return hashlib.sha256(json.dumps(asked, sort_keys=True, default=str).encode()).hexdigest()


@dataclass
class RecordingModel:
    """Passes calls on and appends each with its reply to a file."""

    inner: Model
    path: Path

    @property
    def name(self) -> str:
        return self.inner.name

    def propose(
        self,
        messages: Sequence[Message],
        tools: Sequence[Tool] = (),
        schema: Mapping[str, Any] | None = None,
        *,
        max_output_tokens: int = 8192,
        timeout_s: float = 300.0,
    ) -> Reply:
        reply = self.inner.propose(messages, tools, schema, max_output_tokens=max_output_tokens, timeout_s=timeout_s)
        record = {
            "fingerprint": fingerprint(messages, tools, schema),
            "messages": [asdict(m) for m in messages],
            "reply": asdict(reply),
        }
        with self.path.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(record, default=str) + "\n")
        return reply


@dataclass
class ReplayModel:
    """Answers from a transcript, in order, and only to the very same question."""

    path: Path
    name: str = "replay"
    _records: list[dict[str, Any]] = field(default_factory=list)
    _at: int = 0

    def __post_init__(self) -> None:
        try:
            lines = self.path.read_text(encoding="utf-8").splitlines()
            self._records = [json.loads(line) for line in lines if line.strip()]
        except (OSError, ValueError) as e:
            raise InputError(
                f"it is no transcript: {e}.", file=self.path, remedy="Give transcript.jsonl of a job."
            ) from None
        if self._records:
            self.name = str(self._records[0]["reply"]["model"])

    def propose(
        self,
        messages: Sequence[Message],
        tools: Sequence[Tool] = (),
        schema: Mapping[str, Any] | None = None,
        *,
        max_output_tokens: int = 8192,
        timeout_s: float = 300.0,
    ) -> Reply:
        """The stored reply; raises `ModelError` when the question differs or the transcript has ended."""
        if self._at >= len(self._records):
            raise ModelError("the transcript has no further reply", status=400)
        record = self._records[self._at]
        if record["fingerprint"] != fingerprint(messages, tools, schema):
            raise ModelError(f"question {self._at + 1} is not the one of the transcript", status=400)
        self._at += 1
        return _reply(record["reply"])


def _reply(data: Mapping[str, Any]) -> Reply:
    calls = tuple(ToolCall(**c) for c in data["calls"])
    rest = {k: v for k, v in data.items() if k not in ("calls", "stop", "usage")}
    return Reply(calls=calls, stop=Stop(data["stop"]), usage=Usage(**data["usage"]), **rest)
