"""What a launch may not exceed: limits that AMD's runtime checks only when the kernel is launched.

A kernel can compile and still be refused: LDS over the limit of the target, too many threads for a workgroup, or a grid
of 2^32 threads and more. Each is a finding with its numbers, so that a report can say them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Literal

from sandbox.target import Target

LimitKind = Literal["lds", "threads_per_workgroup", "grid_threads", "grid_axis", "grid_empty"]
LIMIT_NAMES: Mapping[LimitKind, str] = {
    "lds": "lds-overflow",
    "threads_per_workgroup": "launch-limit",
    "grid_threads": "launch-limit",
    "grid_axis": "launch-limit",
    "grid_empty": "launch-limit",
}
"""What a broken limit is called as a bottleneck and as a review's rule."""

_SAFE_GRID_THREADS = 2**31 - 1
"""HIP documents 2^32 - 1; grid x block in 32-bit signed arithmetic is safe only below this."""


@dataclass(frozen=True, slots=True)
class LimitFinding:
    """One limit and what the launch asks for. `fatal`: the runtime refuses the launch; else it works but is close."""

    kind: LimitKind
    required: int
    limit: int
    message: str
    fatal: bool = True


def check_launch(
    target: Target, *, lds_bytes: int, threads_per_workgroup: int, grid: Sequence[int]
) -> tuple[LimitFinding, ...]:
    """Every limit the launch breaks on `target`, fatal ones first. `grid` counts workgroups along x, y, z.

    Sources: HIP raises `out of resource` for LDS and threads (Triton: OutOfResources), and rejects grid x block of 2^32
    threads and more (ROCm/rocm-systems issue 2374); y and z take at most 65535 workgroups on NVIDIA, 2^32 - 1 on AMD.
    """
    findings = [
        *_resources(target, lds_bytes, threads_per_workgroup),
        *_grid(target, threads_per_workgroup, [int(n) for n in grid]),
    ]
    return tuple(sorted(findings, key=lambda f: not f.fatal))


def _resources(target: Target, lds_bytes: int, threads: int) -> list[LimitFinding]:
    found = []
    if lds_bytes > target.lds_bytes_per_workgroup:
        limit = target.lds_bytes_per_workgroup
        name = "LDS" if target.is_amd else "shared memory"
        found.append(
            LimitFinding(
                "lds", lds_bytes, limit, f"{name} {lds_bytes} bytes > {limit} bytes per workgroup on {target.arch}"
            )
        )
    if threads > target.max_threads_per_workgroup:
        limit, width = target.max_threads_per_workgroup, target.wavefront_size
        warps = threads // width
        found.append(
            LimitFinding(
                "threads_per_workgroup",
                threads,
                limit,
                f"{warps} warps x {width} lanes = {threads} threads per workgroup > {limit} on {target.arch}",
            )
        )
    return found


def _grid(target: Target, threads: int, grid: list[int]) -> list[LimitFinding]:
    found = []
    if any(n <= 0 for n in grid):
        found.append(LimitFinding("grid_empty", min(grid), 1, f"the grid {tuple(grid)} has no workgroup", fatal=False))
        return found
    axis_limits = (2**31 - 1, 65535, 65535) if not target.is_amd else (2**32 - 1,) * 3
    for axis, (number, limit) in enumerate(zip(grid, axis_limits, strict=False)):
        if number > limit:
            found.append(LimitFinding("grid_axis", number, limit, f"{number} workgroups along {'xyz'[axis]} > {limit}"))
    total, limit = prod(grid) * threads, target.max_grid_threads
    spelled = f"{prod(grid)} workgroups x {threads} threads = {total}"
    if target.is_amd and total > limit:
        found.append(LimitFinding("grid_threads", total, limit, f"{spelled} threads > {limit} of one launch"))
    elif target.is_amd and total > _SAFE_GRID_THREADS:
        found.append(
            LimitFinding("grid_threads", total, _SAFE_GRID_THREADS, f"{spelled} threads exceed 2^31 - 1", fatal=False)
        )
    return found
