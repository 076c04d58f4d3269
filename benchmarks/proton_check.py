"""The Proton adapter on ten kernels of the suite, against CUDA events: one unattended call on a machine with a GPU.

    python benchmarks/proton_check.py [--out proton_check.json] [--kernels 10]

For each kernel: the time of one call by CUDA events (median of interleaved measurements with the cache left warm),
the sum of Proton's kernel times over the same calls, PC-sampling stalls from a second session, and the bottleneck named
from them with its numbers. Every kernel runs in a process of its own, so that one fault costs one row. Exits with 0
when at least ten kernels agree within 3%, have stalls and a named bottleneck; with 2 where there is no NVIDIA GPU.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.cases import Case, load_cases  # noqa: E402
from sandbox.profiler.proton import ProtonKernel, merge_stalls, profile_callable  # noqa: E402

TOLERANCE = 0.03
REPEATS = 50
PREFERRED = (
    "softmax", "layer_norm", "gdpa_forward", "norm_residual", "rotary", "column_sum", "inductor_pointwise",
    "inductor_reduction", "cross_entropy", "gemm", "index_select_forward", "histogram", "gemm_skinny", "scatter_add",
    "bounds_check", "quantised_matmul",
)  # fmt: skip
"""Kernels in the order they are tried, until enough of them run."""
CASE_TIMEOUT_S = 240


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("proton_check.json"))
    parser.add_argument("--kernels", type=int, default=10)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    why = no_gpu()
    if why is not None:
        print(f"proton_check needs an NVIDIA GPU: {why}", file=sys.stderr)
        return 2
    cases = {case.name: case for case in load_cases()}
    if options.one is not None:
        print(json.dumps(measure(cases[options.one])))
        return 0
    rows: list[dict[str, Any]] = []
    for name in PREFERRED:
        if sum(row["passed"] for row in rows) >= options.kernels:
            break
        rows.append(in_process(name))
        print(line(rows[-1]), flush=True)
        options.out.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    passed = sum(row["passed"] for row in rows)
    print(f"\n{passed} of {len(rows)} kernels pass: within {TOLERANCE:.0%} of CUDA events, stalls, a named bottleneck")
    return 0 if passed >= options.kernels else 1


def no_gpu() -> str | None:
    """Why nothing can be measured here; None where it can."""
    try:
        import torch
        import triton.profiler  # noqa: F401
    except ImportError as e:
        return f"{e}"
    if not torch.cuda.is_available():
        return "torch sees no CUDA device"
    return "this is an AMD device" if getattr(torch.version, "hip", None) else None


def in_process(name: str) -> dict[str, Any]:
    command = [sys.executable, str(Path(__file__).resolve()), "--one", name]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=CASE_TIMEOUT_S, check=False, env=environment
        )
        row: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    except subprocess.TimeoutExpired:
        return {"kernel": name, "passed": False, "fault": f"it did not end within {CASE_TIMEOUT_S} s"}
    except (ValueError, IndexError):
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        return {"kernel": name, "passed": False, "fault": last[:300]}
    return row


def measure(case: Case) -> dict[str, Any]:
    """One row, in this process."""
    import torch

    run = callable_of(case)
    for _ in range(5):
        run()
    torch.cuda.synchronize()
    before = events_us(run)
    with tempfile.TemporaryDirectory() as folder:
        times = profile_callable(run, Path(folder), repeats=REPEATS)
        after = events_us(run)
        sampled = profile_callable(run, Path(folder), stalls=True, repeats=REPEATS)
    kernels = merge_stalls(times, sampled)
    event_us = statistics.median([*before, *after])
    # gaps between kernels are time of the events' and not of any kernel: the graph has none
    proton_us = sum(k.total_ns for k in kernels) / REPEATS / 1000
    named = [named_bottleneck(k) for k in kernels[:3]]
    off = proton_us / event_us - 1
    stalls = any(k.stalls for k in kernels)
    return {
        "kernel": case.name,
        "event_us": event_us,
        "proton_us": proton_us,
        "difference": off,
        "kernels": [{"name": k.name[:80], "calls": k.calls, "mean_us": (k.mean_ns or 0) / 1000} for k in kernels[:5]],
        "bottlenecks": [n for n in named if n],
        "stalls": stalls,
        "passed": abs(off) <= TOLERANCE and stalls and bool(named and named[0]),
        "device": torch.cuda.get_device_name(0),
    }


def callable_of(case: Case) -> Callable[[], object]:
    """The case's entry on its large inputs."""
    import importlib.util

    spec = importlib.util.spec_from_file_location(f"suite_{case.name}", case.kernel)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    inputs = module.make_large() if case.large is None else module.make_inputs(**case.large)
    entry = getattr(module, case.entry)
    return lambda: entry(*inputs)


def events_us(run: Callable[[], object]) -> list[float]:
    """Time of one call on the device, by CUDA events around a replayed graph; around plain calls where no graph can be
    captured (then gaps between short kernels count too).
    """
    import torch

    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    calls = 10
    replay: Callable[[], object] = run
    try:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(calls):
                run()
        replay, inner = graph.replay, calls
    except RuntimeError:
        torch.cuda.synchronize()
        inner = 1
    found = []
    for _ in range(15):
        repeat = 1 if inner > 1 else calls
        start.record()
        for _ in range(repeat):
            replay()
        end.record()
        torch.cuda.synchronize()
        found.append(start.elapsed_time(end) * 1000 / (inner * repeat))
    return found


STALLS = {
    "long_scoreboard": "memory-latency",
    "lg_throttle": "memory-latency",
    "drain": "memory-latency",
    "short_scoreboard": "shared-memory",
    "mio_throttle": "shared-memory",
    "math_pipe_throttle": "arithmetic",
    "wait": "dependency",
    "barrier": "barrier",
    "membar": "fences",
    "branch_resolving": "branches",
    "no_instruction": "instruction-fetch",
    "tex_throttle": "memory-latency",
    "dispatch_stall": "dispatch",
    "imc_miss": "constant-cache",
    "sleeping": "sleep",
}
"""Stall reason of Proton to what holds the kernel back. `selected` and `not_Selected` are no stalls."""


def named_bottleneck(kernel: ProtonKernel) -> dict[str, Any] | None:
    """The largest share of stalled samples, with the numbers; None without samples."""
    shares: dict[str, float] = {}
    for reason, share in kernel.stall_shares().items():
        if reason in STALLS:
            shares[STALLS[reason]] = shares.get(STALLS[reason], 0.0) + share
    total = sum(shares.values())
    if not total:
        return None
    name = max(shares, key=lambda n: shares[n])
    return {
        "kernel": kernel.name[:80],
        "bottleneck": name,
        "share": shares[name] / total,
        "samples": kernel.samples,
        "stalls": dict(list(kernel.stall_shares().items())[:4]),
    }


def line(row: dict[str, Any]) -> str:
    if "fault" in row:
        return f"FAIL {row['kernel']:22} {row['fault']}"
    first = row["bottlenecks"][0] if row["bottlenecks"] else {"bottleneck": "none", "share": 0.0}
    mark = "ok  " if row["passed"] else "FAIL"
    times = f"events {row['event_us']:9.2f} us, Proton {row['proton_us']:9.2f} us ({row['difference']:+.1%})"
    return f"{mark} {row['kernel']:22} {times}  {first['bottleneck']} {first['share']:.0%} of stalls"


if __name__ == "__main__":
    raise SystemExit(main())
