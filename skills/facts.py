"""Facts: what is known about a kernel, under a closed list of names that skill conditions may use.

A fact that was not collected is missing with a reason, never a made-up number. Facts come from the source text
(`skills.source_facts`), the recorded launches, the compile results and profiles, the target and the request. They exist
per jit kernel and, aggregated with the worst value of each, for the file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Protocol

from sandbox.target import Target
from skills.condition import Value

VOCABULARY: Mapping[str, str] = MappingProxyType(
    {
        "target.arch": "compiler architecture, for example gfx950",
        "target.vendor": "amd or nvidia",
        "target.xcds": "dies with their own L2",
        "target.l2_bytes_per_xcd": "L2 of one die, bytes",
        "target.compute_units": "CUs or SMs of the board",
        "target.lds_bytes_per_workgroup": "LDS one workgroup may use, bytes",
        "target.max_threads_per_workgroup": "threads one workgroup may have",
        "target.max_grid_threads": "threads one launch may have",
        "target.wavefront_size": "lanes of a wavefront",
        "target.fp8_format": "fp8 encoding of the matrix instructions: none, fnuz or ocp",
        "target.dot_input_precisions": "names tl.dot(input_precision=...) accepts",
        "request.allow_approx": "the user allows results that differ beyond rounding",
        "kernel.name": "name of the jit kernel",
        "source.has_dot": "tl.dot is called",
        "source.has_dot_scaled": "tl.dot_scaled is called",
        "source.has_inline_asm": "tl.inline_asm_elementwise is called",
        "source.has_libdevice": "a libdevice or tl.math function is used",
        "source.has_atomic": "a tl.atomic_* function is called",
        "source.has_range_loop": "a Python range loop with a load inside",
        "source.has_store": "tl.store is called",
        "source.is_autotuned": "the kernel carries triton.autotune",
        "source.has_amd_options": "waves_per_eu, matrix_instr_nonkdim or kpack are already chosen",
        "source.uses_int64": "int64 arithmetic is spelled out",
        "compile.status": "ok or failed, for the target",
        "compile.error": "message of the compile failure, in full",
        "launch.count": "recorded launches",
        "launch.num_warps": "largest num_warps launched",
        "launch.num_stages": "largest num_stages launched",
        "launch.threads_per_workgroup": "largest num_warps x wavefront size",
        "launch.grid_programs": "largest grid, programs",
        "launch.grid_axes": "largest number of grid axes above 1",
        "launch.grid_threads": "largest grid x block, threads",
        "launch.arg_dtypes": "dtypes of tensor arguments",
        "launch.pointer_dtypes": "dtypes of tensor arguments by parameter, as NAME=DTYPE",
        "launch.pointer_elements": "elements of tensor arguments, as NAME=COUNT; NAME=part in a larger storage",
        "launch.integers": "integer scalars of the launches, as NAME=VALUE",
        "launch.constants": "integer constexprs and options of the launches, as NAME=VALUE",
        "launch.configs": "configs of the autotuner as NAME=VALUE,NAME=VALUE",
        "launch.max_tensor_bytes": "largest tensor argument, bytes of storage",
        "block_elements": "elements of the largest block of the program",
        "vgpr_count": "vector registers per lane, AccVGPRs included",
        "sgpr_count": "scalar registers per wave",
        "lds_bytes": "LDS per workgroup, bytes",
        "scratch_bytes": "scratch per lane, bytes",
        "vgpr_spill_count": "spilled vector registers",
        "sgpr_spill_count": "spilled scalar registers",
        "occupancy_waves_per_simd": "waves that fit on one SIMD",
        "occupancy_limiter": "what limits occupancy: waves, vgpr, lds or workgroups",
        "instructions": "instructions of the code object",
        "mfma_count": "matrix instructions of the code object",
        "valu_count": "vector arithmetic instructions of the code object",
        "transcendental_count": "transcendental instructions of the code object",
        "global_atomic_count": "global atomic instructions of the code object",
        "cas_loop_count": "compare-and-swap instructions of the code object",
        "cache_maintenance_count": "L2 write-back and invalidate instructions around atomics",
        "executed_lane_atomics": "atomic lane operations executed",
        "executed_instructions": "instructions executed",
        "executed_alu_cycles": "cycles that vector and matrix units need for what was executed, none overlapping",
        "atomic_contention": "largest number of lane atomics on one address",
        "l2_hit_rate": "share of L2 requests that hit",
        "hbm_bandwidth_share": "achieved share of peak HBM bandwidth",
        "mfma_busy_share": "share of cycles the matrix units are busy",
        "bottlenecks": "names of the classified bottlenecks",
        "bottleneck.worst": "name of the one that holds the kernel back most",
        "diagnostic.message": "compiler diagnostic of a CUDA or HIP build",
        "diagnostic.identifier": "identifier the diagnostic names",
        "diagnostic.kinds": "classified kinds of all diagnostics of the build",
        "diagnostic.places": "LINE:COLUMN:MESSAGE of every error in the file",
    }
)
"""Every fact a condition may name, with its meaning and unit."""


class MetricLike(Protocol):
    """What is read of one metric of a profile."""

    @property
    def name(self) -> str: ...
    @property
    def value(self) -> Any: ...


class ArgLike(Protocol):
    """What is read of one recorded argument."""

    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def dtype(self) -> str | None: ...
    @property
    def storage_bytes(self) -> int | None: ...
    @property
    def integer(self) -> int | None: ...
    @property
    def whole_elements(self) -> int | None: ...


@dataclass(frozen=True, slots=True)
class Facts(Mapping[str, "Value | None"]):
    """Collected values by name; `reason(name)` says why one is missing, `kernels` holds the facts of each jit
    kernel."""

    known: Mapping[str, Value]
    missing: Mapping[str, str] = field(default_factory=dict)
    kernels: Mapping[str, Facts] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Value | None:
        if name not in VOCABULARY:
            raise KeyError(name)
        return self.known.get(name)

    def __iter__(self) -> Iterator[str]:
        return iter(VOCABULARY)

    def __len__(self) -> int:
        return len(VOCABULARY)

    def reason(self, name: str) -> str:
        """Why a fact is missing."""
        return self.missing.get(name, "it was not collected")

    def number(self, name: str) -> float | None:
        """A numeric fact, or None when it is missing."""
        value = self[name]
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None

    def names(self, name: str) -> tuple[str, ...]:
        """A fact that holds a set of names; empty when it is missing."""
        value = self[name]
        return value if isinstance(value, tuple) else ()

    def pairs(self, name: str) -> dict[str, set[str]]:
        """A fact that holds NAME=VALUE, as the values seen for each name."""
        found: dict[str, set[str]] = {}
        for key, _, value in (pair.partition("=") for pair in self.names(name)):
            found.setdefault(key, set()).add(value)
        return found

    def largest(self, name: str) -> dict[str, int]:
        """A fact that holds NAME=VALUE with integers: the largest seen for each name."""
        return {key: max(map(int, values)) for key, values in self.pairs(name).items()}

    def with_values(self, values: Mapping[str, Value]) -> Facts:
        """A copy with more values; raises `KeyError` for a name outside the vocabulary."""
        for name in values:
            if name not in VOCABULARY:
                raise KeyError(name)
        return Facts({**self.known, **values}, self.missing, self.kernels)

    def for_kernel(self, name: str) -> Facts:
        """Facts of one jit kernel on top of those of target and request; the file's own when nothing else is known."""
        own = self.kernels.get(name)
        if own is None:
            return self.with_values({"kernel.name": name})
        shared = {k: v for k, v in self.known.items() if k.startswith(("target.", "request."))}
        return Facts({**shared, **own.known, "kernel.name": name}, {**self.missing, **own.missing})


def target_facts(target: Target, *, allow_approx: bool = False) -> dict[str, Value]:
    """Facts of the chosen board and of the request."""
    return {
        "target.arch": target.arch,
        "target.vendor": target.vendor,
        "target.xcds": target.board.xcds,
        "target.l2_bytes_per_xcd": target.board.l2_bytes_per_xcd,
        "target.compute_units": target.board.compute_units,
        "target.lds_bytes_per_workgroup": target.lds_bytes_per_workgroup,
        "target.max_threads_per_workgroup": target.max_threads_per_workgroup,
        "target.max_grid_threads": target.max_grid_threads,
        "target.wavefront_size": target.wavefront_size,
        "target.fp8_format": target.fp8_format,
        "target.dot_input_precisions": tuple(sorted(target.dot_input_precisions)),
        "request.allow_approx": allow_approx,
    }


def launch_facts(
    args: Iterable[ArgLike], grid: tuple[int, ...], options: Mapping[str, Any], target: Target
) -> dict[str, Value]:
    """Facts of one recorded launch. `grid` in programs; `options` as given at the launch or by the assumed config."""
    args = tuple(args)
    tensors = [a for a in args if a.kind == "tensor"]
    programs = 1
    for n in grid:
        programs *= int(n)
    warps = int(options.get("num_warps") or 4)
    facts: dict[str, Value] = {
        "launch.count": 1,
        "launch.num_warps": warps,
        "launch.threads_per_workgroup": warps * target.wavefront_size,
        "launch.grid_programs": programs,
        "launch.grid_axes": sum(1 for n in grid if int(n) > 1),
        "launch.grid_threads": programs * warps * target.wavefront_size,
        "launch.arg_dtypes": tuple(sorted({str(a.dtype) for a in tensors if a.dtype})),
        "launch.pointer_dtypes": tuple(sorted({f"{a.name}={a.dtype}" for a in tensors if a.dtype})),
        "launch.pointer_elements": tuple(
            sorted(f"{a.name}={'part' if a.whole_elements is None else a.whole_elements}" for a in tensors)
        ),
    }
    if options.get("num_stages") is not None:
        facts["launch.num_stages"] = int(options["num_stages"])
    integers = tuple(sorted(f"{a.name}={a.integer}" for a in args if a.kind == "scalar" and a.integer is not None))
    if integers:
        facts["launch.integers"] = integers
    constants = {a.name: a.integer for a in args if a.kind == "constexpr"} | {**options}
    written = tuple(sorted(f"{name}={value}" for name, value in constants.items() if type(value) is int))
    if written:
        facts["launch.constants"] = written
    sizes = [a.storage_bytes for a in tensors if a.storage_bytes is not None]
    if sizes:
        facts["launch.max_tensor_bytes"] = max(sizes)
    return facts


def profile_facts(metrics: Iterable[MetricLike]) -> dict[str, Value]:
    """The metrics of a profile that the vocabulary knows by the same name."""
    found: dict[str, Value] = {}
    for metric in metrics:
        if metric.name in VOCABULARY and isinstance(metric.value, bool | int | float | str):
            found[metric.name] = metric.value
    return found


_SMALLEST_IS_WORST = frozenset({"occupancy_waves_per_simd", "l2_hit_rate", "hbm_bandwidth_share", "mfma_busy_share"})
_SUMMED = frozenset({"launch.count"})


def worst(parts: Iterable[Mapping[str, Value]]) -> dict[str, Value]:
    """Several sets of facts as one: numbers by their worst, names united, `failed` before `ok`, the first text
    otherwise."""
    merged: dict[str, Value] = {}
    for part in parts:
        for name, value in part.items():
            merged[name] = _worse(name, merged[name], value) if name in merged else value
    return merged


def _worse(name: str, a: Value, b: Value) -> Value:
    if isinstance(a, tuple) and isinstance(b, tuple):
        return tuple(sorted({*a, *b}))
    if isinstance(a, bool) and isinstance(b, bool):
        return a or b
    if isinstance(a, int | float) and isinstance(b, int | float):
        if name in _SUMMED:
            return a + b
        return min(a, b) if name in _SMALLEST_IS_WORST else max(a, b)
    if name == "compile.status":
        return "failed" if "failed" in (a, b) else a
    return a


def build_facts(
    kernels: Mapping[str, Iterable[Mapping[str, Value]]],
    target: Target,
    *,
    file_values: Mapping[str, Value] | None = None,
    missing: Mapping[str, str] | None = None,
    allow_approx: bool = False,
) -> Facts:
    """The facts of a file: `kernels` maps each jit kernel to the facts of its launches, compile results and
    profiles."""
    per_kernel = {name: worst(parts) for name, parts in kernels.items()}
    whole = {k: v for k, v in worst(per_kernel.values()).items() if k != "kernel.name"}
    values = {**whole, **dict(file_values or {}), **target_facts(target, allow_approx=allow_approx)}
    reasons = dict(missing or {})
    return Facts(values, reasons, {n: Facts(v, reasons) for n, v in per_kernel.items()})
