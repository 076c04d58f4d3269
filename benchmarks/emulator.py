"""Speed of the emulator: wave instructions per second of both cores on a few kernels, side by side.

Run it from the repository: `python benchmarks/emulator.py [--arch gfx950] [--json FILE]`. Times are processor time of
this process, so that a busy machine matters less; the best of three runs counts. The numpy core runs on a part of the
workgroups, as it would take minutes otherwise.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "emulator"))

import torch
from corpus import triton_dot, triton_elementwise, triton_lanes
from corpus.case import Case, TritonSource, randint, randn
from run_corpus import prepare_case

from sandbox.emulator import fast, reference
from sandbox.emulator.native import compiler

REPEATS = 3
BUDGET = 1 << 40


@dataclass(frozen=True)
class Workload:
    """A kernel, and on how many of its workgroups the numpy core is timed."""

    case: Case
    numpy_workgroups: int
    vector_code: bool = True


def _case(name: str, source: TritonSource, grid: tuple[int, ...], inputs: Callable[[], dict[str, Any]]) -> Case:
    full = (*grid, 1, 1)[:3]
    return Case(name, source, full, lambda arch: inputs(), lambda a, b: None)


def workloads() -> list[Workload]:
    """The kernels measured; sizes as in the requirements where they name one."""
    out = torch.zeros
    half = torch.float16
    n = 1 << 22
    matmul = TritonSource(triton_dot.matmul_kernel, {"TM": 128, "TN": 128, "TK": 32, "PRECISION": None}, 4)
    add = TritonSource(triton_elementwise.add_kernel, {"BLOCK": 1024})
    histogram = TritonSource(triton_lanes.histogram_kernel, {"BINS": 256, "BLOCK": 1024})
    attention = TritonSource(triton_dot.attention_kernel, {"CAUSAL": True, "TQ": 64, "TK": 32, "D": 64}, 4)
    return [
        Workload(_case("vector add, 4M fp32", add, (n // 1024,),
                       lambda: {"x": randn(n), "y": randn(n, seed=1), "out": out(n), "n": n}), 64),
        Workload(_case("softmax, 2048 x 1000", TritonSource(triton_lanes.softmax_kernel, {"BLOCK": 1024}), (2048,),
                       lambda: {"x": randn(2048, 1000), "out": out(2048, 1000), "columns": 1000}), 16),
        Workload(_case("gelu, 1M fp32", TritonSource(triton_elementwise.gelu_kernel, {"BLOCK": 1024}), (1024,),
                       lambda: {"x": randn(1 << 20), "out": out(1 << 20), "n": 1 << 20}), 16),
        Workload(_case("dropout, 1M", TritonSource(triton_lanes.dropout_kernel, {"BLOCK": 1024}), (1024,),
                       lambda: {"x": randn(1 << 20), "out": out(1 << 20), "n": 1 << 20, "seed": 5}), 8),
        Workload(_case("histogram, 1M", histogram, (1024,),
                       lambda: {"x": randint(0, 256, 1 << 20), "out": out(256, dtype=torch.int32), "n": 1 << 20}), 4),
        Workload(_case("matmul, 512^3 fp16", matmul, (4, 4),
                       lambda: {"a": randn(512, 512, dtype=half), "b": randn(512, 512, dtype=half, seed=1),
                                "c": out(512, 512), "M": 512, "N": 512, "K": 512}), 1, vector_code=False),
        Workload(_case("attention, 4 x 512 x 64", attention, (8, 4),
                       lambda: {**{k: randn(4, 512, 64, dtype=half, seed=i) for i, k in enumerate("qkv")},
                                "out": out(4, 512, 64, dtype=half), "length": 512, "scale": 0.125}), 1,
                 vector_code=False),
    ]  # fmt: skip


def _time(run: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    best, result = float("inf"), None
    for _ in range(repeats):
        start = time.process_time()
        result = run()
        best = min(best, time.process_time() - start)
    return best, result


def measure(workload: Workload, arch: str) -> dict[str, Any]:
    """One row: instructions, seconds and rates of both cores."""
    launch = prepare_case(workload.case, arch, workload.case.inputs(arch))
    numbers = range(launch.workgroups)
    fast_s, result = _time(lambda: fast.run(launch, numbers, "sequential", budget=BUDGET), REPEATS)
    few = range(min(workload.numpy_workgroups, launch.workgroups))
    numpy_s, part = _time(lambda: reference.run(launch, few, "sequential", budget=BUDGET), 1)
    assert result.completed and part.completed, (result.reason, part.reason)
    rate, numpy_rate = result.instructions / fast_s, part.instructions / numpy_s
    return {
        "kernel": workload.case.name, "arch": arch, "wave_instructions": result.instructions, "fast_s": fast_s,
        "fast_per_s": rate, "numpy_per_s": numpy_rate, "ratio": rate / numpy_rate, "vector_code": workload.vector_code,
    }  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--arch", default="gfx942", choices=["gfx942", "gfx950"])
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    if not fast.available():
        print("no C compiler: only the numpy core is available", file=sys.stderr)
        return 1
    print(f"{arguments.arch}, {compiler()}, load {os.getloadavg()[0]:.1f}; processor seconds")
    print(f"{'kernel':26} {'wave instr':>11} {'fast s':>8} {'M/s':>7} {'numpy M/s':>10} {'ratio':>7}")
    rows = []
    for workload in workloads():
        row = measure(workload, arguments.arch)
        rows.append(row)
        print(
            f"{row['kernel']:26} {row['wave_instructions']:11,} {row['fast_s']:8.3f} {row['fast_per_s'] / 1e6:7.2f} "
            f"{row['numpy_per_s'] / 1e6:10.4f} {row['ratio']:7.0f}",
            flush=True,
        )
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
