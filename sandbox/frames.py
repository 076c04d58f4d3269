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

    def send(self, kind: str, data: Mapping[str, Any], blob: bytes | memoryview = b"") -> None:
        if self.getpid() != self.pid:
            return
        text = json.dumps({"t": kind, **data}, separators=(",", ":")).encode()
        view = memoryview(blob).cast("B") if len(blob) else memoryview(b"")
        with self.lock:
            self._all(memoryview(_HEAD.pack(len(text), view.nbytes) + text))
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
    buffer: bytearray = field(default_factory=bytearray)
    broken: str | None = None

    def feed(self, data: bytes) -> None:
        if self.broken is not None:
            return
        self.buffer += data
        try:
            while self._next():
                pass
        except BrokenFrames as e:
            self.broken = str(e)
            self.buffer.clear()

    def _next(self) -> bool:
        if len(self.buffer) < _HEAD.size:
            return False
        json_bytes, blob_bytes = _HEAD.unpack_from(self.buffer)
        if json_bytes > MAX_JSON_BYTES or blob_bytes > self.max_blob_bytes:
            raise BrokenFrames("a message is longer than allowed")
        end = _HEAD.size + json_bytes + blob_bytes
        if len(self.buffer) < end:
            return False
        view = memoryview(self.buffer)
        text = bytes(view[_HEAD.size : _HEAD.size + json_bytes])
        blob = bytes(view[_HEAD.size + json_bytes : end])
        view.release()
        del self.buffer[:end]
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
        return True
