"""Who may use the GPUs at hand: programs that only compute share them, a clock has them alone.

Jobs side by side (several workers, a benchmark with `--jobs`) would otherwise time each other's work. The locks are
files in the cache folder, one pair for each set of visible devices, so they hold between processes of one user and end
with the process that holds them. Children are offered the open files and take the lock when they come to use the GPU,
and give it back while they compile or hash: the seconds in which they do what needs no GPU keep no clock waiting
(`sandbox.device_use`).
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path

from sandbox.compile_cache import cache_root
from sandbox.device_use import DeviceUse, take

Files = tuple[int, int]
"""Descriptors: whose turn it is, and the use itself."""

_WORTH_IT_BYTES = 16 << 20

_joined: DeviceUse | None = None
"""What this process took with `join`."""

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
        take(*files, alone=False)
        yield


@contextmanager
def offered() -> Iterator[Files]:
    """The lock of `shared`, for a child to `join`; it is given back at the end of this block at the latest."""
    with _open("turn") as turn, _open("use") as use:
        yield turn, use


def join(files: Files) -> None:
    """In a child, before its first use of a GPU: take what the parent offered, except while Triton compiles."""
    global _joined
    _joined = DeviceUse(*files)
    _joined.hook_triton()


@contextmanager
def away(nbytes: int = _WORTH_IT_BYTES) -> Iterator[None]:
    """In a child that joined, for work of the host alone on so many bytes: others may have the GPUs meanwhile.

    Hashing gigabytes takes seconds in which a clock would wait, and everybody else behind it. Little work is done
    without letting go.
    """
    with _joined.away() if _joined is not None and nbytes >= _WORTH_IT_BYTES else nullcontext():
        yield


def breathe() -> None:
    """In a child that joined, where nothing runs on the GPU: let a clock that waits go first."""
    if _joined is not None:
        _joined.breathe()


@contextmanager
def alone() -> Iterator[None]:
    """Have the GPUs alone; whoever computes there now is waited for, and nobody begins meanwhile."""
    with _open("turn") as turn, _open("use") as use:
        take(turn, use, alone=True)
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
