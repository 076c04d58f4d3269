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
    """Passes calls on and appends each with its reply, or its failure, to a file. No key is ever among it."""

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
        asked = {
            "fingerprint": fingerprint(messages, tools, schema),
            "messages": [asdict(m) for m in messages],
        }
        try:
            reply = self.inner.propose(
                messages, tools, schema, max_output_tokens=max_output_tokens, timeout_s=timeout_s
            )
        except ModelError as e:
            self._write({**asked, "error": {"message": str(e), "status": e.status}})
            raise
        self._write({**asked, "reply": asdict(reply)})
        return reply

    def _write(self, record: Mapping[str, Any]) -> None:
        with self.path.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(record, default=str) + "\n")


@dataclass
class ReplayModel:
    """Answers from a transcript, in order, and only to the very same question."""

    path: Path
    name: str = ""
    """As it was asked for; the name in the first reply when it is not given."""
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
        named = [str(r["reply"]["model"]) for r in self._records if "reply" in r]
        self.name = self.name or (named[0] if named else "replay")

    def propose(
        self,
        messages: Sequence[Message],
        tools: Sequence[Tool] = (),
        schema: Mapping[str, Any] | None = None,
        *,
        max_output_tokens: int = 8192,
        timeout_s: float = 300.0,
    ) -> Reply:
        """The stored reply or failure; raises `ModelError` also when the question differs or the transcript ended."""
        if self._at >= len(self._records):
            raise ModelError("the transcript has no further reply", status=400)
        record = self._records[self._at]
        if record["fingerprint"] != fingerprint(messages, tools, schema):
            raise ModelError(f"question {self._at + 1} is not the one of the transcript", status=400)
        self._at += 1
        if "error" in record:
            raise ModelError(record["error"]["message"], status=record["error"]["status"])
        return _reply(record["reply"])


def _reply(data: Mapping[str, Any]) -> Reply:
    calls = tuple(ToolCall(**c) for c in data["calls"])
    rest = {k: v for k, v in data.items() if k not in ("calls", "stop", "usage", "carried")}
    carried = tuple(data.get("carried", ()))
    return Reply(calls=calls, stop=Stop(data["stop"]), usage=Usage(**data["usage"]), carried=carried, **rest)
