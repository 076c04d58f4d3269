"""Messages from a child on its private pipe: a JSON object and, where there is one, a block of bytes.

The sender shares its process with code nobody vouches for, so the reader believes nothing: lengths are bounded before
anything is kept, and a message that does not parse ends the reading with the reason.
"""

from __future__ import annotations

import json
import os
import struct
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

_HEAD = struct.Struct("<IQ")
MAX_JSON_BYTES = 64 * 1024 * 1024


@dataclass(slots=True)
class FrameWriter:
    """The child's end. Only the process that made it writes: forked compilers inherit it and stay silent."""

    fd: int
    lock: threading.Lock = field(default_factory=threading.Lock)
    pid: int = field(default_factory=os.getpid)
    write: Callable[[int, Any], int] = os.write
    getpid: Callable[[], int] = os.getpid

    def send(self, kind: str, data: Mapping[str, Any], *blob: bytes | memoryview) -> None:
        """One message; the parts of its block of bytes follow each other without being joined here."""
        if self.getpid() != self.pid:
            return
        text = json.dumps({"t": kind, **data}, separators=(",", ":")).encode()
        views = [memoryview(part).cast("B") for part in blob if len(part)]
        with self.lock:
            self._all(memoryview(_HEAD.pack(len(text), sum(v.nbytes for v in views)) + text))
            for view in views:
                self._all(view)

    def _all(self, view: memoryview) -> None:
        while view.nbytes:
            view = view[self.write(self.fd, view[: 1 << 20]) :]


class BrokenFrames(Exception):  # noqa: N818 - not a fault: the child wrote something else
    """The bytes on the pipe are no messages."""


@dataclass(slots=True)
class FrameReader:
    """The parent's end: `feed` takes bytes as they come; `on_frame(kind, data, blob)` is called per message."""

    on_frame: Callable[[str, dict[str, Any], bytes], None]
    max_blob_bytes: int
    broken: str | None = None
    _parts: list[bytes] = field(default_factory=list)
    _held: int = 0
    _wanted: int = _HEAD.size
    """Bytes without which the next message is not whole: only then are the parts looked at, and joined."""

    def feed(self, data: bytes) -> None:
        if self.broken is not None:
            return
        self._parts.append(data)
        self._held += len(data)
        if self._held < self._wanted:
            return
        whole = memoryview(b"".join(self._parts))
        position = 0
        try:
            while taken := self._next(whole[position:]):
                position += taken
        except BrokenFrames as e:
            self.broken = str(e)
            position = len(whole)
        rest = bytes(whole[position:])
        self._parts, self._held = [rest], len(rest)

    def _next(self, view: memoryview) -> int:
        """Hand out the message that `view` begins with; its length, or 0 where it is not whole."""
        self._wanted = _HEAD.size
        if len(view) < _HEAD.size:
            return 0
        json_bytes, blob_bytes = _HEAD.unpack_from(view)
        if json_bytes > MAX_JSON_BYTES or blob_bytes > self.max_blob_bytes:
            raise BrokenFrames("a message is longer than allowed")
        end = int(_HEAD.size + json_bytes + blob_bytes)
        if len(view) < end:
            self._wanted = end
            return 0
        text = bytes(view[_HEAD.size : _HEAD.size + json_bytes])
        blob = bytes(view[_HEAD.size + json_bytes : end])
        try:
            data = json.loads(text)
            kind = data.pop("t")
        except (ValueError, KeyError, AttributeError, TypeError, RecursionError) as e:
            raise BrokenFrames(f"a message does not parse: {type(e).__name__}") from None
        if not isinstance(kind, str):
            raise BrokenFrames("a message has no kind")
        try:
            self.on_frame(kind, data, blob)
        except (ValueError, KeyError, TypeError, AttributeError) as e:
            raise BrokenFrames(f"a message of kind {kind[:40]} does not fit: {type(e).__name__}") from None
        return end
