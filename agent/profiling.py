"""What holds each kernel back: static and emulated facts of a file, or a profiler's counters, ranked in one list."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from agent.baseline import Baseline, take_baseline
from agent.events import Phase, Progress
from agent.job import JobRequest
from sandbox.bottleneck import Bottleneck, LaunchShape, classify
from sandbox.compiling import Compiled, unpack
from sandbox.counter_bottlenecks import RunFacts, classify_counters
from sandbox.emulated_launch import CannotRepeat, Repeated, repeat_launch, sample_grid
from sandbox.errors import InputError
from sandbox.limits import LIMIT_NAMES, check_launch
from sandbox.profiler.counters import metrics_of
from sandbox.profiler.dispatches import Dispatch, ProfilerData
from sandbox.profiler.emulated import emulated_metrics
from sandbox.profiler.metrics import Profile
from sandbox.profiler.roofline import Point, least_time_us, roofline_svg
from sandbox.profiler.static import static_profile
from sandbox.target import Dtype, Target
from sandbox.workload import Launch

INSTRUCTION_BUDGET = 60_000_000
WHOLE_GRID = 2048
"""Workgroups up to which a grid is emulated whole."""
_MATRIX_DTYPES: tuple[tuple[str, Dtype], ...] = (
    ("f8f6f4", "fp8"), ("fp8", "fp8"), ("bf8", "fp8"), ("bf16", "bf16"), ("f16", "fp16"), ("i8", "int8"),
    ("f64", "fp64"), ("xf32", "tf32"), ("f32", "fp32"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class KernelProfile:
    """One kernel: what is known of its heaviest launch, and its bottlenecks, worst first."""

    kernel: str
    launches: int
    profile: Profile
    bottlenecks: tuple[Bottleneck, ...]
    grid: tuple[int, int, int] | None = None
    point: Point | None = None
    """Its place on the roofline; None where operations, bytes or time are unknown, or there are none."""
    dtype: Dtype = "fp32"
    """The type whose peak the roofline uses."""
    note: str = ""

    def to_json(self) -> dict[str, Any]:
        return {
            "kernel": self.kernel,
            "launches": self.launches,
            "grid": self.grid,
            "bottlenecks": [bottleneck_json(b) for b in self.bottlenecks],
            "roofline": {**asdict(self.point), "dtype": self.dtype} if self.point else None,
            "metrics": [m.to_json() for m in self.profile if m.value is not None],
            "note": self.note,
        }


def bottleneck_json(b: Bottleneck) -> dict[str, Any]:
    """Name, severity, statement, the numbers that show it, and the upper bound of what removing it gives."""
    return {
        "name": b.name,
        "severity": round(b.severity, 3),
        "statement": b.statement,
        "evidence": dict(b.evidence),
        "speedup_at_most": b.at_most,
        "sites": [{"file": s.file, "line": s.line, "instructions": s.count} for s in b.sites[:5]],
    }


def rank(*groups: Iterable[Bottleneck]) -> tuple[Bottleneck, ...]:
    """Bottlenecks of several classifiers as one list, worst first; of one name the severer with the numbers of both."""
    held: dict[str, Bottleneck] = {}
    for b in sorted((b for group in groups for b in group), key=lambda b: -b.severity):
        first = held.get(b.name)
        if first is None:
            held[b.name] = b
        else:
            bound = first.at_most if first.at_most is not None else b.at_most
            held[b.name] = replace(first, evidence={**b.evidence, **first.evidence}, at_most=bound)
    return tuple(sorted(held.values(), key=lambda b: -b.severity))


def profile_file(request: JobRequest, progress: Progress) -> tuple[Baseline, tuple[KernelProfile, ...]]:
    """Record the file, compile it for the target, emulate each kernel's heaviest launch. Errors as in `optimize`."""
    with progress.phase(Phase.BENCHMARK):
        baseline = take_baseline(request, progress)
    launches: dict[str, list[Launch]] = {}
    for launch in baseline.stored.workload.launches:
        launches.setdefault(launch.kernel, []).append(launch)
    if not launches:
        raise InputError(
            "no kernel launch was recorded.",
            file=request.kernel.filename,
            remedy="Give a harness that calls the kernel with --harness.",
        )
    with progress.phase(Phase.VALIDATE):
        kernels = [_kernel(baseline, name, group, request.target, progress) for name, group in launches.items()]
    return baseline, tuple(kernels)


def _kernel(
    baseline: Baseline, name: str, group: Sequence[Launch], target: Target, progress: Progress
) -> KernelProfile:
    launch = max(group, key=lambda x: math.prod(x.grid))
    failure = next((f for f in baseline.measurement.failures if f.kernel == name), None)
    compiled = _compiled(baseline, launch, target)
    if compiled is None:
        message = " ".join((failure.message if failure else "it was not compiled").split())
        stopped = Bottleneck("does-not-build", 1.0, message)
        return KernelProfile(name, len(group), Profile(name, target.arch, {}), (stopped,), launch.grid)
    profile = static_profile(compiled, target)
    shape = _shape(launch, compiled, target)
    note = ""
    if target.is_amd and not any(b.fatal for b in shape.limits):
        progress.step(f"emulating {name} on {math.prod(launch.grid)} workgroups")
        try:
            done = _emulate(baseline, launch, compiled)
            profile = profile.with_metrics(emulated_metrics(done.result))
            note = _coverage(done)
        except CannotRepeat as e:
            note = f"not emulated: {e}"
    counted = classify_counters(profile, target, run_facts(profile, launch))
    found = rank(classify(profile, target, shape), counted, dropped_configs(launch))
    dtype = matrix_dtype(profile)
    return KernelProfile(
        name, len(group), profile, found, launch.grid, _bound(name, profile, target, dtype), dtype, note
    )


def dropped_configs(launch: Launch) -> Iterator[Bottleneck]:
    """Configs of an autotuner that the target cannot run. Where the first is among them, what was tuned for is gone."""
    tuned = launch.autotune
    bad = [(n, c) for n, c in enumerate(tuned.configs) if c.fits is False and c.reason] if tuned else []
    if tuned is None or not bad:
        return
    number, config = bad[0]
    yield Bottleneck(
        LIMIT_NAMES[config.limit_kind] if config.limit_kind is not None else "dropped-configs",
        0.9 if number == 0 else 0.3,
        f"{len(bad)} of {len(tuned.configs)} tuned configs cannot run, the {'first' if number == 0 else 'next'} "
        f"because of {' '.join((config.reason or '').split())}",
        {"dropped_configs": len(bad), "configs": len(tuned.configs)},
    )


def _compiled(baseline: Baseline, launch: Launch, target: Target) -> Compiled | None:
    """The launch's code, whether or not it may be launched."""
    for record in launch.compiles:
        blobs = baseline.stored.compiled.get(record.blob)
        if record.arch == target.arch and record.ok and blobs is not None:
            result = unpack(blobs)
            return result if isinstance(result, Compiled) else None
    return None


def _shape(launch: Launch, compiled: Compiled, target: Target) -> LaunchShape:
    stages = launch.options.get("num_stages")
    return LaunchShape(
        programs=math.prod(launch.grid),
        num_stages=stages.value if stages and type(stages.value) is int else None,
        has_dot="tt.dot" in compiled.ttir,
        limits=check_launch(
            target,
            lds_bytes=compiled.lds_bytes,
            threads_per_workgroup=compiled.threads_per_workgroup,
            grid=launch.grid,
        ),
    )


def run_facts(profile: Profile, launch: Launch) -> RunFacts:
    """What of a recorded launch the counter rules need."""
    dtypes = [t.dtype for a in launch.args for t in a.value.tensors()]
    sizes = [_ELEMENT_BYTES[d] for d in dtypes if d in _ELEMENT_BYTES]
    waves, threads = profile.number("occupancy_waves_per_simd"), profile.number("threads_per_workgroup")
    per_cu = int(waves * 4 // max(1, threads // 64)) if waves and threads else None
    return RunFacts(
        element_bytes=max(sizes, default=None),
        workgroups=math.prod(launch.grid),
        workgroups_per_cu=per_cu,
    )


_ELEMENT_BYTES: Mapping[str, float] = {
    "float64": 8, "int64": 8, "float32": 4, "int32": 4, "float16": 2, "bfloat16": 2, "int16": 2, "int8": 1, "uint8": 1,
}  # fmt: skip


def _emulate(baseline: Baseline, launch: Launch, compiled: Compiled) -> Repeated:
    """The launch with modelled traffic; fewer of its workgroups where all of them take too long."""
    for whole in (WHOLE_GRID, 1):
        done = repeat_launch(
            baseline.stored,
            launch,
            compiled,
            workgroups=sample_grid(launch.grid, whole),
            instruction_budget=INSTRUCTION_BUDGET,
            model=True,
        )
        if done.result.completed:
            return done
        if done.result.status != "budget":
            break
    raise CannotRepeat(f"{done.result.status}: {done.result.reason}")


def _coverage(done: Repeated) -> str:
    ran, total = len(done.result.workgroups_run), done.result.workgroups_total
    return "" if ran == total else f"emulated {ran} of {total} workgroups; totals are scaled"


def matrix_dtype(profile: Profile) -> Dtype:
    """The operand type of the matrix instructions, fp32 without any."""
    shapes = [m.name for m in profile if m.name.startswith("mfma_") and m.name.endswith("_count") and m.value]
    for word, dtype in _MATRIX_DTYPES:
        if any(name.removesuffix("_count").endswith(word) for name in shapes if "x" in name):
            return dtype
    return "fp32"


def _bound(name: str, profile: Profile, target: Target, dtype: Dtype) -> Point | None:
    """The kernel at its roofline: nothing was timed, so this is the least time its operations and bytes allow."""
    flops, moved = profile.number("flops"), profile.number("hbm_bytes")
    if not flops or not moved:
        return None
    return Point(name, flops, moved, least_time_us(target.board, dtype, flops, moved), "least time, not measured")


def profile_counters(data: ProfilerData, target: Target, wanted: str | None) -> tuple[KernelProfile, ...]:
    """The user kernels of what a profiler wrote, the one with most time first; of each, its longest dispatch."""
    groups: dict[str, list[Dispatch]] = {}
    for dispatch in data.dispatches:
        if not dispatch.is_runtime and (wanted is None or wanted in dispatch.kernel):
            groups.setdefault(dispatch.kernel, []).append(dispatch)
    ordered = sorted(groups.items(), key=lambda item: (-(total_us(item[1]) or 0.0), item[0]))
    return tuple(_counted(name, group, data, target) for name, group in ordered)


def _counted(name: str, group: Sequence[Dispatch], data: ProfilerData, target: Target) -> KernelProfile:
    longest = max(group, key=lambda d: (d.duration_ns or 0, len(d.counters)))
    metrics = metrics_of(longest, data.agent(longest.agent_id), target, "rocprofv3")
    profile = Profile(name, target.arch, metrics)
    facts = RunFacts()
    if longest.grid_size and longest.workgroup_size:
        facts = RunFacts(workgroups=longest.grid_size // longest.workgroup_size)
    spilled = [b for b in classify(profile, target) if b.name == "vgpr-spills"]
    found = rank(classify_counters(profile, target, facts), spilled)
    dtype = _counted_dtype(longest)
    flops, time_us = profile.number("flops"), profile.number("duration_us")
    read, written = profile.number("hbm_read_bytes"), profile.number("hbm_write_bytes")
    point = None
    if flops and time_us and read is not None and written is not None and read + written > 0:
        point = Point(name, flops, read + written, time_us, "measured")
    total = total_us(group)
    note = "" if total is None else f"{total:,.1f} us in all"
    return KernelProfile(name, len(group), profile, found, None, point, dtype, note)


def _counted_dtype(dispatch: Dispatch) -> Dtype:
    mops: tuple[tuple[str, Dtype], ...] = (
        ("F8", "fp8"), ("BF16", "bf16"), ("F16", "fp16"), ("I8", "int8"), ("F64", "fp64"), ("F32", "fp32")
    )  # fmt: skip
    counts = {dtype: dispatch.counters.get(f"SQ_INSTS_VALU_MFMA_MOPS_{word}", 0.0) for word, dtype in mops}
    most = max(counts, key=lambda d: counts[d])
    return most if counts[most] else "fp32"


def total_us(group: Iterable[Dispatch]) -> float | None:
    """Time of all dispatches that have one."""
    times = [d.duration_ns for d in group if d.duration_ns is not None]
    return sum(times) / 1000 if times else None


def roofline(kernels: Sequence[KernelProfile], target: Target, title: str) -> str | None:
    """All kernels that have a place on one roofline, as SVG; None where none has. Its peak is the commonest type's."""
    placed = [k for k in kernels if k.point is not None]
    if not placed:
        return None
    dtypes = [k.dtype for k in placed]
    dtype = max(dtypes, key=dtypes.count)
    return roofline_svg(target.board, dtype, [k.point for k in placed if k.point is not None], title)
