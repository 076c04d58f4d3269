"""The profile that the compiler's output alone gives (resources, occupancy, instruction mix), and how two compare.

Counts are of the code object, not of an execution; `*_in_loops` counts the part inside loops. Nothing here says how
fast a kernel is: `compare_static` only names resources that improved while no other got worse.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sandbox.profiler import amdgcn
from sandbox.profiler.amdgcn import Instruction
from sandbox.profiler.metrics import Metric, Profile, SourceCount
from sandbox.target import Target

if TYPE_CHECKING:
    from sandbox.compiling import Compiled

_PER_LOOP = (
    "mfma",
    "valu",
    "transcendental",
    "conversion",
    "fp64",
    "salu",
    "scalar_memory",
    "lds_load",
    "lds_store",
    "lds_atomic",
    "lane_permute",
    "global_load",
    "global_load_lds",
    "global_store",
    "global_atomic",
    "cache_maintenance",
    "barrier",
    "waitcnt",
    "scratch",
    "accvgpr_move",
    "branch",
    "call",
    "scheduling",
)
_BLOCK = re.compile(r"tensor<((?:\d+x)+)")
_SITED = ("mfma", "transcendental", "global_atomic", "scratch", "fp64", "barrier", "global_load", "global_store")
_NO_PTX = "NVIDIA code objects are not disassembled here"


def static_profile(compiled: Compiled, target: Target) -> Profile:
    """The profile of a compiled Triton launch. For NVIDIA targets only what Triton's metadata says is known."""
    threads = compiled.threads_per_workgroup
    if not target.is_amd:
        profile = _nvidia_profile(compiled)
    else:
        profile = asm_profile(
            compiled.asm, compiled.kernel, target, threads_per_workgroup=threads, dynamic_lds_bytes=compiled.lds_bytes
        )
    return replace(profile, metrics={**profile.metrics, "block_elements": _block_elements(compiled.ttir)})


def _block_elements(ttir: str) -> Metric:
    """The largest block of the program: with fewer elements than lanes, some lanes repeat what others do."""
    sizes = [math.prod(map(int, shape[:-1].split("x"))) for shape in set(_BLOCK.findall(ttir))]
    return Metric("block_elements", max(sizes, default=1), "elements")


def asm_profile(
    asm: str,
    kernel: str,
    target: Target,
    *,
    threads_per_workgroup: int | None = None,
    dynamic_lds_bytes: int = 0,
) -> Profile:
    """The profile of one kernel in AMDGCN assembly, from Triton or from clang.

    `dynamic_lds_bytes` is what the launch adds to the statically allocated LDS; without `threads_per_workgroup` the
    occupancy is that of the largest workgroup the kernel was compiled for. Raises ValueError when `kernel` is missing.
    """
    res = amdgcn.resources(asm, kernel)
    code = list(amdgcn.instructions(asm, kernel))
    lds = res.lds_bytes + dynamic_lds_bytes
    threads = threads_per_workgroup or res.max_flat_workgroup_size
    waves = max(1, -(-threads // target.wavefront_size))
    occupancy, limiter = target.occupancy(res.vgpr_count, lds, waves)
    metrics = [
        Metric("vgpr_count", res.vgpr_count, "registers per lane", formula="ArchVGPRs and AccVGPRs together"),
        Metric("arch_vgpr_count", res.vgpr_count - res.agpr_count, "registers per lane"),
        Metric("agpr_count", res.agpr_count, "registers per lane"),
        Metric("sgpr_count", res.sgpr_count, "registers per wave"),
        Metric("lds_bytes", lds, "bytes per workgroup"),
        Metric("scratch_bytes", res.scratch_bytes, "bytes per lane"),
        Metric("vgpr_spill_count", res.vgpr_spill_count, "registers"),
        Metric("sgpr_spill_count", res.sgpr_spill_count, "registers"),
        Metric("kernarg_bytes", res.kernarg_bytes, "bytes"),
        Metric("threads_per_workgroup", threads, "threads"),
        Metric("occupancy_waves_per_simd", occupancy, "waves", formula=_occupancy_formula(target, lds, waves)),
        Metric("occupancy_limiter", limiter),
        Metric("instructions", len(code), "instructions"),
        _code_bytes(asm, kernel),
        *_mix(code),
    ]
    return Profile(kernel, target.arch, {m.name: m for m in metrics}, _sites(code))


def _occupancy_formula(target: Target, lds_bytes: int, waves: int) -> str:
    vgpr = f"floor({target.vgprs_per_simd_lane} / align{target.vgpr_granule}(vgpr_count))"
    lds = f", floor({target.lds_bytes_per_cu} / {lds_bytes}) x {waves} / {target.simds_per_cu}" if lds_bytes else ""
    return f"min({target.max_waves_per_simd}, {vgpr}{lds})"


def _code_bytes(asm: str, kernel: str) -> Metric:
    size = amdgcn.code_bytes(asm, kernel)
    return Metric("code_bytes", size, "bytes", reason="" if size is not None else "LLVM printed no code size")


def _mix(code: list[Instruction]) -> Iterable[Metric]:
    kinds = Counter(i.kind for i in code)
    looped = Counter(i.kind for i in code if i.depth)
    for kind in _PER_LOOP:
        yield Metric(f"{kind}_count", kinds[kind], "instructions")
        yield Metric(f"{kind}_count_in_loops", looped[kind], "instructions")
    for kind in ("global_load", "global_store", "lds_load", "lds_store"):
        for width, number in sorted(Counter(i.width_bytes for i in code if i.kind == kind).items()):
            yield Metric(f"{kind}_{width}b_count", number, "instructions", formula=f"{width} bytes per lane each")
        yield _mean_width(code, kind)
    for shape, number in sorted(Counter(_matrix_shape(i) for i in code if i.kind == "mfma").items()):
        yield Metric(f"mfma_{shape}_count", number, "instructions")
    yield from _atomics([i for i in code if i.kind == "global_atomic"])


def _mean_width(code: list[Instruction], kind: str) -> Metric:
    widths = [i.width_bytes for i in code if i.kind == kind]
    mean = sum(widths) / len(widths) if widths else None
    reason = "" if widths else f"the kernel has no {kind}"
    return Metric(f"{kind}_mean_bytes", mean, "bytes per lane", reason=reason)


def _matrix_shape(instruction: Instruction) -> str:
    """`v_mfma_f32_32x32x8_f16` as `f32_32x32x8_f16`."""
    return instruction.mnemonic.split("mfma_", 1)[-1] if "mfma_" in instruction.mnemonic else instruction.mnemonic[2:]


def _atomics(code: list[Instruction]) -> Iterable[Metric]:
    kinds = Counter(i.mnemonic.split("_atomic_", 1)[1] for i in code)
    for kind, number in sorted(kinds.items()):
        yield Metric(f"global_atomic_{kind}_count", number, "instructions")
    swaps = [i for i in code if "cmpswap" in i.mnemonic]
    loops = sum(1 for i in swaps if "atomicrmw" in i.block)
    yield Metric(
        "cas_loop_count", loops, "loops", formula="compare-and-swap loops the compiler made of an atomic it has not"
    )
    yield Metric("atomic_cas_count", len(swaps), "instructions")


def _sites(code: list[Instruction]) -> dict[str, tuple[SourceCount, ...]]:
    found: dict[str, Counter[tuple[str, int]]] = {}
    for instruction in code:
        kinds = [instruction.kind] if instruction.kind in _SITED else []
        if instruction.kind == "global_atomic" and "atomicrmw" in instruction.block:
            kinds.append("cas_loop")
        for kind in kinds:
            if instruction.line is not None:
                found.setdefault(kind, Counter())[instruction.line] += 1
    return {
        kind: tuple(SourceCount(file, line, n) for (file, line), n in counts.most_common(20))
        for kind, counts in found.items()
    }


def _nvidia_profile(compiled: Compiled) -> Profile:
    known = [
        Metric("lds_bytes", compiled.lds_bytes, "bytes per workgroup"),
        Metric("threads_per_workgroup", compiled.threads_per_workgroup, "threads"),
    ]
    missing = (
        "vgpr_count",
        "sgpr_count",
        "scratch_bytes",
        "vgpr_spill_count",
        "occupancy_waves_per_simd",
        "instructions",
    )
    unknown = [Metric(name, None, reason=_NO_PTX) for name in missing]
    return Profile(compiled.kernel, compiled.arch, {m.name: m for m in [*known, *unknown]})


_GUARDS: Mapping[str, str] = {
    "vgpr_spill_count": "down",
    "sgpr_spill_count": "down",
    "scratch_bytes": "down",
    "occupancy_waves_per_simd": "up",
}
"""Metrics that may not get worse, with the direction that is better."""


@dataclass(frozen=True, slots=True)
class StaticComparison:
    """What moved between two code objects of the same kernel on the same target.

    `gain` is True only when an expected metric moved its way and no guard got worse: the `static` speed level.
    """

    gain: bool
    improved: Mapping[str, tuple[float, float]]
    """Expected metrics that moved the expected way: name to (baseline, candidate)."""
    worsened: Mapping[str, tuple[float, float]]
    """Guards (spills, scratch, LDS limit, occupancy) that got worse."""
    unmoved: tuple[str, ...]
    """Expected metrics that did not move their way, or are unknown."""
    statement: str
    """For example `vgpr_spill_count 37 -> 0`."""


def compare_static(
    baseline: Profile, candidate: Profile, expects: Mapping[str, str], target: Target
) -> StaticComparison:
    """Judge a candidate by its code object.

    `expects` maps metric names to `down`, `up` or `zero`, as a skill's `expects` does. An LDS need above the target's
    limit counts as worse whatever else improved; so does a lower occupancy, any more spill and any more scratch.
    """
    improved: dict[str, tuple[float, float]] = {}
    unmoved = []
    for name, direction in expects.items():
        before, after = baseline.number(name), candidate.number(name)
        moved = before is not None and after is not None and _moved(before, after, direction)
        if not moved or (name in _BULK and _negligible(baseline, candidate, name)):
            unmoved.append(name)
        elif before is not None and after is not None:
            improved[name] = (before, after)
    worsened = _worsened(baseline, candidate, target)
    return StaticComparison(
        gain=bool(improved) and not worsened,
        improved=improved,
        worsened=worsened,
        unmoved=tuple(unmoved),
        statement=_statement(improved, worsened),
    )


def resource_gains(baseline: Profile, candidate: Profile) -> dict[str, str]:
    """Guard metrics that improved, as `expects` for `compare_static`, where nobody named an expectation."""
    gains = {}
    for name, direction in _GUARDS.items():
        before, after = baseline.number(name), candidate.number(name)
        if before is not None and after is not None and _moved(before, after, direction):
            gains[name] = direction
    return gains


def _moved(before: float, after: float, direction: str) -> bool:
    match direction:
        case "down":
            return after < before
        case "up":
            return after > before
        case "zero":
            return before > 0 and after == 0
        case _:
            return False


_BULK: Mapping[str, str] = {"instructions": "valu_count_in_loops", "valu_count": "valu_count_in_loops"}
"""Counts of most of the code, with the part of them that decides where the kernel has loops."""
_NOTICED = 0.95


def _negligible(baseline: Profile, candidate: Profile, name: str) -> bool:
    """Whether a count of much fell by too little to matter, or only in code that runs once beside a loop."""
    pairs = [(baseline.number(n), candidate.number(n)) for n in (name, _BULK[name])]
    return any(before and after is not None and after > _NOTICED * before for before, after in pairs)


def _worsened(baseline: Profile, candidate: Profile, target: Target) -> dict[str, tuple[float, float]]:
    worse = {}
    for name, better in _GUARDS.items():
        before, after = baseline.number(name), candidate.number(name)
        if before is not None and after is not None and (after > before if better == "down" else after < before):
            worse[name] = (before, after)
    before, after = baseline.number("lds_bytes"), candidate.number("lds_bytes")
    if before is not None and after is not None and after > max(before, target.lds_bytes_per_workgroup):
        worse["lds_bytes"] = (before, after)
    return worse


def _statement(improved: Mapping[str, tuple[float, float]], worsened: Mapping[str, tuple[float, float]]) -> str:
    def spell(changes: Mapping[str, tuple[float, float]]) -> str:
        return ", ".join(f"{name} {before:g} -> {after:g}" for name, (before, after) in changes.items())

    if worsened:
        gained = f" although {spell(improved)}" if improved else ""
        return f"worse: {spell(worsened)}{gained}"
    return spell(improved) or "no expected resource moved"
