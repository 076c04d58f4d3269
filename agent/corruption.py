"""`wavesmith doctor --sdc`: recorded kernels repeated on every GPU of the machine, with a vote on their results."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from agent.baseline import take_baseline
from agent.companions import load_with_companions
from agent.doctor import visible_gpus
from agent.events import Progress
from agent.job import JobRequest, Options
from agent.selftest import KERNELS
from sandbox.errors import InputError
from sandbox.kernel import Kernel, parse_kernel
from sandbox.sdc import Device, ReplayDevice, SdcReport, check
from sandbox.target import Target, load_target
from sandbox.workload import StoredWorkload

_WITHOUT_GPU = "gfx942"
"""Target posed as where the processor repeats the kernels."""


def check_machine(file: Path | None, repeats: int, progress: Progress) -> Mapping[str, SdcReport]:
    """One report per kernel file: the self-test's, or `file`. Without a GPU the processor repeats them.

    Raises `InputError` for a file that records no call, `SandboxError` where a device does not run them.
    """
    gpus = visible_gpus()
    target = load_target(gpus[0].arch if gpus else _WITHOUT_GPU)
    kernels = (
        [load_with_companions(file)] if file else [parse_kernel(t.encode(), f"{n}.py") for n, t in KERNELS.items()]
    )
    reports = {}
    for kernel in kernels:
        progress.step(f"recording {kernel.filename}")
        stored = _recorded(kernel, target)
        devices = devices_for(stored, kernel, target, [gpu.name for gpu in gpus])
        progress.step(f"repeating {kernel.filename} on {len(devices)} devices")
        reports[kernel.filename] = check(devices, repeats)
    return reports


def devices_for(stored: StoredWorkload, kernel: Kernel, target: Target, gpus: list[str]) -> list[Device]:
    """The GPUs by number, or the processor where there is none."""
    if not gpus:
        return [ReplayDevice("processor (interpreter)", stored, kernel, target, "interpreter")]
    return [ReplayDevice(f"{n}: {name}", stored, kernel, target, "gpu", n) for n, name in enumerate(gpus)]


def _recorded(kernel: Kernel, target: Target) -> StoredWorkload:
    data = kernel.source.encode()
    request = JobRequest(kernel, target, kernel.filename, data, options=Options(executor="auto"))
    stored = take_baseline(request, Progress()).stored
    if not stored.workload.entries:
        raise InputError("no call was recorded that could be repeated.", file=kernel.filename)
    return stored
