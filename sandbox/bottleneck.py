"""From what is known of a kernel to what holds it back: ranked, each with the numbers it rests on.

Rules read the static profile and the launch; counters, where a profiler or the emulator supplied them as further
metrics of the same profile, sharpen them. A rule without its numbers is silent.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from sandbox.limits import LIMIT_NAMES, LimitFinding
from sandbox.profiler.metrics import Profile, SourceCount
from sandbox.target import Target


@dataclass(frozen=True, slots=True)
class Bottleneck:
    """One thing that costs time or stops the launch. `severity` (0 to 1) only ranks; 1 means that it cannot run."""

    name: str
    severity: float
    statement: str
    evidence: Mapping[str, float] = field(default_factory=dict)
    sites: tuple[SourceCount, ...] = ()
    """Source lines it comes from, where the assembly names them."""
    at_most: float | None = None
    """Upper bound of the speed-up that removing it can give; None where nothing bounds it."""


@dataclass(frozen=True, slots=True)
class LaunchShape:
    """What of a launch the rules need. Unknown is None."""

    programs: int | None = None
    """Workgroups of the grid."""
    num_stages: int | None = None
    has_dot: bool | None = None
    """Whether the kernel calls `tl.dot`."""
    limits: tuple[LimitFinding, ...] = ()


Rule = Callable[[Profile, Target, LaunchShape], "Bottleneck | None"]


def classify(profile: Profile, target: Target, launch: LaunchShape | None = None) -> tuple[Bottleneck, ...]:
    """The bottlenecks of a kernel on `target`, worst first."""
    shape = launch or LaunchShape()
    found = [*_limits(shape.limits)]
    found += [b for rule in _RULES if (b := rule(profile, target, shape)) is not None]
    return tuple(sorted(found, key=lambda b: -b.severity))


def _limits(findings: Sequence[LimitFinding]) -> list[Bottleneck]:
    return [
        Bottleneck(
            LIMIT_NAMES[f.kind],
            1.0 if f.fatal else 0.2,
            f.message,
            {"required": f.required, "limit": f.limit},
        )
        for f in findings
        if f.kind != "grid_empty"
    ]


def _spills(profile: Profile, target: Target, launch: LaunchShape) -> Bottleneck | None:
    spills, scratch = profile.count("vgpr_spill_count"), profile.count("scratch_bytes")
    if not spills and not scratch:
        return None
    looped = profile.count("scratch_count_in_loops")
    where = f", {looped} scratch accesses inside loops" if looped else ""
    share = _scratch_share(profile, "_count_in_loops" if looped else "_count")
    weight = 1.0 if share is None else min(1.0, share / _HEAVY_SCRATCH_SHARE)
    return Bottleneck(
        "vgpr-spills",
        0.3 + 0.6 * weight if looped else 0.2 + 0.4 * weight,
        f"{spills} vector registers spill, {scratch} bytes of scratch per lane{where}",
        {"vgpr_spill_count": spills, "scratch_bytes": scratch, "scratch_count_in_loops": looped},
        profile.sites.get("scratch", ()),
    )


_HEAVY_SCRATCH_SHARE = 0.05
"""Of the instructions: from here on spills are as bad as they get. A few accesses among thousands cost little."""
_MIXED = ("valu", "salu", "mfma", "lds_load", "lds_store", "global_load", "global_store", "scratch")


def _scratch_share(profile: Profile, suffix: str) -> float | None:
    """Scratch accesses among the instructions in loops or anywhere; None where the others were not counted."""
    total = sum(profile.count(f"{kind}{suffix}") for kind in _MIXED)
    count = profile.count(f"scratch{suffix}")
    return count / total if total > count else None


def _alone(launch: LaunchShape, target: Target) -> bool:
    """Whether each workgroup has a compute unit to itself, so that it does not matter how many would fit there."""
    return launch.programs is not None and launch.programs <= target.board.compute_units


def _occupancy(profile: Profile, target: Target, launch: LaunchShape) -> Bottleneck | None:
    waves, limiter = profile.number("occupancy_waves_per_simd"), profile.word("occupancy_limiter")
    if waves is None or limiter in (None, "waves") or waves >= target.max_waves_per_simd / 2 or waves == 0:
        return None
    if _alone(launch, target):
        return None
    matrix = profile.count("mfma_count") > 0  # matrix kernels hide latency inside one wave
    severity = (1 - waves / target.max_waves_per_simd) * (0.45 if matrix else 0.75)
    name = {"vgpr": "vgpr_count", "lds": "lds_bytes"}.get(limiter or "", "threads_per_workgroup")
    value = profile.number(name) or 0
    return Bottleneck(
        "low-occupancy",
        severity,
        f"{waves:g} of {target.max_waves_per_simd} waves fit on a SIMD, limited by {limiter} ({name} {value:g})",
        {"occupancy_waves_per_simd": waves, name: value},
        at_most=target.max_waves_per_simd / waves,
    )


def _cas_loops(profile: Profile, target: Target, launch: LaunchShape) -> Bottleneck | None:
    loops = profile.count("cas_loop_count")
    if not loops:
        return None
    return Bottleneck(
        "atomic-cas-loops",
        0.9,
        f"{loops} atomics have no instruction of their type on {target.arch} and became compare-and-swap loops",
        {"cas_loop_count": loops},
        profile.sites.get("cas_loop", ()),
    )


def _atomics(profile: Profile, target: Target, launch: LaunchShape) -> Bottleneck | None:
    atomics = profile.count("global_atomic_count")
    if not atomics:
        return None
    looped = profile.count("global_atomic_count_in_loops")
    severity = 0.7 if looped else 0.5
    evidence: dict[str, float] = {"global_atomic_count": atomics, "global_atomic_count_in_loops": looped}
    statement = f"{atomics} global atomic instructions" + (f", {looped} of them inside loops" if looped else "")
    contention = profile.number("atomic_contention")
    if contention is not None:
        evidence["atomic_contention"] = contention
        statement += f"; up to {contention:g} lanes on one address"
        severity = min(0.95, severity + 0.1 * math.log10(max(1.0, contention)))
    return Bottleneck("atomics", severity, statement, evidence, profile.sites.get("global_atomic", ()))


def _fences(profile: Profile, target: Target, launch: LaunchShape) -> Bottleneck | None:
    fences = profile.count("cache_maintenance_count")
    if not fences or not profile.count("global_atomic_count"):
        return None
    looped = profile.count("cache_maintenance_count_in_loops")
    return Bottleneck(
        "fences",
        0.65 if looped else 0.45,
        f"{fences} cache write-backs and invalidations order the atomics, {looped} of them inside loops",
        {"cache_maintenance_count": fences, "cache_maintenance_count_in_loops": looped},
    )


def _share(profile: Profile, part: str, whole: Sequence[str]) -> tuple[int, float] | None:
    """Instructions of `part` in loops (or anywhere, when there is no loop), and their share of `whole`."""
    for suffix in ("_count_in_loops", "_count"):
        total = sum(profile.count(f"{kind}{suffix}") for kind in whole)
        if total:
            count = profile.count(f"{part}{suffix}")
            return count, count / total
    return None


_VECTOR = ("valu", "transcendental", "conversion", "fp64")


def _transcendental(profile: Profile, target: Target, launch: LaunchShape) -> Bottleneck | None:
    found = _share(profile, "transcendental", _VECTOR)
    if found is None or found[0] < 8:
        return None
    count, share = found
    matrix = profile.count("mfma_count_in_loops" if profile.count("valu_count_in_loops") else "mfma_count")
    slots = 1 + (_TRANSCENDENTAL_SLOTS - 1) * share + _MATRIX_SLOTS * matrix * share / count
    cost = min(share * (_TRANSCENDENTAL_SLOTS + _AROUND) / slots, 0.95)
    if cost < 0.4 or _waits_for_memory(profile, target):
        return None
    return Bottleneck(
        "transcendental",
        min(0.6, 0.8 * cost),
        f"{count} transcendental instructions and what surrounds them take about {cost:.0%} of the issue slots",
        {"transcendental_count": count, "share": share, "issue_share": cost},
        profile.sites.get("transcendental", ()),
        at_most=1 / (1 - cost),
    )


_TRANSCENDENTAL_SLOTS, _MATRIX_SLOTS, _AROUND = 4, 8, 8
"""Issue slots of a transcendental (quarter rate) and of a matrix instruction (8 passes), and the vector instructions
that a function of the math library puts around each transcendental (range reduction, scaling, special cases; counted in
compiled exp, tanh and erf)."""


def _waits_for_memory(profile: Profile, target: Target) -> bool:
    """Whether a compute unit's share of the memory bandwidth lets its vector instructions hide behind the accesses.

    True only without matrix instructions: kernels that have them read most of what they need from a cache. A wave's
    vector instruction keeps one of the unit's SIMDs for `wavefront_size / 16` cycles.
    """
    suffix = "_count_in_loops" if profile.count("valu_count_in_loops") else "_count"
    kinds = ("global_load", "global_store")
    lane_bytes = sum(profile.count(f"{k}{suffix}") * (profile.number(f"{k}_mean_bytes") or 0) for k in kinds)
    if profile.count("mfma_count") or not lane_bytes or not target.is_amd:
        return False
    board = target.board
    bytes_per_cycle = board.hbm_gb_per_s / (board.compute_units * board.max_clock_ghz)
    memory_cycles = lane_bytes * target.wavefront_size / bytes_per_cycle
    slots = sum(profile.count(f"{kind}{suffix}") for kind in _VECTOR)
    slots += (_TRANSCENDENTAL_SLOTS - 1) * profile.count(f"transcendental{suffix}")
    issue_cycles = slots * target.wavefront_size / _SIMD_LANES / target.simds_per_cu
    return issue_cycles < _HIDDEN * memory_cycles


_SIMD_LANES = 16
_HIDDEN = 1.5
"""Times what the accesses take: below it, fewer instructions shorten the run little or not at all (an fp32 softmax has
1.2 on an MI350X and 0.7 on an MI300X)."""

_WIDEST_BYTES = 16
"""Of one access of one lane."""


def _narrow(profile: Profile, target: Target, launch: LaunchShape) -> Bottleneck | None:
    loads, stores = profile.count("global_load_count"), profile.count("global_store_count")
    executed = profile.count("instructions_vmem_rd") + profile.count("instructions_vmem_wr")
    if loads + stores < (1 if executed else 4):  # few in the code says little unless a run shows how often
        return None
    widths = {
        kind: (profile.number(f"{kind}_mean_bytes") or 0, profile.count(f"{kind}_count"))
        for kind in ("global_load", "global_store")
    }
    if executed:  # how often each kind runs says more than how often it stands in the code
        counts = {"global_load": "instructions_vmem_rd", "global_store": "instructions_vmem_wr"}
        widths = {kind: (width, profile.count(counts[kind])) for kind, (width, _) in widths.items() if width}
    if not widths:
        return None
    mean = sum(w * n for w, n in widths.values()) / max(1, sum(n for _, n in widths.values()))
    if mean > 6:
        return None
    return Bottleneck(
        "narrow-accesses",
        0.5 * (1 - mean / _WIDEST_BYTES),
        f"{loads} loads and {stores} stores move {mean:.1f} bytes per lane on average, 16 are possible",
        {"global_load_count": loads, "global_store_count": stores, "mean_bytes": mean},
        profile.sites.get("global_load", ()),
        at_most=_WIDEST_BYTES / mean if mean > 0 else None,
    )


def _no_matrix(profile: Profile, target: Target, launch: LaunchShape) -> Bottleneck | None:
    if not launch.has_dot or not target.is_amd or profile.number("mfma_count") != 0:
        return None
    return Bottleneck(
        "no-matrix-instructions",
        0.85,
        "tl.dot became vector arithmetic: the kernel has no matrix instruction",
        {"mfma_count": 0, "valu_count": profile.count("valu_count")},
    )


def _software_conversion(profile: Profile, target: Target, launch: LaunchShape) -> Bottleneck | None:
    suffix = "_count_in_loops" if profile.count("mfma_count_in_loops") else "_count"
    matrix, vector = profile.count(f"mfma{suffix}"), profile.count(f"valu{suffix}")
    if not matrix or vector < 64 * matrix:
        return None
    return Bottleneck(
        "software-conversion",
        0.8,
        f"{vector} vector instructions feed {matrix} matrix instructions: operands are converted in software",
        {f"mfma{suffix}": matrix, f"valu{suffix}": vector},
    )


def _register_moves(profile: Profile, target: Target, launch: LaunchShape) -> Bottleneck | None:
    moves, matrix = profile.count("accvgpr_move_count_in_loops"), profile.count("mfma_count_in_loops")
    if moves < 32 or moves < matrix:
        return None
    return Bottleneck(
        "register-moves",
        0.3,
        f"{moves} moves between vector and accumulator registers inside loops",
        {"accvgpr_move_count_in_loops": moves, "mfma_count_in_loops": matrix},
    )


def _deep_pipeline(profile: Profile, target: Target, launch: LaunchShape) -> Bottleneck | None:
    if (launch.num_stages or 0) <= 2 or profile.word("occupancy_limiter") != "lds" or _alone(launch, target):
        return None
    lds = profile.count("lds_bytes")
    return Bottleneck(
        "deep-pipeline",
        0.4,
        f"{launch.num_stages} pipeline stages hold {lds} bytes of LDS per workgroup and limit occupancy",
        {"num_stages": launch.num_stages or 0, "lds_bytes": lds},
    )


def _small_grid(profile: Profile, target: Target, launch: LaunchShape) -> Bottleneck | None:
    units = target.board.compute_units
    if launch.programs is None or launch.programs >= units:
        return None
    severity, length = 0.5, ""
    waves, executed = profile.number("waves"), profile.number("instructions_executed")
    evidence: dict[str, float] = {"programs": launch.programs, "compute_units": units}
    if waves and executed:
        evidence["instructions_per_wave"] = executed / waves
        length = f", {executed / waves:,.0f} instructions per wave"
        severity = 0.5 if executed / waves >= _LONG_WAVE else 0.2  # a launch that is over at once gains nothing
    return Bottleneck(
        "small-grid",
        severity * (1 - launch.programs / units),
        f"{launch.programs} workgroups for {units} compute units of {target.board.name}{length}",
        evidence,
        at_most=units / max(1, launch.programs),
    )


_LONG_WAVE = 10_000
"""Instructions of a wave below which it ends within some ten microseconds, about what a launch costs."""


def _double(profile: Profile, target: Target, launch: LaunchShape) -> Bottleneck | None:
    count = profile.count("fp64_count")
    if count < 4:
        return None
    looped = profile.count("fp64_count_in_loops")
    return Bottleneck(
        "fp64",
        0.5 if looped else 0.25,
        f"{count} float64 instructions, {looped} of them inside loops",
        {"fp64_count": count, "fp64_count_in_loops": looped},
        profile.sites.get("fp64", ()),
    )


_RULES: tuple[Rule, ...] = (
    _spills,
    _occupancy,
    _cas_loops,
    _atomics,
    _fences,
    _transcendental,
    _narrow,
    _no_matrix,
    _software_conversion,
    _register_moves,
    _deep_pipeline,
    _small_grid,
    _double,
)
