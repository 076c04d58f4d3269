"""Large tensors a block at a time: what is computed from a block stays in the processor's cache.

Whole-tensor numpy makes a temporary of hundreds of megabytes for each operation, and takes most of its time to get the
memory. Blocks go to a few threads; numpy computes outside of the interpreter's lock.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

import numpy as np

from sandbox.number_formats import Array, Float64, decode

BLOCK_ELEMENTS = 1 << 15
_THREADS = 4
_BLOCKS_PER_TASK = 16

FEW = 16
"""Below so many numbers their largest is no measure of the numbers they were summed from."""

Found = TypeVar("Found")


@dataclass(frozen=True, slots=True, eq=False)
class Numbers:
    """A floating-point tensor's elements in order of their indices, read as float64 a block at a time."""

    dtype: str
    flat: Array

    @classmethod
    def of(cls, dtype: str, data: Array) -> Numbers:
        """A complex element is two numbers."""
        flat = np.ascontiguousarray(data).reshape(-1)
        if dtype.startswith("complex"):
            part = "float64" if flat.dtype.itemsize == 16 else "float32"
            return cls(part, flat.view(part))
        return cls(dtype, flat)

    def __getitem__(self, span: slice) -> Float64:
        return decode(self.dtype, self.flat[span])


@dataclass(frozen=True, slots=True)
class Block:
    """Elements `span`, of rows `rows`: whole ones, or a part of a single one."""

    span: slice
    rows: slice

    def by_row(self, x: Array) -> Array:
        """`x`, this block's elements, as (rows, elements)."""
        return x.reshape(self.rows.stop - self.rows.start, -1)


@dataclass(frozen=True, slots=True)
class Rows:
    """`count` rows of `width` elements in order."""

    count: int
    width: int

    @classmethod
    def of(cls, shape: Sequence[int]) -> Rows:
        """A row is as many of the trailing dimensions as make up `FEW` elements, or all."""
        width, axes = 1, len(shape)
        while axes and width < FEW:
            axes -= 1
            width *= shape[axes]
        return cls(math.prod(shape[:axes]), width)

    def blocks(self) -> list[Block]:
        if self.width > BLOCK_ELEMENTS:
            starts = [*range(0, self.width, BLOCK_ELEMENTS), self.width]
            parts = list(pairwise(starts))
            return [
                Block(slice(r * self.width + a, r * self.width + b), slice(r, r + 1))
                for r in range(self.count)
                for a, b in parts
            ]
        if not self.width:
            return []
        step = BLOCK_ELEMENTS // self.width
        firsts = range(0, self.count, step)
        return [_whole_rows(first, min(first + step, self.count), self.width) for first in firsts]


def _whole_rows(first: int, end: int, width: int) -> Block:
    return Block(slice(first * width, end * width), slice(first, end))


def each(blocks: Sequence[Block], work: Callable[[Block], Found]) -> list[Found]:
    """`work` on every block, in order; on several threads where there are many."""
    tasks = [blocks[i : i + _BLOCKS_PER_TASK] for i in range(0, len(blocks), _BLOCKS_PER_TASK)]
    threads = min(_THREADS, len(os.sched_getaffinity(0)), len(tasks))
    if threads < 2:
        return [work(block) for block in blocks]
    with ThreadPoolExecutor(threads) as pool:
        return [found for part in pool.map(lambda task: [work(b) for b in task], tasks) for found in part]


def same_bytes(a: Array, b: Array) -> bool:
    """Whether two arrays of one shape hold the same bytes in order of their indices."""
    one, other = (np.ascontiguousarray(x).reshape(-1).view(np.uint8) for x in (a, b))
    step = BLOCK_ELEMENTS * 8
    return one.size == other.size and all(
        np.array_equal(one[i : i + step], other[i : i + step]) for i in range(0, one.size, step)
    )
