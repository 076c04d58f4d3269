"""Phase 1, Benchmark & Profile: run the user's own harness once and learn what its kernels are on the target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from agent.candidate import Measurement
from sandbox.workload import StoredWorkload


@dataclass(frozen=True, slots=True)
class Baseline:
    """The user's file as it is: the recorded workload, and what is known about its kernels on the target."""

    measurement: Measurement
    stored: StoredWorkload
    executor: str
    notes: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)

    @property
    def launch_count(self) -> int:
        return len(self.stored.workload.launches)
