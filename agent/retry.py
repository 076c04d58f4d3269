"""One place for retries: what may pass is tried again, later each time, within the caller's deadline."""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable
from typing import TypeVar

from agent.model import ModelError

T = TypeVar("T")
MAX_ATTEMPTS = 5
_FIRST_S, _LONGEST_S = 1.0, 30.0


def transport_errors() -> tuple[type[Exception], ...]:
    """What the HTTP library under an SDK raises when a body breaks off, which neither SDK wraps on every path."""
    loaded = [sys.modules[name] for name in ("httpx2", "httpx") if name in sys.modules]
    return tuple(module.HTTPError for module in loaded)


def with_retries(
    call: Callable[[float], T],
    timeout_s: float,
    *,
    seed: int = 0,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> tuple[T, int]:
    """The result of `call(seconds left)` and the number of attempts; raises the last `ModelError`.

    The provider's `retry-after` is obeyed when it fits the deadline; otherwise waits double from one second, with
    jitter, so that many jobs do not come back together.
    """
    deadline = clock() + timeout_s
    rng = random.Random(seed)
    for attempt in range(1, MAX_ATTEMPTS + 1):
        try:
            return call(max(0.001, deadline - clock())), attempt
        except ModelError as e:
            wait = e.retry_after_s
            if wait is None:
                wait = min(_LONGEST_S, _FIRST_S * 2 ** (attempt - 1)) * (0.5 + rng.random() / 2)
            if not e.retryable or attempt == MAX_ATTEMPTS or clock() + wait >= deadline:
                raise
            sleep(wait)
    raise AssertionError("unreachable")
