"""Bottlenecks that only a run can show: rules over counter metrics, measured or emulated, with thresholds as data.

Every rule needs all its numbers and is silent without them. `at_most` is an upper bound of the speed-up that removing
the bottleneck can give: the time bytes or operations need at the board's peak, or Amdahl's law over the share named.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

import yaml
from pydantic import BaseModel, ConfigDict

from sandbox.bottleneck import Bottleneck
from sandbox.profiler.metrics import Profile
from sandbox.target import Target
from sandbox.yaml_text import FAST_LOADER


class Threshold(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    value: float
    source: str


@cache
def thresholds() -> Mapping[str, Threshold]:
    """`sandbox/profiler/thresholds.yaml`, validated."""
    text = (resources.files("sandbox") / "profiler" / "thresholds.yaml").read_text(encoding="utf-8")
    return {name: Threshold.model_validate(entry) for name, entry in yaml.load(text, FAST_LOADER).items()}


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What of the run no counter tells. Unknown is None."""

    unique_read_bytes: float | None = None
    """Size of the inputs, each byte counted once."""
    element_bytes: float | None = None
    workgroups: int | None = None
    workgroups_per_cu: int | None = None
    """How many fit at once."""


Rule = Callable[[Profile, Target, RunFacts], "Bottleneck | None"]


def classify_counters(profile: Profile, target: Target, run: RunFacts | None = None) -> tuple[Bottleneck, ...]:
    """Bottlenecks from counters, worst first; empty when nothing was collected."""
    facts = run or RunFacts()
    found = [b for rule in _RULES if (b := rule(profile, target, facts)) is not None]
    return tuple(sorted(found, key=lambda b: -b.severity))


def _limit(name: str) -> float:
    return thresholds()[name].value


def _memory_share(profile: Profile, target: Target) -> tuple[float, float] | None:
    """Share of the HBM peak, and bytes moved."""
    read, written = profile.number("hbm_read_bytes"), profile.number("hbm_write_bytes")
    duration_us = profile.number("duration_us")
    if read is None or written is None or not duration_us:
        return None
    return (read + written) / (duration_us * 1e3) / target.board.hbm_gb_per_s, read + written


def _memory_bound(profile: Profile, target: Target, run: RunFacts) -> Bottleneck | None:
    found = _memory_share(profile, target)
    if found is None or found[0] < _limit("memory_bound_share"):
        return None
    share, moved = found
    return Bottleneck(
        "memory-bound",
        0.5,
        f"{moved:.3g} bytes of HBM traffic run at {share:.0%} of {target.board.hbm_gb_per_s:g} GB/s",
        {"hbm_share": share, "hbm_bytes": moved},
        at_most=1.0 / share,
    )


def _over_fetch(profile: Profile, target: Target, run: RunFacts) -> Bottleneck | None:
    read, hit = profile.number("hbm_read_bytes"), profile.number("l2_hit_percent")
    if read is None or hit is None or not run.unique_read_bytes:
        return None
    ratio = read / run.unique_read_bytes
    if ratio < _limit("over_fetch_ratio") or hit >= _limit("over_fetch_l2_hit_percent"):
        return None
    xcds = target.board.xcds
    return Bottleneck(
        "l2-locality",
        min(0.9, 0.4 + 0.1 * ratio),
        f"HBM reads are {ratio:.1f}x the unique input (L2 hit {hit:.0f}%, {xcds} private L2 caches)",
        {"over_fetch": ratio, "l2_hit_percent": hit},
        at_most=ratio,
    )


def _few_waves(profile: Profile, target: Target, run: RunFacts) -> Bottleneck | None:
    waves = profile.number("waves_per_active_cu")
    if waves is None or waves >= _limit("low_waves_per_active_cu") or profile.count("instructions_mfma") > 0:
        return None
    most = target.max_waves_per_simd * target.simds_per_cu
    return Bottleneck(
        "low-occupancy",
        0.6 * (1 - waves / most),
        f"{waves:.1f} of {most} waves on each active compute unit",
        {"waves_per_active_cu": waves},
    )


def _divergence(profile: Profile, target: Target, run: RunFacts) -> Bottleneck | None:
    lanes = profile.number("valu_active_lanes_percent")
    if lanes is None or lanes >= _limit("divergent_lanes_percent"):
        return None
    return Bottleneck(
        "divergence",
        0.5,
        f"{lanes:.0f}% of the lanes are active in vector instructions",
        {"valu_active_lanes_percent": lanes},
        at_most=100 / lanes if lanes > 0 else None,
    )


def _idle_matrix(profile: Profile, target: Target, run: RunFacts) -> Bottleneck | None:
    used, count = profile.number("mfma_utilisation_percent"), profile.count("instructions_mfma")
    if used is None or not count or used >= _limit("mfma_utilisation_percent"):
        return None
    share = _memory_share(profile, target)
    if share is not None and share[0] >= _limit("memory_bound_share"):
        return None
    return Bottleneck(
        "idle-matrix-units",
        0.55,
        f"matrix units are busy {used:.0f}% of the time",
        {"mfma_utilisation_percent": used},
        at_most=100 / used if used > 0 else None,
    )


def _atomics(profile: Profile, target: Target, run: RunFacts) -> Bottleneck | None:
    share = profile.number("atomic_share")
    if share is None or share < _limit("atomic_share"):
        return None
    latency, serial = profile.number("atomic_latency_cycles"), profile.number("atomic_serialisation_share")
    evidence = {"atomic_share": share}
    words = [f"atomics are {share:.0%} of the L2 requests"]
    severity = 0.5
    if latency is not None and latency > _limit("atomic_latency_cycles"):
        evidence["atomic_latency_cycles"] = latency
        words.append(f"take {latency:.0f} cycles each")
        severity += 0.2
    if serial is not None and serial > _limit("atomic_serialisation_share"):
        evidence["atomic_serialisation_share"] = serial
        words.append(f"serialise {serial:.0%} of the active cycles")
        severity += 0.2
    contention = profile.number("atomic_contention")
    if contention is not None:
        evidence["atomic_contention"] = contention
        severity = min(0.95, severity + 0.1 * math.log10(max(1.0, contention)))
    bound = 1 / (1 - serial) if serial is not None and serial < 1 else None
    if bound is None and profile.metrics["atomic_share"].source == "modelled" and share < 1:
        bound = 1 / (1 - share)  # all other requests remain
    return Bottleneck("atomics", severity, ", ".join(words), evidence, at_most=bound)


def _bank_conflicts(profile: Profile, target: Target, run: RunFacts) -> Bottleneck | None:
    conflicts, used = profile.number("lds_conflicts_per_access"), profile.number("lds_utilisation_percent")
    if conflicts is None or conflicts <= _limit("lds_conflicts_per_access"):
        return None
    evidence = {"lds_conflicts_per_access": conflicts}
    if used is not None:
        if used < _limit("lds_utilisation_percent"):
            return None
        evidence["lds_utilisation_percent"] = used
        where, severity = f" in LDS that is busy {used:.0f}% of the time", min(0.8, 0.4 + 0.1 * conflicts)
        return _conflicting(conflicts, where, severity, evidence, 1 + conflicts)
    accesses, executed = profile.number("instructions_lds"), profile.number("instructions_executed")
    if accesses is None or not executed:
        return _conflicting(conflicts, "", min(0.5, 0.3 + 0.1 * conflicts), evidence, 1 + conflicts)
    # Emulation has no clock: what conflicts can cost is their share of all issue slots.
    lost = accesses * conflicts
    share = lost / (executed + lost)
    if share < _limit("lds_conflict_share"):
        return None
    evidence["lds_conflict_share"] = share
    where = f", {share:.0%} of the issue slots"
    return _conflicting(conflicts, where, min(0.8, 0.2 + 0.6 * share), evidence, 1 / (1 - share))


def _conflicting(
    conflicts: float, where: str, severity: float, evidence: dict[str, float], at_most: float
) -> Bottleneck:
    statement = f"{conflicts:.2f} conflict cycles per LDS access{where}"
    return Bottleneck("lds-bank-conflicts", severity, statement, evidence, at_most=at_most)


def _uncoalesced(profile: Profile, target: Target, run: RunFacts) -> Bottleneck | None:
    worst: tuple[float, Bottleneck] | None = None
    traffic = {d: _traffic(profile, d) for d in ("read", "write")}
    for direction, kind in (("read", "global_load"), ("write", "global_store")):
        moved = profile.number(f"{direction}_bytes_per_lane")
        # a lane may load several elements at once; the code object says how many bytes
        width = max(run.element_bytes or 0.0, profile.number(f"{kind}_mean_bytes") or 0.0)
        if moved is None:
            continue
        useful = width or _limit("bytes_per_lane")
        limit = width * _limit("bytes_per_lane_over_element") if width else _limit("bytes_per_lane")
        if moved <= limit:
            continue
        both = traffic["read"] + traffic["write"]
        weight = traffic[direction] / both if both else 1.0
        found = Bottleneck(
            "uncoalesced",
            min(0.85, 0.3 + 0.05 * moved / useful) * weight,
            f"{direction}s move {moved:.0f} bytes of cache lines per lane, {useful:.3g} would do",
            {f"{direction}_bytes_per_lane": moved, "useful_bytes_per_lane": useful, "share_of_traffic": weight},
            at_most=1 / (1 - weight * (1 - useful / moved)),
        )
        if worst is None or found.severity > worst[0]:
            worst = found.severity, found
    return worst[1] if worst else None


def _traffic(profile: Profile, direction: str) -> float:
    """Bytes of cache lines moved; 0 where that is not known."""
    waves = profile.number("instructions_vmem_rd" if direction == "read" else "instructions_vmem_wr")
    return (waves or 0.0) * (profile.number(f"{direction}_bytes_per_lane") or 0.0)


def _latency_bound(profile: Profile, target: Target, run: RunFacts) -> Bottleneck | None:
    wait, share = profile.number("wait_share"), _memory_share(profile, target)
    if wait is None or share is None or wait < _limit("wait_share") or share[0] >= _limit("memory_bound_share"):
        return None
    if (profile.number("duration_us") or 0) < _limit("short_kernel_us"):
        return None  # in so short a run the start-up is most of the waiting
    return Bottleneck(
        "latency-bound",
        0.45,
        f"waves wait {wait:.0%} of their time while HBM runs at {share[0]:.0%} of its rate",
        {"wait_share": wait, "hbm_share": share[0]},
        at_most=1 / share[0] if share[0] > 0 else None,
    )


def _short_kernel(profile: Profile, target: Target, run: RunFacts) -> Bottleneck | None:
    duration_us = profile.number("duration_us")
    if duration_us is None or duration_us >= _limit("short_kernel_us"):
        return None
    return Bottleneck(
        "launch-bound",
        0.4,
        f"the kernel takes {duration_us:.1f} us, about what a launch costs",
        {"duration_us": duration_us},
    )


def _wave_tail(profile: Profile, target: Target, run: RunFacts) -> Bottleneck | None:
    if not run.workgroups or not run.workgroups_per_cu:
        return None
    slots = run.workgroups_per_cu * target.board.compute_units
    waves = run.workgroups / slots
    idle = 1 - waves / math.ceil(waves)
    if run.workgroups <= slots or idle < _limit("wave_tail_share"):
        return None
    return Bottleneck(
        "wave-quantisation",
        0.5 * idle,
        f"{run.workgroups} workgroups fill {waves:.2f} waves of {slots}: {idle:.0%} of the slots stay empty",
        {"workgroups": run.workgroups, "slots": slots, "idle_share": idle},
        at_most=1 / (1 - idle),
    )


_RULES: tuple[Rule, ...] = (
    _memory_bound,
    _over_fetch,
    _few_waves,
    _divergence,
    _idle_matrix,
    _atomics,
    _bank_conflicts,
    _uncoalesced,
    _latency_bound,
    _short_kernel,
    _wave_tail,
)
