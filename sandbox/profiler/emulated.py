"""Metrics of an emulated launch: what it executed, counted, and what the models of caches and banks make of it.

No metric needs a time, because an emulator has none. A metric is `modelled` where one of its counters is, else
`emulated`. Where only a part of the grid ran, totals are scaled to the whole; ratios are those of the part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from sandbox.emulator import EmulationResult
from sandbox.emulator.counters import MODELLED
from sandbox.profiler.metrics import Metric, Source

_FLOAT_KINDS = ("F16", "F32", "F64")
_LINE_BYTES, _STORE_BYTES, _LANES = 128, 64, 64
_FLOPS_PER_MOP = 512


@dataclass(frozen=True, slots=True)
class _Formula:
    name: str
    unit: str
    text: str
    counters: tuple[str, ...]
    compute: Callable[[Mapping[str, float]], float]
    """Raises ZeroDivisionError where the kernel did none of it."""
    total: bool = False
    """A sum over the grid, not a ratio."""


def _flops(c: Mapping[str, float]) -> float:
    """Floating-point operations: lanes times vector operations, an FMA being two, and those of matrix instructions."""
    vector = sum(
        c.get(f"SQ_INSTS_VALU_{name}_{kind}", 0.0) * weight
        for kind in _FLOAT_KINDS
        for name, weight in (("ADD", 1), ("MUL", 1), ("TRANS", 1), ("FMA", 2))
    )
    matrix = sum(n for name, n in c.items() if name.startswith("SQ_INSTS_VALU_MFMA_MOPS_"))
    return _LANES * vector + _FLOPS_PER_MOP * matrix


def _transcendental_share(c: Mapping[str, float]) -> float:
    return sum(c.get(f"SQ_INSTS_VALU_TRANS_{kind}", 0.0) for kind in _FLOAT_KINDS) / c["SQ_INSTS_VALU"]


def _requests(c: Mapping[str, float]) -> float:
    return c["TCC_READ_sum"] + c["TCC_WRITE_sum"] + c["TCC_ATOMIC_sum"]


def _count(name: str, counter: str, unit: str = "instructions") -> _Formula:
    return _Formula(name, unit, counter, (counter,), lambda c: c[counter], total=True)


_FORMULAS: tuple[_Formula, ...] = (
    _count("waves", "SQ_WAVES", "waves"),
    *(
        _count(f"instructions_{kind.lower()}", f"SQ_INSTS_{kind}")
        for kind in ("VALU", "SALU", "SMEM", "LDS", "VMEM_RD", "VMEM_WR", "MFMA", "BRANCH")
    ),
    _count("instructions_executed", "SQ_INSTS"),
    _count("lane_atomics", "lane_atomics", "atomics"),
    _count("atomic_contention", "lane_atomics_one_address", "atomics"),
    _Formula(
        "flops",
        "operations",
        "64 (ADD + MUL + TRANS + 2 FMA) + 512 MFMA_MOPS",
        ("SQ_INSTS_VALU",),
        _flops,
        total=True,
    ),
    _Formula(
        "transcendental_share",
        "ratio",
        "SQ_INSTS_VALU_TRANS_* / SQ_INSTS_VALU",
        ("SQ_INSTS_VALU",),
        _transcendental_share,
    ),
    _Formula(
        "valu_active_lanes_percent",
        "%",
        "100 - 100 valu_idle_lanes / (64 SQ_INSTS_VALU)",
        ("SQ_INSTS_VALU", "valu_idle_lanes"),
        lambda c: 100.0 - 100.0 * c["valu_idle_lanes"] / (_LANES * c["SQ_INSTS_VALU"]),
    ),
    _Formula(
        "l2_hit_percent",
        "%",
        "100 TCC_HIT / (TCC_HIT + TCC_MISS)",
        ("TCC_HIT_sum", "TCC_MISS_sum"),
        lambda c: 100.0 * c["TCC_HIT_sum"] / (c["TCC_HIT_sum"] + c["TCC_MISS_sum"]),
    ),
    _Formula(
        "hbm_bytes",
        "bytes",
        "128 TCC_MISS",
        ("TCC_MISS_sum",),
        lambda c: _LINE_BYTES * c["TCC_MISS_sum"],
        total=True,
    ),
    _Formula(
        "read_bytes_per_lane",
        "bytes",
        "128 TCC_READ / (64 read waves)",
        ("TCC_READ_sum", "SQ_INSTS_VMEM_RD"),
        lambda c: _LINE_BYTES * c["TCC_READ_sum"] / (_LANES * c["SQ_INSTS_VMEM_RD"]),
    ),
    _Formula(
        "write_bytes_per_lane",
        "bytes",
        "64 TCC_WRITE / (64 write waves)",
        ("TCC_WRITE_sum", "SQ_INSTS_VMEM_WR"),
        lambda c: _STORE_BYTES * c["TCC_WRITE_sum"] / (_LANES * c["SQ_INSTS_VMEM_WR"]),
    ),
    _Formula(
        "atomic_share",
        "ratio",
        "TCC_ATOMIC / (TCC_READ + TCC_WRITE + TCC_ATOMIC)",
        ("TCC_READ_sum", "TCC_WRITE_sum", "TCC_ATOMIC_sum"),
        lambda c: c["TCC_ATOMIC_sum"] / _requests(c),
    ),
    _Formula(
        "lds_conflicts_per_access",
        "ratio",
        "SQ_LDS_BANK_CONFLICT / SQ_INSTS_LDS",
        ("SQ_LDS_BANK_CONFLICT", "SQ_INSTS_LDS"),
        lambda c: c["SQ_LDS_BANK_CONFLICT"] / c["SQ_INSTS_LDS"],
    ),
)


def emulated_metrics(result: EmulationResult) -> tuple[Metric, ...]:
    """The metrics of a run that came to its end; a formula whose counters are missing or zero gives None and why."""
    ran = len(result.workgroups_run)
    scale = result.workgroups_total / ran if ran else 1.0
    return tuple(_metrics(result.counters, scale))


def _metrics(counters: Mapping[str, int], scale: float) -> Iterator[Metric]:
    held = {name: float(value) for name, value in counters.items()}
    scaled = "" if scale == 1.0 else f", scaled by {scale:.3g}"
    for f in _FORMULAS:
        missing = [name for name in f.counters if name not in held]
        source: Source = "modelled" if MODELLED.intersection(f.counters) or (f.total and scale != 1.0) else "emulated"
        text = f.text + (scaled if f.total else "")
        if missing:
            yield Metric(f.name, None, f.unit, source, text, f"not counted: {', '.join(missing)}")
            continue
        try:
            value = f.compute(held) * (scale if f.total else 1.0)
        except ZeroDivisionError:
            yield Metric(f.name, None, f.unit, source, text, "the kernel did none of it")
            continue
        yield Metric(f.name, value, f.unit, source, text)
