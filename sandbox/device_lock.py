"""Who may use the GPUs at hand: programs that only compute share them, a clock has them alone.

Jobs side by side (several workers, a benchmark with `--jobs`) would otherwise time each other's work. The locks are
files in the cache folder, one pair for each set of visible devices, so they hold between processes of one user and end
with the process that holds them. Children are offered the open files and take the lock when they come to use the GPU,
and give it back while they compile or hash: the seconds in which they do what needs no GPU keep no clock waiting.
"""

from __future__ import annotations

import fcntl
import functools
import hashlib
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sandbox.compile_cache import cache_root

Files = tuple[int, int]
"""Descriptors: whose turn it is, and the use itself."""

_WORTH_IT_BYTES = 16 << 20

_joined: Files | None = None
"""What this process took with `join`."""
_away = 0
"""How many of its threads are `away`."""
_mutex = threading.Lock()

VISIBLE_DEVICES = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")


def visible_devices() -> dict[str, str]:
    """The variables that say which GPUs this process may use, as they are set."""
    return {name: os.environ[name] for name in VISIBLE_DEVICES if name in os.environ}


def narrowed(masks: Mapping[str, str], device: int) -> dict[str, str]:
    """The variables that leave only GPU number `device` of those visible.

    Masks of HIP and CUDA are narrowed (HIP reads CUDA's where its own is not set); one of ROCR stays, for it renumbers
    the devices before the others count them.
    """
    given = masks.get("HIP_VISIBLE_DEVICES") or masks.get("CUDA_VISIBLE_DEVICES") or ""
    listed = [part.strip() for part in given.split(",") if part.strip()]
    one = listed[device] if device < len(listed) else str(device)
    return {"CUDA_VISIBLE_DEVICES": one, "HIP_VISIBLE_DEVICES": one}


@contextmanager
def shared() -> Iterator[None]:
    """Compute on the GPUs beside others; waits while a clock has them or waits for them."""
    with offered() as files:
        _take(files)
        yield


@contextmanager
def offered() -> Iterator[Files]:
    """The lock of `shared`, for a child to `join`; it is given back at the end of this block at the latest."""
    with _open("turn") as turn, _open("use") as use:
        yield turn, use


def join(files: Files) -> None:
    """In a child, before its first use of a GPU: take what the parent offered, except while Triton compiles.

    `sandbox.child_timing`, which imports nothing of the package, has its own.
    """
    import triton

    global _joined
    _take(files)
    _joined = files
    compiled = triton.compiler.compile

    @functools.wraps(compiled)
    def compile_outside(*args: Any, **kwargs: Any) -> Any:
        with away():
            return compiled(*args, **kwargs)

    triton.compile = triton.compiler.compile = compile_outside


@contextmanager
def away(nbytes: int = _WORTH_IT_BYTES) -> Iterator[None]:
    """In a child that joined, for work of the host alone on so many bytes: others may have the GPUs meanwhile.

    Hashing gigabytes takes seconds in which a clock would wait, and everybody else behind it. Little work is done
    without letting go.
    """
    global _away
    if _joined is None or nbytes < _WORTH_IT_BYTES:
        yield
        return
    with _mutex:
        _away += 1
        fcntl.flock(_joined[1], fcntl.LOCK_UN)
    try:
        yield
    finally:
        with _mutex:
            _away -= 1
            if not _away:
                _take(_joined)


def breathe() -> None:
    """In a child that joined, where nothing runs on the GPU: let a clock that waits go first."""
    if _joined is not None:
        fcntl.flock(_joined[1], fcntl.LOCK_UN)
        _take(_joined)


def _take(files: Files) -> None:
    turn, use = files
    fcntl.flock(turn, fcntl.LOCK_SH)
    fcntl.flock(use, fcntl.LOCK_SH)
    fcntl.flock(turn, fcntl.LOCK_UN)


@contextmanager
def alone() -> Iterator[None]:
    """Have the GPUs alone; whoever computes there now is waited for, and nobody begins meanwhile."""
    with _open("turn") as turn, _open("use") as use:
        fcntl.flock(turn, fcntl.LOCK_EX)
        fcntl.flock(use, fcntl.LOCK_EX)
        yield


@contextmanager
def _open(name: str) -> Iterator[int]:
    """A lock file; closing it gives the lock back."""
    folder: Path = cache_root() / "devices"
    folder.mkdir(parents=True, exist_ok=True)
    masks = hashlib.blake2b(repr(sorted(visible_devices().items())).encode(), digest_size=6).hexdigest()
    descriptor = os.open(folder / f"{masks}.{name}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
