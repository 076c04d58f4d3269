"""What is known about how a kernel uses the hardware: named numbers, each with its unit and where it comes from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

Source = Literal["static", "emulated", "modelled", "proton", "rocprofv3"]


@dataclass(frozen=True, slots=True)
class Metric:
    """One number, or a word such as the occupancy limiter. `value` is None when it is not known; `reason` says why."""

    name: str
    value: float | str | None
    unit: str = ""
    source: Source = "static"
    formula: str = ""
    reason: str = ""

    def to_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("name", "value", "unit", "source", "formula", "reason")}


@dataclass(frozen=True, slots=True)
class SourceCount:
    """How many instructions of a class a source line became."""

    file: str
    line: int
    count: int


@dataclass(frozen=True, slots=True)
class Profile:
    """The metrics of one kernel on one target. `sites` names, per instruction class, the source lines it comes from."""

    kernel: str
    arch: str
    metrics: Mapping[str, Metric]
    sites: Mapping[str, tuple[SourceCount, ...]] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Metric]:
        return iter(self.metrics.values())

    def number(self, name: str) -> float | None:
        """The value of a numeric metric, or None when it is unknown."""
        metric = self.metrics.get(name)
        return metric.value if metric is not None and isinstance(metric.value, int | float) else None

    def count(self, name: str) -> int:
        """The value of a counted metric; 0 when nothing of the kind was seen."""
        return int(self.number(name) or 0)

    def word(self, name: str) -> str | None:
        metric = self.metrics.get(name)
        return metric.value if metric is not None and isinstance(metric.value, str) else None

    def with_metrics(self, metrics: Iterable[Metric]) -> Profile:
        """A copy with more metrics (counters, emulated counts); a later one replaces an earlier of the same name."""
        return replace(self, metrics={**self.metrics, **{m.name: m for m in metrics}})

    def to_json(self) -> dict[str, Any]:
        return {
            "kernel": self.kernel,
            "arch": self.arch,
            "metrics": [m.to_json() for m in self.metrics.values()],
            "sites": {k: [[s.file, s.line, s.count] for s in v] for k, v in self.sites.items()},
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Profile:
        """Inverse of `to_json`; raises KeyError or TypeError for other data."""
        metrics = [Metric(**m) for m in data["metrics"]]
        sites = {k: tuple(SourceCount(*s) for s in v) for k, v in data["sites"].items()}
        return cls(data["kernel"], data["arch"], {m.name: m for m in metrics}, sites)


def changes_between(before: Mapping[str, Profile], after: Mapping[str, Profile]) -> dict[str, tuple[float, float]]:
    """Every numeric metric both sides have; named by kernel where there are several."""
    several = len(before) > 1
    found: dict[str, tuple[float, float]] = {}
    for kernel in sorted(before.keys() & after.keys()):
        for metric in before[kernel]:
            old, new = before[kernel].number(metric.name), after[kernel].number(metric.name)
            if old is not None and new is not None:
                found[f"{kernel} {metric.name}" if several else metric.name] = (old, new)
    return found
