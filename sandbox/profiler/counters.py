"""Metrics from hardware counters, with the formula and the unit of each.

Conventions of rocprofv3: a value is summed over every instance, XCDs included; `SQ_WAVE_CYCLES`, `SQ_WAIT_*` and
`SQ_ACTIVE_INST_*` count quad-cycles. Formulas follow rocprofiler-sdk's `counter_defs.yaml` and rocprofiler-compute
unless a comment says otherwise. A metric whose counters were not collected is None with the names that are missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from sandbox.profiler.dispatches import Agent, Dispatch
from sandbox.profiler.metrics import Metric, Source
from sandbox.target import Target

SHORT_DISPATCH_NS = 100_000
"""Below this the GRBM window is clearly wider than the kernel, so shares of it are lower bounds (seen: 4x at 8 us)."""


@dataclass(frozen=True, slots=True)
class _Machine:
    """What the formulas need of the device."""

    xcds: int
    compute_units: int
    max_waves_per_cu: int
    arch: str


class _MissingCountersError(Exception):
    def __init__(self, names: Iterable[str]) -> None:
        self.names = tuple(names)


class _Counters:
    """Counter access that remembers what a formula asked for and did not get."""

    def __init__(self, held: Mapping[str, float], machine: _Machine) -> None:
        self._held = held
        self.machine = machine

    def __call__(self, name: str) -> float:
        """A counter's sum; `X` and `X_sum` are the same thing."""
        for spelling in (name, f"{name}_sum", name.removesuffix("_sum")):
            if spelling in self._held:
                return self._held[spelling]
        raise _MissingCountersError([name])

    @property
    def cycles(self) -> float:
        """Cycles the device was busy: every XCD counts its own, so the sum is divided."""
        return self("GRBM_GUI_ACTIVE") / self.machine.xcds


@dataclass(frozen=True, slots=True)
class Formula:
    """One metric. `compute` raises ZeroDivisionError where the metric has no meaning for this kernel."""

    name: str
    unit: str
    text: str
    compute: Callable[[_Counters], float]


def _occupancy_percent(c: _Counters) -> float:
    m = c.machine
    return 400.0 * c("SQ_WAVE_CYCLES") / (c.cycles * m.compute_units * m.max_waves_per_cu)


def _hbm_read_bytes(c: _Counters) -> float:
    if c.machine.arch == "gfx950":
        # TCC_BUBBLE is 0 on CDNA4, so the CDNA3 expression (also the SDK's FETCH_SIZE) sees half of the bytes. Requests
        # of neither 32 nor 128 bytes are 64-byte ones; where no per-size counter was collected every request is 128.
        try:
            return 32 * c("TCC_EA0_RDREQ_32B") + 64 * c("TCC_EA0_RDREQ_64B") + 128 * c("TCC_EA0_RDREQ_128B")
        except _MissingCountersError:
            small = c("TCC_EA0_RDREQ_32B")
            return 32 * small + 128 * (c("TCC_EA0_RDREQ") - small)
    bubble, small = c("TCC_BUBBLE"), c("TCC_EA0_RDREQ_32B")
    return 128 * bubble + 64 * (c("TCC_EA0_RDREQ") - bubble - small) + 32 * small


def _hbm_write_bytes(c: _Counters) -> float:
    wide = c("TCC_EA0_WRREQ_64B")
    return 64 * wide + 32 * (c("TCC_EA0_WRREQ") - wide)


def _l1_hit(c: _Counters) -> float:
    beyond = c("TCP_TCC_READ_REQ") + c("TCP_TCC_WRITE_REQ")
    for kind in ("TCP_TCC_ATOMIC_WITH_RET_REQ", "TCP_TCC_ATOMIC_WITHOUT_RET_REQ"):
        beyond += c(kind)
    return 100.0 - 100.0 * beyond / c("TCP_TOTAL_CACHE_ACCESSES")


def _vmem_waves(c: _Counters, short: str, long: str) -> float:
    """Wave-level vector memory instructions; the texture addresser counts the same where SQ's counter is missing."""
    try:
        return c(f"SQ_INSTS_VMEM_{short}")
    except _MissingCountersError:
        return c(f"TA_FLAT_{long}_WAVEFRONTS") + c(f"TA_BUFFER_{long}_WAVEFRONTS")


def _lds_conflicts(c: _Counters) -> float:
    conflicts = c("SQ_LDS_BANK_CONFLICT")
    return conflicts / (c("SQ_LDS_IDX_ACTIVE") - conflicts)


_MATRIX_TYPES = ("F8", "BF16", "F16", "F32", "F64", "I8")


def _flops(c: _Counters) -> float:
    """Vector operations of 64 lanes each, an FMA being two, and 512 for each count of matrix operations."""
    vector = sum(
        weight * c(f"SQ_INSTS_VALU_{name}_{kind}")
        for kind in ("F16", "F32")
        for name, weight in (("ADD", 1), ("MUL", 1), ("TRANS", 1), ("FMA", 2))
    )
    return 64.0 * vector + 512.0 * sum(c(f"SQ_INSTS_VALU_MFMA_MOPS_{kind}") for kind in _MATRIX_TYPES)


_INSTRUCTION_KINDS = ("VALU", "SALU", "SMEM", "LDS", "VMEM_RD", "VMEM_WR", "MFMA", "BRANCH", "FLAT")


def _sum(name: str, unit: str, counter: str) -> Formula:
    """A counter as it is."""
    return Formula(name, unit, counter, lambda c: c(counter))


FORMULAS: tuple[Formula, ...] = (
    _sum("waves", "waves", "SQ_WAVES"),
    Formula("busy_cycles", "cycles", "GRBM_GUI_ACTIVE / XCDs", lambda c: c.cycles),
    Formula("occupancy_percent", "%", "400 SQ_WAVE_CYCLES / (busy cycles x CUs x waves per CU)", _occupancy_percent),
    Formula(
        "waves_per_active_cu",
        "waves",
        "4 SQ_WAVE_CYCLES / SQ_BUSY_CU_CYCLES",
        lambda c: 4.0 * c("SQ_WAVE_CYCLES") / c("SQ_BUSY_CU_CYCLES"),
    ),
    Formula("wait_share", "ratio", "SQ_WAIT_ANY / SQ_WAVE_CYCLES", lambda c: c("SQ_WAIT_ANY") / c("SQ_WAVE_CYCLES")),
    Formula(
        "issue_wait_share",
        "ratio",
        "SQ_WAIT_INST_ANY / SQ_WAVE_CYCLES",
        lambda c: c("SQ_WAIT_INST_ANY") / c("SQ_WAVE_CYCLES"),
    ),
    Formula(
        "active_share",
        "ratio",
        "SQ_ACTIVE_INST_ANY / SQ_WAVE_CYCLES",
        lambda c: c("SQ_ACTIVE_INST_ANY") / c("SQ_WAVE_CYCLES"),
    ),
    Formula(
        "valu_utilisation_percent",
        "%",
        "100 SQ_ACTIVE_INST_VALU / (busy cycles x CUs)",
        lambda c: 100.0 * c("SQ_ACTIVE_INST_VALU") / (c.cycles * c.machine.compute_units),
    ),
    Formula(
        "valu_active_lanes_percent",
        "%",
        "100 SQ_THREAD_CYCLES_VALU / (64 SQ_ACTIVE_INST_VALU)",
        lambda c: 100.0 * c("SQ_THREAD_CYCLES_VALU") / (64.0 * c("SQ_ACTIVE_INST_VALU")),
    ),
    Formula(
        "mfma_utilisation_percent",
        "%",
        "100 SQ_VALU_MFMA_BUSY_CYCLES / (4 x CUs x busy cycles)",
        lambda c: 100.0 * c("SQ_VALU_MFMA_BUSY_CYCLES") / (4.0 * c.machine.compute_units * c.cycles),
    ),
    Formula(
        "l2_hit_percent",
        "%",
        "100 TCC_HIT / (TCC_HIT + TCC_MISS)",
        lambda c: 100.0 * c("TCC_HIT") / (c("TCC_HIT") + c("TCC_MISS")),
    ),
    Formula("l1_hit_percent", "%", "100 - 100 (TCP to TCC requests) / TCP_TOTAL_CACHE_ACCESSES", _l1_hit),
    Formula("hbm_read_bytes", "bytes", "EA read requests by size", _hbm_read_bytes),
    Formula("hbm_write_bytes", "bytes", "64 WRREQ_64B + 32 (WRREQ - WRREQ_64B)", _hbm_write_bytes),
    Formula(
        "read_bytes_per_lane",
        "bytes",
        "128 TCP_TCC_READ_REQ / (64 read waves)",
        lambda c: 128.0 * c("TCP_TCC_READ_REQ") / (64.0 * _vmem_waves(c, "RD", "READ")),
    ),
    Formula(
        "write_bytes_per_lane",
        "bytes",
        "64 TCP_TCC_WRITE_REQ / (64 write waves)",
        lambda c: c("TCP_TCC_WRITE_REQ") / _vmem_waves(c, "WR", "WRITE"),
    ),
    Formula(
        "l1_coalescing_percent",
        "%",
        "100 x 64 TA_TOTAL_WAVEFRONTS / (4 TCP_TOTAL_ACCESSES); 25 is a perfect fp64 copy",
        lambda c: 100.0 * 64.0 * c("TA_TOTAL_WAVEFRONTS") / (4.0 * c("TCP_TOTAL_ACCESSES")),
    ),
    Formula("atomic_share", "ratio", "TCC_ATOMIC / TCC_REQ", lambda c: c("TCC_ATOMIC") / c("TCC_REQ")),
    Formula(
        "atomic_latency_cycles",
        "cycles",
        "TCC_EA0_ATOMIC_LEVEL / TCC_EA0_ATOMIC; atomics resolved in L2 are not seen",
        lambda c: c("TCC_EA0_ATOMIC_LEVEL") / c("TCC_EA0_ATOMIC"),
    ),
    Formula(
        "atomic_serialisation_share",
        "ratio",
        "TCP_ATOMIC_TAGCONFLICT_STALL_CYCLES / TCP_GATE_EN1",
        lambda c: c("TCP_ATOMIC_TAGCONFLICT_STALL_CYCLES") / c("TCP_GATE_EN1"),
    ),
    Formula(
        "lds_conflicts_per_access",
        "ratio",
        "SQ_LDS_BANK_CONFLICT / (SQ_LDS_IDX_ACTIVE - SQ_LDS_BANK_CONFLICT)",
        _lds_conflicts,
    ),
    Formula(
        "lds_utilisation_percent",
        "%",
        "100 SQ_LDS_IDX_ACTIVE / (busy cycles x CUs)",
        lambda c: 100.0 * c("SQ_LDS_IDX_ACTIVE") / (c.cycles * c.machine.compute_units),
    ),
    Formula("flops", "operations", "64 (ADD + MUL + TRANS + 2 FMA) + 512 MFMA_MOPS, without F64 vectors", _flops),
    *(_sum(f"instructions_{kind.lower()}", "instructions", f"SQ_INSTS_{kind}") for kind in _INSTRUCTION_KINDS),
    _sum("instructions", "instructions", "SQ_INSTS"),
)


def metrics_of(dispatch: Dispatch, agent: Agent | None, target: Target, source: Source) -> dict[str, Metric]:
    """Every formula over one dispatch, plus its time and resources. Device facts come from the agent, else the target.

    A formula is evaluated within one counter pass where one holds all it needs (the pass with most counters first),
    else over all passes together.
    """
    board = target.board
    machine = _Machine(
        xcds=agent.xcc_count if agent and agent.xcc_count else board.xcds,
        compute_units=agent.cu_count if agent and agent.cu_count else board.compute_units,
        max_waves_per_cu=target.max_waves_per_simd * target.simds_per_cu,
        arch=target.arch,
    )
    sets = [*sorted(dispatch.passes, key=len, reverse=True), dispatch.counters]
    found = {f.name: _evaluate(f, [_Counters(held, machine) for held in sets], source) for f in FORMULAS}
    duration = dispatch.duration_ns
    found["duration_us"] = Metric(
        "duration_us",
        None if duration is None else duration / 1e3,
        "us",
        source,
        "End_Timestamp - Start_Timestamp",
        "" if duration is not None else "the file has no usable time stamps",
    )
    for name, value, unit in (
        ("vgpr_count", dispatch.vgpr_count, "registers"),
        ("agpr_count", dispatch.accum_vgpr_count, "registers"),
        ("sgpr_count", dispatch.sgpr_count, "registers"),
        ("lds_bytes", dispatch.lds_bytes, "bytes"),
        ("scratch_bytes", dispatch.scratch_bytes_per_item, "bytes"),
        ("workgroup_threads", dispatch.workgroup_size, "threads"),
        ("grid_threads", dispatch.grid_size, "threads"),
    ):
        reason = "" if value is not None else "the file does not say"
        found[name] = Metric(name, None if value is None else float(value), unit, source, "dispatch record", reason)
    return found


def _evaluate(formula: Formula, sets: Iterable[_Counters], source: Source) -> Metric:
    reason = "no counters were collected"
    for access in sets:
        try:
            return Metric(formula.name, formula.compute(access), formula.unit, source, formula.text)
        except _MissingCountersError as e:
            reason = f"not collected: {', '.join(e.names)}"
        except ZeroDivisionError:
            reason = "the kernel did none of it"
            break
    return Metric(formula.name, None, formula.unit, source, formula.text, reason)
