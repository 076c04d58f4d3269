"""Triton Proton: reading its trees, and profiling a callable on the GPU at hand."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sandbox.errors import InputError, WavesmithError

_TIME = "time (ns)"
_OWN_FRAMES = ("__proton_launch_metadata", "<metric>")
_SAMPLES, _STALLED = "num_samples", "num_stalled_samples"


@dataclass(frozen=True, slots=True)
class ProtonKernel:
    """All launches of one kernel on one device. `metrics` are the hook's sums (`flops16`), `stalls` sample counts."""

    name: str
    device: str
    calls: int
    total_ns: float
    metrics: Mapping[str, float] = field(default_factory=dict)
    samples: int | None = None
    stalls: Mapping[str, float] = field(default_factory=dict)

    @property
    def mean_ns(self) -> float | None:
        return self.total_ns / self.calls if self.calls else None

    def stall_shares(self) -> dict[str, float]:
        """Reason to its share of the stalled samples, largest first; empty without sampling."""
        total = sum(self.stalls.values())
        ranked = sorted(self.stalls.items(), key=lambda kv: -kv[1])
        return {name: n / total for name, n in ranked if n > 0} if total > 0 else {}


@dataclass(frozen=True, slots=True)
class ProtonProfile:
    """The kernels of one session and the devices Proton described, by `CUDA 0` or `HIP 0`."""

    kernels: tuple[ProtonKernel, ...]
    devices: Mapping[str, Mapping[str, Any]]


def read_tree(path: Path) -> ProtonProfile:
    """A `.hatchet` file (JSON tree); raises `InputError` when it is none, or when the tree holds no timed kernel.

    An empty tree is how a back end that was not really active looks, with exit status 0: never taken as "no time".
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as e:
        raise InputError(f"it is not a Proton tree: {e}.", file=path, remedy="Give the .hatchet file.") from None
    return parse_tree(document, path)


def parse_tree(document: Any, path: Path | None = None) -> ProtonProfile:
    """As `read_tree`, from the parsed JSON."""
    if (
        not isinstance(document, list)
        or not document
        or not isinstance(document[0], dict)
        or "frame" not in document[0]
    ):
        raise InputError("it is not a Proton tree.", file=path, remedy="Give the .hatchet file of a finished session.")
    totals: dict[tuple[str, str], dict[str, float]] = {}
    for frame, metrics in _leaves(document[0], inside_own=False):
        device = f"{metrics.get('device_type', '')} {metrics.get('device_id', '')}".strip()
        held = totals.setdefault((frame, device), {})
        for name, value in metrics.items():
            if isinstance(value, int | float) and not isinstance(value, bool):
                held[name] = held.get(name, 0.0) + value
    kernels = [_kernel(name, device, held) for (name, device), held in totals.items()]
    timed = tuple(sorted((k for k in kernels if k.total_ns > 0 or k.samples), key=lambda k: -k.total_ns))
    if not timed:
        raise InputError(
            "the tree holds no timed kernel: Proton's back end saw nothing.",
            file=path,
            remedy="Do not name the back end; on AMD unset CUDA_VISIBLE_DEVICES and HIP_VISIBLE_DEVICES.",
        )
    devices = {
        f"{kind} {index}": facts
        for table in document[1:]
        if isinstance(table, dict)
        for kind, by_index in table.items()
        if isinstance(by_index, dict)
        for index, facts in by_index.items()
    }
    return ProtonProfile(timed, devices)


def _leaves(node: Mapping[str, Any], *, inside_own: bool) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Frames that carry kernel time. Kernels Proton launched for its own metadata are not the program's."""
    name = str(node.get("frame", {}).get("name", ""))
    own = inside_own or name.startswith(_OWN_FRAMES)
    metrics = node.get("metrics", {})
    if not own and "device_id" in metrics:
        yield name, metrics
    for child in node.get("children", []):
        yield from _leaves(child, inside_own=own)


def _kernel(name: str, device: str, held: Mapping[str, float]) -> ProtonKernel:
    stalls = {k.removeprefix("stalled_"): v for k, v in held.items() if k.startswith("stalled_")}
    extra = {
        k: v for k, v in held.items() if k not in (_TIME, "count", _SAMPLES, _STALLED) and not k.startswith("stalled_")
    }
    samples = held.get(_SAMPLES)
    return ProtonKernel(
        name,
        device,
        int(held.get("count", 0)),
        held.get(_TIME, 0.0),
        extra,
        None if samples is None else int(samples),
        stalls,
    )


def profile_callable(
    run: Callable[[], object], folder: Path, *, stalls: bool = False, repeats: int = 1
) -> ProtonProfile:
    """Time every kernel `run` launches on the GPU of this process; with `stalls`, sample program counters instead.

    `run` is called `repeats` times inside the session, after one call outside it (compilation). Raises `WavesmithError`
    when Proton is missing or refuses, `InputError` when it saw nothing. Sampling needs a back end that has it.
    """
    for name in ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"):
        if _is_amd() and os.environ.get(name):
            raise WavesmithError(f"Proton refuses to run on AMD while {name} is set. Use ROCR_VISIBLE_DEVICES instead.")
    try:
        import triton.profiler as proton
    except ImportError as e:
        raise WavesmithError(f"this Triton has no Proton: {e}") from e
    run()
    _synchronize()
    path = folder / ("stalls" if stalls else "times")
    session = proton.start(str(path), hook="triton", **({"mode": "pcsampling"} if stalls else {}))
    try:
        for _ in range(repeats):
            run()
        _synchronize()
    finally:
        proton.finalize(session)
    return read_tree(path.with_name(path.name + ".hatchet"))


def _is_amd() -> bool:
    import torch

    return getattr(torch.version, "hip", None) is not None


def _synchronize() -> None:
    import torch

    torch.cuda.synchronize()


def roofline_share(kernel: ProtonKernel, peaks_tflop_per_s: Mapping[str, float], hbm_gb_per_s: float) -> float | None:
    """Least possible time over measured time, 0 to 1: the larger of flops/peak and bytes/bandwidth.

    Flop metrics are named by operand width in bits (`flops8` to `flops64`); plain `flops` counts as fp32.
    """
    widths = {"flops8": "fp8", "flops16": "bf16", "flops32": "fp32", "flops64": "fp64", "flops": "fp32"}
    compute_ns = sum(
        kernel.metrics[name] / (peaks_tflop_per_s[dtype] * 1e3)
        for name, dtype in widths.items()
        if name in kernel.metrics and dtype in peaks_tflop_per_s
    )
    memory_ns = kernel.metrics.get("bytes", 0.0) / hbm_gb_per_s
    least = max(compute_ns, memory_ns)
    return least / kernel.total_ns if least > 0 and kernel.total_ns > 0 else None


def merge_stalls(times: ProtonProfile, stalls: ProtonProfile) -> tuple[ProtonKernel, ...]:
    """Timed kernels with the stall samples of a second session of the same program."""
    by_name: dict[str, Sequence[ProtonKernel]] = {}
    for kernel in stalls.kernels:
        by_name[kernel.name] = [*by_name.get(kernel.name, ()), kernel]
    merged = []
    for kernel in times.kernels:
        sampled = by_name.get(kernel.name, ())
        total: dict[str, float] = {}
        for other in sampled:
            for reason, n in other.stalls.items():
                total[reason] = total.get(reason, 0.0) + n
        samples = sum(o.samples or 0 for o in sampled) if sampled else None
        merged.append(
            ProtonKernel(kernel.name, kernel.device, kernel.calls, kernel.total_ns, kernel.metrics, samples, total)
        )
    return tuple(merged)
