"""The one place where evidence becomes words: a sentence never claims more than its level allows."""

from __future__ import annotations

from collections.abc import Mapping

from sandbox.target import Target
from sandbox.verdict import Correctness, Interval, Speed

_NAMES = {
    "vgpr_spill_count": "VGPR spills",
    "sgpr_spill_count": "SGPR spills",
    "scratch_bytes": "scratch bytes per lane",
    "occupancy_waves_per_simd": "occupancy (waves per SIMD)",
    "vgpr_count": "VGPRs",
    "sgpr_count": "SGPRs",
    "lds_bytes": "LDS bytes per workgroup",
    "cas_loop_count": "compare-and-swap loops",
    "instructions": "instructions",
    "alu_cycles": "vector and matrix instructions, weighted by their issue rates,",
    "lds_bank_conflicts": "cycles lost to LDS bank conflicts",
    "valu_count": "vector instructions",
}


def metric_name(name: str) -> str:
    """How a metric is called in a sentence; `KERNEL: metric` keeps the kernel's name as it is."""
    kernel, colon, metric = name.rpartition(": ")
    return kernel + colon + _NAMES.get(metric, metric.removesuffix("_count").replace("_", " "))


def static_statement(moved: Mapping[str, tuple[float, float]]) -> str:
    """`VGPR spills 37 -> 0`: what the code object shows, nothing about time."""
    return ", ".join(f"{metric_name(name)} {before:g} -> {after:g}" for name, (before, after) in moved.items())


def counted_statement(moved: Mapping[str, tuple[float, float]]) -> str:
    """`executed atomics 16x fewer`: counts of an emulated run, nothing about time."""
    parts = []
    for name, (before, after) in moved.items():
        thing = f"executed {metric_name(name)}"
        if after == 0:
            parts.append(f"{thing} {before:g} -> 0")
        elif after < before:
            parts.append(f"{thing} {_times(before / after)} fewer")
        else:
            parts.append(f"{thing} {_times(after / before)} more")
    return ", ".join(parts)


def _times(factor: float) -> str:
    return f"{factor:.0f}x" if factor >= 10 or factor == int(factor) else f"{factor:.2f}x"


def predicted_statement(moved: Mapping[str, tuple[float, float]]) -> str:
    """`predicted LDS bank conflicts 992 -> 0`: of the emulator's models, which know no time."""
    parts = ", ".join(f"{metric_name(name)} {before:g} -> {after:g}" for name, (before, after) in moved.items())
    return f"predicted {parts} by a model of the hardware; not measured"


def modelled_statement(ratio: float, model: str) -> str:
    return f"predicted {ratio:.2f}x by {model}; not measured"


def timed_statement(interval: Interval, device: str, target: Target) -> tuple[Speed, str]:
    """The level and sentence of a timing: only a device of the target's own architecture makes it `measured`.

    `device` is the name as the runtime reports it (`NVIDIA H200`, `AMD Instinct MI350X`).
    """
    if any(board.device_name.lower() == device.lower() for board in target.boards.values()):
        return Speed.MEASURED, f"{interval} on {device}"
    return Speed.MEASURED_ELSEWHERE, f"{interval} on {device}; not timed on {target.arch}"


def correctness_statement(level: Correctness, target: Target, *, calls: int, device: str | None = None) -> str:
    """What was run to call a program equivalent. Below `interpreted` the word "validated" does not appear."""
    inputs = {0: "the harness's own comparisons", 1: "one call"}.get(calls, f"{calls} calls")
    match level:
        case Correctness.NONE:
            return "nothing was shown"
        case Correctness.COMPILED:
            return f"builds for {target.arch}; what it computes was not shown"
        case Correctness.INTERPRETED:
            return f"validated in the interpreter ({inputs}); the code object for {target.arch} was not executed"
        case Correctness.EXECUTED_ELSEWHERE:
            return f"validated on {device or 'another GPU'} ({inputs}); not executed on {target.arch}"
        case Correctness.EMULATED:
            return f"validated by emulating the {target.arch} code object ({inputs})"
        case Correctness.EXECUTED:
            return f"validated on {device or target.board.device_name} ({inputs})"
