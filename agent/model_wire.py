"""What both adapters need of the wire: clients that follow nobody, errors in words, counts and names that can be.

Nothing that a server sends is trusted: not its counts, not its names, not its pages, not its redirects.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from importlib import import_module
from typing import Any

from agent.model import ModelError, ToolCall
from prompts import one_line

MAX_TOKENS = 10**9
"""More than any reply can cost; a larger count is a fault of the server."""
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_WORDS: Mapping[int, str] = {
    401: "the key was refused",
    403: "the key may not be used for this",
    404: "there is no such model or page",
    413: "the request is too large",
    429: "too many requests",
    529: "the server is overloaded",
}


def closed_client(sdk: Any) -> Any:
    """The SDK's own HTTP client, but it follows no redirect, which would carry the key to another server, and its read
    time limit is for the whole answer, not for each piece of it."""
    return sdk.DefaultHttpxClient(follow_redirects=False, event_hooks={"response": [_bound]})


def _bound(response: Any) -> None:
    """Let the body of a response end by the limit of its request."""
    limit_s = response.request.extensions.get("timeout", {}).get("read")
    if limit_s is not None:
        library = import_module(type(response).__module__.partition(".")[0])
        response.stream = _bounded_stream(response.stream, time.monotonic() + limit_s, library)


def _bounded_stream(inner: Any, deadline: float, library: Any) -> Any:
    """The body's stream, which raises the read timeout of the SDK's HTTP library once `deadline` has passed."""

    class Bounded(library.SyncByteStream):  # type: ignore[misc]
        def __iter__(self) -> Iterator[bytes]:
            for piece in inner:
                if time.monotonic() > deadline:
                    raise library.ReadTimeout("the answer was not complete in time")
                yield piece

        def close(self) -> None:
            inner.close()

    return Bounded()


def status_error(who: str, status: int, message: str, headers: Mapping[str, str], key: str | None) -> ModelError:
    """What an answer with an error status means, as one sentence. A page of HTML says nothing more."""
    if 300 <= status < 400:
        words = "the server sends on to another address, which is not followed; give that address"
    else:
        words = _WORDS.get(status, "the server has a fault" if status >= 500 else "")
    said = "" if "<" in message else first_line(message, key)
    text = ": ".join(part for part in (f"{who} answered {status}", words, said) if part)
    return ModelError(text, status=status, retry_after_s=retry_after_s(headers))


def connection_error(who: str, error: Exception, key: str | None) -> ModelError:
    """A connection that failed, with the reason that the HTTP library gives."""
    cause = f" ({error.__cause__})" if error.__cause__ is not None and str(error.__cause__) else ""
    return ModelError(f"{who} could not be reached: {first_line(f'{error}{cause}', key)}")


def first_line(text: str, key: str | None = None) -> str:
    """The first line of a text from outside, without the key that some servers echo."""
    line = (text.strip().splitlines() or ["no message"])[0]
    return one_line(without_key(line, key), 300)


def without_key(text: str, key: str | None) -> str:
    return text.replace(key, "[key]") if key else text


def without_key_in(value: Any, key: str | None) -> Any:
    """As `without_key`, for every text in JSON data."""
    if not key:
        return value
    if isinstance(value, str):
        return without_key(value, key)
    if isinstance(value, list | tuple):
        return [without_key_in(v, key) for v in value]
    if isinstance(value, dict):
        return {without_key_in(k, key): without_key_in(v, key) for k, v in value.items()}
    return value


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Seconds the provider asks to wait, from `retry-after-ms` or `retry-after`, seconds or a date (RFC 9110, 10.2.3).

    None when absent or unreadable.
    """
    for name, scale in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        text = headers.get(name, "")
        try:
            seconds = float(text) / scale
        except ValueError:
            seconds = _seconds_until(text)
        if 0 <= seconds < 86_400:
            return seconds
    return None


def _seconds_until(date: str) -> float:
    """Seconds to an HTTP date, 0 for one that has passed; not a number for what is none."""
    try:
        at = parsedate_to_datetime(date)
    except (ValueError, TypeError, IndexError):
        return math.nan
    at = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
    return max(0.0, (at - datetime.now(UTC)).total_seconds())


def count_of(value: Any) -> int | None:
    """A number of tokens; None for one that cannot be. Absent counts are zero."""
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MAX_TOKENS:
        return None
    return int(value)


def told_apart(calls: Sequence[ToolCall]) -> tuple[ToolCall, ...]:
    """The calls with an id each: one that is empty or was used before gets another."""
    used: set[str] = set()
    kept = []
    for n, call in enumerate(calls):
        name = call.id
        while not name or name in used:
            name = f"{call.id or 'call'}_{n}"
            n += len(calls)
        used.add(name)
        kept.append(replace(call, id=name))
    return tuple(kept)


def wire_name(name: str) -> str:
    """The name of a tool as it may stand in a request; a model's false name must not spoil the next one."""
    return name if _NAME.fullmatch(name) else re.sub(r"[^A-Za-z0-9_-]", "_", name)[:64] or "unnamed"
