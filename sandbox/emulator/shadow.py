"""What is known about each byte of LDS besides its value: whether it was written, and who touched it lately."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Indices = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]

_NOBODY = -1
_SEVERAL = -2


class LdsShadow:
    """Byte-granular race detector. Two waves race on a byte when both touch it between the same two barriers and at
    least one writes it. Not counted: a write that changes nothing, two atomics, and a read beside an atomic (compilers
    read once before a compare-and-swap loop, and an atomic load is an ordinary read instruction)."""

    def __init__(self, size: int) -> None:
        self.written = np.zeros(size, np.bool_)
        self.writer = np.full(size, _NOBODY, np.int16)
        self.writer_epoch = np.zeros(size, np.int32)
        self.writer_atomic = np.zeros(size, np.bool_)
        self.reader = np.full(size, _NOBODY, np.int16)
        self.reader_epoch = np.zeros(size, np.int32)
        self.epoch = 1

    def next_epoch(self) -> None:
        """All waves passed a barrier: earlier accesses are ordered before later ones."""
        self.epoch += 1

    def read(self, where: Indices, wave: int) -> tuple[int | None, int | None]:
        """Note a read of the bytes `where`; returns a byte that was never written, and one another wave just wrote."""
        fresh = ~self.written[where]
        racing = (self.writer_epoch[where] == self.epoch) & (self.writer[where] != wave) & ~self.writer_atomic[where]
        current = self.reader_epoch[where] == self.epoch
        mixed = current & (self.reader[where] != wave)
        self.reader[where] = np.where(mixed, _SEVERAL, wave)
        self.reader_epoch[where] = self.epoch
        return _first(where, fresh), _first(where, racing)

    def write(self, where: Indices, values: Bytes, lds: Bytes, wave: int, atomic: bool = False) -> int | None:
        """Note a write of `values` to the bytes `where`, before it happens; returns a byte it races on, or None.

        A write that leaves a byte as it was cannot be told from no write, in whatever order the waves run.
        """
        effective = (lds[where] != values) | ~self.written[where]
        recent = self.writer_epoch[where] == self.epoch
        racing = recent & (self.writer[where] != wave) & ~(self.writer_atomic[where] & atomic)
        if not atomic:
            racing |= (self.reader_epoch[where] == self.epoch) & (self.reader[where] != wave)
        hit = _first(where, racing & effective)
        touched = where[effective]
        only_atomic = atomic & (self.writer_atomic[touched] | ~recent[effective])
        self.written[touched] = True
        self.writer[touched] = wave
        self.writer_epoch[touched] = self.epoch
        self.writer_atomic[touched] = only_atomic
        return hit


def _first(where: Indices, hit: npt.NDArray[np.bool_]) -> int | None:
    return int(where[np.argmax(hit)]) if hit.any() else None
