"""`wavesmith doctor --selftest`: prove on known kernels that this machine's chain works, and time them where it can.

A ROCm user can send the report back: it says what the machine is, how its clocks and partitions are set, and how long
kernels took whose instruction counts are known.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from agent.baseline import take_baseline
from agent.doctor import findings, reach, visible_gpus
from agent.events import Progress
from agent.job import JobRequest, Options
from agent.versions import toolchain_versions
from sandbox.capture import choose_executor
from sandbox.kernel import Kernel, parse_kernel
from sandbox.target import Target, known_archs, load_target

_COPY = """\
import torch
import triton
import triton.language as tl


@triton.jit
def copy(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n), mask=i < n)


def run(x):
    y = torch.empty_like(x)
    copy[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)
    return y


if __name__ == "__main__":
    x = torch.randn(5000, device="cuda")
    torch.testing.assert_close(run(x), x)
"""
_PRODUCT = """\
import torch
import triton
import triton.language as tl


@triton.jit
def product(a, b, c, K, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK, BLOCK), tl.float32)
    for k in range(0, K, BLOCK):
        left = tl.load(a + i[:, None] * K + k + i[None, :])
        right = tl.load(b + (k + i[:, None]) * BLOCK + i[None, :])
        acc = tl.dot(left, right, acc)
    tl.store(c + i[:, None] * BLOCK + i[None, :], acc)


def run(a, b):
    c = torch.empty((32, 32), device=a.device, dtype=torch.float32)
    product[(1,)](a, b, c, a.shape[1], BLOCK=32)
    return c


if __name__ == "__main__":
    torch.manual_seed(0)
    a = torch.randn(32, 128, device="cuda", dtype=torch.float16)
    b = torch.randn(128, 32, device="cuda", dtype=torch.float16)
    torch.testing.assert_close(run(a, b), a.float() @ b.float(), atol=1e-2, rtol=1e-2)
"""
_SUM = """\
import torch
import triton
import triton.language as tl


@triton.jit
def total(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(y, tl.sum(tl.load(x + i, mask=i < n, other=0)))


def run(x):
    y = torch.zeros(1, device=x.device, dtype=torch.int32)
    total[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), BLOCK=256)
    return y


if __name__ == "__main__":
    x = torch.arange(3000, device="cuda", dtype=torch.int32)
    assert int(run(x)) == int(x.sum())
"""
KERNELS: Mapping[str, str] = {"copy": _COPY, "product": _PRODUCT, "sum": _SUM}
_STATE_COMMANDS = (
    ("amd-smi", "static", "--asic", "--driver", "--partition", "--limit"),
    ("amd-smi", "metric", "--clock", "--power", "--temperature"),
    ("rocm-smi", "--showproductname", "--showclocks", "--showmaxpower", "--showcomputepartition"),
    ("nvidia-smi", "--query-gpu=name,driver_version,clocks.sm,clocks.mem,power.limit,persistence_mode", "--format=csv"),
)


@dataclass(frozen=True, slots=True)
class Tried:
    """One kernel on one target: whether it compiled, ran and passed its own check, and by what it was run."""

    kernel: str
    arch: str
    passed: bool
    executor: str
    detail: str
    seconds: float


def selftest(progress: Progress) -> dict[str, Any]:
    """The whole report as data; `passed` is True when every kernel compiled, ran and was right."""
    tried = [_try(name, load_target(arch), progress) for arch in known_archs() for name in KERNELS]
    gpus = visible_gpus()
    return {
        "schema_version": 1,
        "created_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": toolchain_versions(),
        "machine": [{"name": f.name, "ok": f.ok, "detail": f.detail} for f in findings()],
        "gpus": [{"name": g.name, "arch": g.arch} for g in gpus],
        "reach": [{"arch": r.arch, "correctness": str(r.correctness), "speed": str(r.speed)} for r in reach(gpus)],
        "kernels": [
            {
                "kernel": t.kernel,
                "arch": t.arch,
                "passed": t.passed,
                "executor": t.executor,
                "detail": t.detail,
                "seconds": round(t.seconds, 2),
            }
            for t in tried
        ],
        "device_state": _device_state(),
        "passed": all(t.passed for t in tried),
    }


def _try(name: str, target: Target, progress: Progress) -> Tried:
    progress.step(f"{name} for {target.arch}")
    began = time.monotonic()
    baseline = take_baseline(_request(name, target), Progress())
    outcome = baseline.stored.workload.outcome
    failures = [f.sentence for f in baseline.measurement.failures]
    passed = outcome.status == "passed" and not failures
    detail = "; ".join([*failures, *baseline.notes]) or (outcome.exception or outcome.status)
    return Tried(name, target.arch, passed, baseline.executor, detail, time.monotonic() - began)


def _request(name: str, target: Target) -> JobRequest:
    data = KERNELS[name].encode()
    kernel: Kernel = parse_kernel(data, f"{name}.py")
    return JobRequest(kernel, target, f"{name}.py", data, options=Options(executor=choose_executor("auto")))


def _device_state() -> dict[str, str]:
    """Clocks, partition mode and power limits, as the vendor's tools print them."""
    state: dict[str, str] = {}
    for words in _STATE_COMMANDS:
        try:
            done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
        except (OSError, subprocess.TimeoutExpired):
            continue
        if done.returncode == 0:
            state[" ".join(words)] = done.stdout.strip()
    return state
