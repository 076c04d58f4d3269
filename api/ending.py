"""How the program ends when it is told to: soon, with all that it started, and without leaving folders behind.

SIGTERM and Ctrl-C raise in the main thread, and whoever holds a child, a folder or a lock gives it up on the way out.
That is late where the main thread waits for other threads, each of which waits for a child, or is deep in a call of C,
where Python hears no signal. So a thread hears them too: it ends the children at once, and the program soon after.
"""

from __future__ import annotations

import gc
import os
import shutil
import signal
import tempfile
import threading
import time
from contextlib import suppress

from sandbox.process_tree import descendants_among_all

GENTLE_S = 0.4
"""Between a child's SIGTERM and its SIGKILL."""
GRACE_S = 1.5
"""What the main thread has for its way out."""
_SIGNALS = (signal.SIGTERM, signal.SIGINT)

_told: int | None = None


def heed_signals() -> None:
    """From here on SIGTERM ends the program with status 143 and SIGINT with 130, within about two seconds, and every
    process below it. A command with handlers of its own keeps them. For the main thread, once."""
    heard, told = os.pipe()
    os.set_blocking(told, False)
    signal.set_wakeup_fd(told, warn_on_full_buffer=False)
    for number in _SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:  # as in a shell's background
            signal.signal(number, _end)
    threading.Thread(target=_watch, args=(heard,), name="ending", daemon=True).start()


def status_told() -> int | None:
    """The exit status of a program that was told to end; None where it was not. What else it raises on its way out
    comes of having been interrupted."""
    return None if _told is None else 128 + _told


def _end(number: int, _frame: object) -> None:
    """Raises once: a second signal must not interrupt the clearing up."""
    global _told
    if _told is not None:
        return
    _told = number
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    raise SystemExit(128 + number)


def _watch(heard: int) -> None:
    number = 0
    while number not in _SIGNALS or signal.getsignal(number) is not _end:
        number = os.read(heard, 1)[0]
    _end_children(signal.SIGTERM)
    time.sleep(GENTLE_S)
    _end_children(signal.SIGKILL)
    time.sleep(GRACE_S - GENTLE_S)
    _end_children(signal.SIGKILL)
    for found in gc.get_objects():
        if isinstance(found, tempfile.TemporaryDirectory):
            shutil.rmtree(found.name, ignore_errors=True)
    os._exit(128 + number)


def _end_children(sign: signal.Signals) -> None:
    for pid in descendants_among_all(os.getpid()) - {os.getpid()}:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, sign)
