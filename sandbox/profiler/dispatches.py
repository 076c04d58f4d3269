"""What a profiler saw, whichever tool and file format it came from: dispatches, agents, program-counter samples."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

_KD = re.compile(r"(\s*\[clone \.kd\]|\s*\(\.kd\)|\.kd)$")
_RUNTIME_KERNEL = re.compile(r"^__amd_rocclr_")


def kernel_name(raw: str) -> str:
    """The name without the three spellings of the kernel-descriptor suffix that ROCm versions append."""
    return _KD.sub("", raw.strip())


@dataclass(frozen=True, slots=True)
class Agent:
    """One GPU as the profiler describes it. Counts are of the whole device."""

    agent_id: str
    arch: str | None = None
    product: str | None = None
    xcc_count: int | None = None
    cu_count: int | None = None
    simds_per_cu: int | None = None
    max_clock_mhz: int | None = None


@dataclass(frozen=True, slots=True)
class Dispatch:
    """One kernel launch. Times are nanoseconds of the profiler's clock, `grid_size` is in work-items.

    `counters` holds sums over every hardware instance, XCDs included, as rocprofv3 writes them.
    """

    dispatch_id: int
    kernel: str
    agent_id: str | None = None
    start_ns: int | None = None
    end_ns: int | None = None
    grid_size: int | None = None
    workgroup_size: int | None = None
    lds_bytes: int | None = None
    scratch_bytes_per_item: int | None = None
    vgpr_count: int | None = None
    accum_vgpr_count: int | None = None
    sgpr_count: int | None = None
    counters: Mapping[str, float] = field(default_factory=dict)
    passes: tuple[Mapping[str, float], ...] = ()
    """The same counters by the run they were read in: runs differ, so a ratio wants both of its from one."""

    @property
    def duration_ns(self) -> int | None:
        """None when a time stamp is missing, unreadable or the pair is not increasing."""
        if self.start_ns is None or self.end_ns is None or self.end_ns <= self.start_ns:
            return None
        return self.end_ns - self.start_ns

    @property
    def is_runtime(self) -> bool:
        """A copy or fill kernel of the runtime itself, not one of the user's."""
        return bool(_RUNTIME_KERNEL.match(self.kernel))


@dataclass(frozen=True, slots=True)
class PcSample:
    """One program-counter sample of one wave. `stall_reason` is None where the wave issued, or is not known."""

    dispatch_id: int
    instruction: str
    source: str
    issued: bool | None = None
    instruction_type: str | None = None
    stall_reason: str | None = None
    xcc: int | None = None


@dataclass(frozen=True, slots=True)
class ProfilerData:
    """Everything read from one set of profiler outputs. `notes` says what was skipped or is missing, and why."""

    dispatches: tuple[Dispatch, ...] = ()
    agents: tuple[Agent, ...] = ()
    samples: tuple[PcSample, ...] = ()
    kernel_times: tuple[KernelTime, ...] = ()
    notes: tuple[str, ...] = ()
    files: tuple[str, ...] = ()

    def agent(self, agent_id: str | None) -> Agent | None:
        """The agent of a dispatch; the only GPU when ids do not match (their spelling changed between versions)."""
        for agent in self.agents:
            if agent.agent_id == agent_id:
                return agent
        return self.agents[0] if len(self.agents) == 1 else None


@dataclass(frozen=True, slots=True)
class KernelTime:
    """One row of a statistics file: total and call count of one kernel or API function."""

    name: str
    calls: int
    total_ns: float
    domain: str


def merge(parts: Iterable[ProfilerData]) -> ProfilerData:
    """One data set out of several passes or files of the same program.

    Every counter pass is another run of the program, so dispatches are joined by id and kernel name; a trace's time
    stamps win over those of counter runs, which are serialised and slower.
    """
    joined: dict[tuple[int, str], Dispatch] = {}
    agents: dict[str, Agent] = {}
    samples: list[PcSample] = []
    times: list[KernelTime] = []
    notes: list[str] = []
    files: list[str] = []
    for part in parts:
        for dispatch in part.dispatches:
            key = (dispatch.dispatch_id, dispatch.kernel)
            joined[key] = _join(joined[key], dispatch) if key in joined else dispatch
        agents |= {a.agent_id: a for a in part.agents if a.agent_id not in agents or a.cu_count is not None}
        samples += part.samples
        times += part.kernel_times
        notes += [n for n in part.notes if n not in notes]
        files += part.files
    order = sorted(joined.values(), key=lambda d: (d.dispatch_id, d.kernel))
    return ProfilerData(tuple(order), tuple(agents.values()), tuple(samples), tuple(times), tuple(notes), tuple(files))


def _join(a: Dispatch, b: Dispatch) -> Dispatch:
    """`a` completed from `b`; of a trace and a counter run of the same dispatch the trace keeps its times."""
    first, second = (b, a) if a.counters and not b.counters and b.duration_ns is not None else (a, b)

    def known(name: str) -> Any:
        value = getattr(first, name)
        return getattr(second, name) if value is None else value

    fields = {name: known(name) for name in Dispatch.__dataclass_fields__ if name not in ("counters", "passes")}
    passes = tuple(p for d in (first, second) for p in (d.passes or (d.counters,)) if p)
    return Dispatch(**fields, counters={**second.counters, **first.counters}, passes=passes)
