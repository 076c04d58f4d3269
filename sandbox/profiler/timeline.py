"""Timelines of a whole program: where GPU time goes by category, how much stands idle, what to port first.

Reads torch profiler (kineto), rocprofv3 JSON, CSV and rocpd, and Proton chrome traces. Times are microseconds.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from sandbox.errors import InputError
from sandbox.profiler.categories import COLLECTIVE, COPY, category
from sandbox.profiler.dispatches import ProfilerData
from sandbox.profiler.rocprof import read_file
from sandbox.profiler.rocprof_json import is_results, read_json

_GPU_CATEGORIES = frozenset({"kernel", "gpu_memcpy", "gpu_memset", "cuda_kernel"})
SHORT_KERNEL_US = 10.0
"""Below this a launch costs about as much as the work (TraceLens and the rocpd analysis use the same bound)."""


@dataclass(frozen=True, slots=True)
class Span:
    """One piece of GPU work."""

    name: str
    start_us: float
    end_us: float
    device: str
    stream: str
    category: str


@dataclass(frozen=True, slots=True)
class KernelShare:
    """All launches of one kernel. `share` is of the summed kernel time, 0 to 1."""

    name: str
    category: str
    calls: int
    total_us: float
    share: float
    max_us: float


@dataclass(frozen=True, slots=True)
class TraceSummary:
    """One program run. Shares are of summed kernel time; `busy_us` and gaps are of the union of streams per device."""

    path: str
    devices: tuple[str, ...]
    span_us: float
    busy_us: float
    kernel_us: float
    categories: Mapping[str, float]
    kernels: tuple[KernelShare, ...]
    short_kernels: int
    launches: int
    longest_gap_us: float
    overlap_us: float
    """Time in which more than one piece of work runs on a device, summed over devices."""
    imbalance: float | None
    """Busiest device's time over the mean, minus 1; None for one device."""
    exposed_collective_us: float
    """Collective time during which the device does nothing else."""

    @property
    def idle_share(self) -> float:
        """Share of the span in which the devices run nothing, 0 to 1, averaged over devices."""
        whole = self.span_us * max(1, len(self.devices))
        return max(0.0, 1.0 - self.busy_us / whole) if whole > 0 else 0.0


def read_trace(path: Path) -> TraceSummary:
    """The summary of one trace file; raises `InputError` when it is no trace or holds no GPU work."""
    spans = list(_spans(path))
    if not spans:
        raise InputError("it holds no GPU kernel.", file=path, remedy="Record with GPU activities switched on.")
    return summarize(spans, str(path))


def _spans(path: Path) -> Iterator[Span]:
    if not path.is_file():
        raise InputError("there is no such file.", file=path, remedy="Check the path.")
    if not path.name.endswith((".json", ".json.gz", ".trace", ".chrome_trace")):
        return _of_profiler(read_file(path))
    text = _text(path)
    try:
        document = json.loads(text)
    except json.JSONDecodeError as first:
        # Proton writes one JSON object per line and stream
        try:
            documents = [json.loads(line) for line in text.splitlines() if line.strip()]
        except json.JSONDecodeError:
            raise InputError(
                f"it is not complete JSON: {first.msg}.", file=path, line=first.lineno, remedy="Copy it again."
            ) from None
        return (s for d in documents for s in _of_chrome(d))
    if is_results(document):
        return _of_profiler(read_json(path, document))
    if not isinstance(document, dict | list):
        raise InputError("it is not a trace.", file=path, remedy="Give a chrome trace or rocprofv3 results.")
    return _of_chrome(document)


def _text(path: Path) -> str:
    try:
        raw = path.read_bytes()
        return (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode("utf-8", errors="replace")
    except (OSError, EOFError) as e:
        raise InputError(f"it cannot be read: {e}.", file=path, remedy="Copy it again.") from None


def _of_profiler(data: ProfilerData) -> Iterator[Span]:
    for d in data.dispatches:
        if d.duration_ns is not None and d.start_ns is not None:
            start_us = d.start_ns / 1e3
            yield Span(d.kernel, start_us, start_us + d.duration_ns / 1e3, d.agent_id or "", "", category(d.kernel))


def _of_chrome(document: Mapping[str, Any] | Sequence[Any]) -> Iterator[Span]:
    events = document.get("traceEvents", []) if isinstance(document, Mapping) else document
    for event in events:
        if not isinstance(event, dict) or event.get("ph") != "X" or event.get("cat") not in _GPU_CATEGORIES:
            continue
        start, duration = event.get("ts"), event.get("dur")
        if not isinstance(start, int | float) or not isinstance(duration, int | float) or duration < 0:
            continue
        args = event.get("args") or {}
        kind = COPY if event["cat"] in ("gpu_memcpy", "gpu_memset") else category(str(event.get("name", "")))
        device = str(args.get("device", event.get("pid", "")))
        stream = str(args.get("stream", event.get("tid", "")))
        yield Span(str(event.get("name", "")), float(start), float(start + duration), device, stream, kind)


def summarize(spans: Sequence[Span], path: str = "") -> TraceSummary:
    """Sums, shares, gaps and overlap of at least one span."""
    devices: dict[str, list[Span]] = {}
    by_name: dict[tuple[str, str], list[float]] = {}
    for span in spans:
        devices.setdefault(span.device, []).append(span)
        by_name.setdefault((span.name, span.category), []).append(span.end_us - span.start_us)
    total = sum(sum(times) for times in by_name.values())
    kernels = [
        KernelShare(name, kind, len(t), sum(t), sum(t) / total if total else 0.0, max(t))
        for (name, kind), t in by_name.items()
    ]
    categories: dict[str, float] = {}
    for kernel in kernels:
        categories[kernel.category] = categories.get(kernel.category, 0.0) + kernel.total_us
    busy = {name: _union((s.start_us, s.end_us) for s in held) for name, held in devices.items()}
    busy_us = {name: sum(e - s for s, e in merged) for name, merged in busy.items()}
    gaps = [b[0] - a[1] for merged in busy.values() for a, b in pairwise(merged)]
    mean = sum(busy_us.values()) / len(busy_us)
    return TraceSummary(
        path=path,
        devices=tuple(sorted(devices)),
        span_us=max(s.end_us for s in spans) - min(s.start_us for s in spans),
        busy_us=sum(busy_us.values()),
        kernel_us=total,
        categories=dict(sorted(categories.items(), key=lambda kv: -kv[1])),
        kernels=tuple(sorted(kernels, key=lambda k: -k.total_us)),
        short_kernels=sum(t < SHORT_KERNEL_US for times in by_name.values() for t in times),
        launches=len(spans),
        longest_gap_us=max(gaps, default=0.0),
        overlap_us=total - sum(busy_us.values()),
        imbalance=max(busy_us.values()) / mean - 1.0 if len(busy_us) > 1 and mean > 0 else None,
        exposed_collective_us=sum(_exposed(held) for held in devices.values()),
    )


def _union(intervals: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    merged: list[tuple[float, float]] = []
    for start, end in sorted(intervals):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged


def _length(intervals: Iterable[tuple[float, float]]) -> float:
    return sum(end - start for start, end in _union(intervals))


def _exposed(spans: Sequence[Span]) -> float:
    """Length of the collectives' union that no other work covers: |A or B| - |B|."""
    collective = [(s.start_us, s.end_us) for s in spans if s.category == COLLECTIVE]
    if not collective:
        return 0.0
    rest = [(s.start_us, s.end_us) for s in spans if s.category != COLLECTIVE]
    return _length([*collective, *rest]) - _length(rest)


@dataclass(frozen=True, slots=True)
class CategoryPair:
    """One category on both sides; None where a side has none of it."""

    category: str
    a_us: float | None
    b_us: float | None

    @property
    def ratio(self) -> float | None:
        """Time of A over time of B."""
        return self.a_us / self.b_us if self.a_us is not None and self.b_us else None


def compare(a: TraceSummary, b: TraceSummary) -> tuple[CategoryPair, ...]:
    """Two runs of the same program side by side, the category with the greatest loss of A against B first."""
    names = {*a.categories, *b.categories}
    pairs = [CategoryPair(n, a.categories.get(n), b.categories.get(n)) for n in names]
    return tuple(sorted(pairs, key=lambda p: ((p.b_us or 0.0) - (p.a_us or 0.0), p.category)))


def worth_porting(summary: TraceSummary, top: int = 10) -> tuple[KernelShare, ...]:
    """The kernels whose speed matters most: by share of kernel time, without copies and collectives, 1% and more."""
    useful = [k for k in summary.kernels if k.category not in (COPY, COLLECTIVE) and k.share >= 0.01]
    return tuple(useful[:top])


_IDENTIFIER = re.compile(r"^[A-Za-z_]\w*$")
_LIBRARY = re.compile(r"^(Cijk_|nvjet|ampere_|volta_|turing_|hopper_|sm\d+_|cutlass|fmha_|kernel_batched|hip[A-Z]|__)")
_SPECIALISED = re.compile(r"_\d+d(?:e?\d+d?e?)*$")


def capture_regex(summary: TraceSummary, top: int = 10) -> str | None:
    """An expression for `wavesmith capture --kernel`: the kernels worth porting that can be Triton's, whole names.

    A Triton kernel bears the name of its Python function (older versions append `_0d1d2`); names of C++ templates hold
    other characters, and those of libraries have known beginnings. None where there is no such kernel.
    """
    names = [k.name for k in worth_porting(summary, top) if _IDENTIFIER.match(k.name) and not _LIBRARY.match(k.name)]
    stems = dict.fromkeys(_SPECIALISED.sub("", name) for name in names)
    return "^(" + "|".join(stems) + ")$" if stems else None
