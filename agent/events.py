"""What a job says while it works: phases, steps and attempts, for a terminal, a log or a browser alike."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, TextIO


class Phase(StrEnum):
    BENCHMARK = "benchmark"
    MATCH = "match"
    VALIDATE = "validate"
    REPORT = "report"

    @property
    def heading(self) -> str:
        return _HEADINGS[self]


_HEADINGS = {
    Phase.BENCHMARK: "Benchmark & Profile",
    Phase.MATCH: "Match & Fix",
    Phase.VALIDATE: "Generate & Validate",
    Phase.REPORT: "Report",
}


@dataclass(frozen=True, slots=True)
class Event:
    """One line of progress. `kind`: `phase` (began), `phase_done`, `step`, `attempt` (one was judged), `result`."""

    kind: str
    phase: Phase
    message: str
    at: float
    """Seconds since the epoch."""
    data: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> str:
        return json.dumps(asdict(self), default=str)


Sink = Callable[[Event], None]


class Progress:
    """Hands events to every sink. A sink that is slow slows the job; one that raises ends it."""

    def __init__(self, *sinks: Sink, clock: Callable[[], float] = time.time) -> None:
        self._sinks = sinks
        self._clock = clock
        self._phase = Phase.BENCHMARK

    @contextmanager
    def phase(self, phase: Phase) -> Iterator[None]:
        self._phase = phase
        began = self._clock()
        self._emit("phase", phase.heading)
        yield
        self._emit("phase_done", phase.heading, seconds=round(self._clock() - began, 3))

    def step(self, message: str, **data: Any) -> None:
        self._emit("step", message, **data)

    def attempt(self, message: str, **data: Any) -> None:
        self._emit("attempt", message, **data)

    def result(self, message: str, **data: Any) -> None:
        self._emit("result", message, **data)

    def _emit(self, kind: str, message: str, **data: Any) -> None:
        event = Event(kind, self._phase, message, self._clock(), data)
        for sink in self._sinks:
            sink(event)


def json_lines(stream: TextIO) -> Sink:
    """A sink that writes one JSON object per line and flushes, for a parent process to read."""

    def write(event: Event) -> None:
        stream.write(event.to_json() + "\n")
        stream.flush()

    return write
