"""Recorded launches repeated in the emulator: agreement, samples of large grids, wrong results, faults."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sandbox.capture import Capture, capture
from sandbox.compiling import Compiled
from sandbox.emulated_launch import (
    MIN_SAMPLE,
    compiled_for,
    launch_key,
    narrowest_roundoff,
    repeat_launch,
    sample_grid,
)
from sandbox.isolation import Limits
from sandbox.kernel import parse_kernel
from sandbox.target import load_target
from sandbox.workload import Launch

SOURCE = """
import torch
import triton
import triton.language as tl


@triton.jit
def both(x_ptr, a_ptr, b_ptr, n, factor, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(a_ptr + i, x * factor, mask=i < n)
    tl.store(b_ptr + i, x + factor, mask=i < n)


@triton.jit
def beyond(x_ptr, y_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.load(x_ptr + i + 1))


if __name__ == "__main__":
    x = torch.randn(20000, device="cuda").to(torch.bfloat16)
    a, b = torch.zeros_like(x), torch.zeros_like(x)
    both[(triton.cdiv(20000, 64),)](x, a, b, 20000, 1.5, BLOCK=64)
    z = torch.randn(64, device="cuda")
    beyond[(1,)](z, torch.empty_like(z), BLOCK=64)
"""


@pytest.fixture(scope="module")
def taken() -> Capture:
    targets = [load_target(a) for a in ("gfx942", "gfx950")]
    kernel = parse_kernel(SOURCE.encode(), "k.py")
    return capture(kernel, targets[0], also=targets[1:], executor="interpreter", limits=Limits(wall_s=120))


def code_of(taken: Capture, launch: Launch, arch: str) -> Compiled:
    compiled = compiled_for(taken.stored, launch, arch)
    assert compiled is not None
    return compiled


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
@pytest.mark.parametrize("whole", [1000, 100])
def test_it_agrees_with_what_was_recorded(taken: Capture, arch: str, whole: int) -> None:
    launch = taken.launches[0]
    numbers = sample_grid(launch.grid, whole)
    done = repeat_launch(
        taken.stored, launch, code_of(taken, launch, arch), workgroups=numbers, instruction_budget=10**7
    )
    assert done.result.completed and not done.mismatches
    assert done.sampled == (whole == 100)
    # the tail of the last workgroup is masked off, 32 of its 64 elements; a few results are the zeros they replace
    most = 3 * 20000 if whole == 1000 else 2 * (64 * len(numbers) - 32)
    assert most - 30 < done.compared <= most


def test_a_wrong_result_is_seen_in_a_sample_too(taken: Capture) -> None:
    launch = taken.launches[0]
    factor = launch.argument("factor")
    changed = replace(factor, value=replace(factor.value, value=1.75))
    other = replace(launch, args=tuple(changed if a.name == "factor" else a for a in launch.args))
    done = repeat_launch(
        taken.stored,
        other,
        code_of(taken, launch, "gfx942"),
        workgroups=sample_grid(launch.grid, 16),
        instruction_budget=10**7,
    )
    assert {m.place for m in done.wrong} == {"a_ptr", "b_ptr"}


def test_beyond_a_tensor_is_a_trap_unless_memory_follows_it(taken: Capture) -> None:
    launch = taken.launches[1]
    compiled = code_of(taken, launch, "gfx950")
    strict = repeat_launch(taken.stored, launch, compiled, workgroups=[0], instruction_budget=10**6)
    assert strict.result.status == "trapped" and "0 past its end" in strict.result.reason
    loose = repeat_launch(
        taken.stored, launch, compiled, workgroups=[0], instruction_budget=10**6, slack_bytes=4096
    )  # fmt: skip
    assert loose.result.completed
    rest = repeat_launch(
        taken.stored, launch, compiled, workgroups=[0], instruction_budget=10**6, block_bytes=512
    )  # fmt: skip
    assert rest.result.completed, "256 bytes of tensor in a block of 512"


def test_samples_hold_the_first_the_last_and_the_tail_of_each_axis() -> None:
    grid = (40, 30, 20)
    numbers = sample_grid(grid, 256)
    assert len(numbers) == MIN_SAMPLE + 5 and numbers == sorted(set(numbers))
    assert {0, 39, 40 * 29, 40 * 30 * 19, 40 * 30 * 20 - 1} <= set(numbers)
    assert sample_grid(grid, 256) == numbers != sample_grid(grid, 256, seed=1)
    assert sample_grid((3, 2, 1), 256) == [0, 1, 2, 3, 4, 5]


def test_launches_are_told_apart_by_grid_constants_and_shapes(taken: Capture) -> None:
    first, second = taken.launches
    assert launch_key(first) != launch_key(second)
    assert launch_key(first) != launch_key(replace(first, grid=(1, 1, 1)))
    assert launch_key(first) == launch_key(replace(first, index=7))


def test_the_narrowest_type_a_kernel_rounds_to() -> None:
    assert narrowest_roundoff("%1 = arith.addf %0, %0 : tensor<64xf32>") == 0.0
    assert narrowest_roundoff("%1 = arith.truncf %0 : tensor<64xf32> to tensor<64xf16>") == 2.0**-11
    assert narrowest_roundoff("%1 = arith.truncf %0 : f32 to bf16") == 2.0**-8
    assert narrowest_roundoff("tt.dot %a, %b, %c, inputPrecision = tf32 :") == 2.0**-11


ROWS = """
import torch
import triton
import triton.language as tl


@triton.jit
def row_sums(x_ptr, y_ptr, out_ptr, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.arange(0, ROWS)[:, None]
    i = row * BLOCK + tl.arange(0, BLOCK)[None, :]
    total = tl.sum(tl.load(x_ptr + i) * tl.load(y_ptr + i), 1, keep_dims=True)
    tl.store(out_ptr + row, total)


if __name__ == "__main__":
    x, y = (torch.randn(32, 8, device="cuda", generator=torch.Generator("cuda").manual_seed(s)) for s in (0, 1))
    row_sums[(1,)](x, y, torch.zeros(32, device="cuda"), ROWS=32, BLOCK=8)
"""


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
def test_copies_of_a_sum_that_were_fused_differently_are_no_race(arch: str) -> None:
    """Lanes that exchange products fuse one product each with their addition: the copies differ in their last bit."""
    taken = capture(parse_kernel(ROWS.encode(), "k.py"), load_target(arch), executor="emulator")
    launch = taken.launches[0]
    assert launch.execution.status == "executed" and launch.execution.findings == ()
    compiled = code_of(taken, launch, arch)
    assert compiled.copied_lanes and "ds_write" in compiled.asm and "v_fma" in compiled.asm
    assert repeat_launch(taken.stored, launch, compiled, workgroups=[0], instruction_budget=10**6).result.clean
    strict = replace(compiled, ttgir=compiled.ttgir + ASSEMBLY)
    again = repeat_launch(taken.stored, launch, strict, workgroups=[0], instruction_budget=10**6)
    assert {f.kind for f in again.result.findings} == {"lds_race"}, "assembly may store anything anywhere"


ASSEMBLY = """
    %w = tt.elementwise_inline_asm "v_mov_b32 $0, $1\\0A ds_write_b32 $1, $0" {constraints = "=v,v"} %v
"""
