"""A child's use of the GPUs at hand: beside others, none while it compiles or hashes, alone while its autotuner times.

The locks are those of `sandbox.device_lock`. Stands alone: a clock's process, which imports nothing of the package,
loads this file, too.
"""

from __future__ import annotations

import fcntl
import functools
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class DeviceUse:
    """The lock that a process holds from its first use of a GPU on; two descriptors, whose turn it is and the use."""

    def __init__(self, turn: int, use: int) -> None:
        self._files: tuple[int, int] | None = (turn, use)
        self._away = 0
        """How many threads of this process are `away`."""
        self._alone = False
        self._mutex = threading.Lock()
        self._take()

    def hook_triton(self) -> None:
        """Compile `away`; and time an autotuner's configs `alone`, for a choice among other work is a lottery."""
        import triton
        from triton.runtime.autotuner import Autotuner

        compiling = self._within(self.away, triton.compiler.compile)
        triton.compile = triton.compiler.compile = compiling
        Autotuner._bench = self._within(self.alone, Autotuner._bench)

    @contextmanager
    def away(self) -> Iterator[None]:
        """Others may have the GPUs meanwhile."""
        with self._mutex:
            self._away += 1
            self._give_back()
        try:
            yield
        finally:
            with self._mutex:
                self._away -= 1
                if not self._away:
                    self._take()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Nobody else has the GPUs meanwhile, except while this process is `away` in between."""
        self._change(alone=True)
        try:
            yield
        finally:
            self._change(alone=False)

    def breathe(self) -> None:
        """Where nothing runs on the GPU: let a clock that waits go first."""
        self._change(alone=False)

    def leave(self) -> None:
        """For good: from here on the parent has the GPUs alone for this process and its like."""
        files, self._files = self._files, None
        for descriptor in files or ():
            os.close(descriptor)

    def _within(self, block: Callable[[], Any], function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def within(*args: Any, **kwargs: Any) -> Any:
            with block():
                return function(*args, **kwargs)

        return within

    def _change(self, *, alone: bool) -> None:
        with self._mutex:
            self._give_back()  # first: who waits for a lock with another one in hand may wait for ever
            self._alone = alone
            if not self._away:
                self._take()

    def _give_back(self) -> None:
        if self._files is not None:
            turn, use = self._files
            fcntl.flock(use, fcntl.LOCK_UN)
            fcntl.flock(turn, fcntl.LOCK_UN)

    def _take(self) -> None:
        if self._files is not None:
            take(*self._files, alone=self._alone)


def take(turn: int, use: int, *, alone: bool) -> None:
    """Wait for the GPUs; whoever wants them alone is waited for by all who come later."""
    fcntl.flock(turn, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
    fcntl.flock(use, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
    if not alone:
        fcntl.flock(turn, fcntl.LOCK_UN)
