"""Which counts speak for a candidate that nobody named a gain of, and which trades are none."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sandbox.capture import capture
from sandbox.evaluate import EvaluateOptions, Evaluator
from sandbox.gain import Improvement
from sandbox.kernel import Kernel, parse_kernel
from sandbox.profiler.metrics import Metric, Profile
from sandbox.target import load_target
from sandbox.unnamed import Side, unnamed_improvement
from sandbox.verdict import Accepted, NoGain, Speed

TARGET = load_target("gfx950")

COUNTS = {
    "SQ_WAVES": 100, "SQ_INSTS": 10_000, "SQ_INSTS_VALU": 6_000, "SQ_INSTS_VMEM": 400, "SQ_INSTS_LDS": 200,
    "lane_atomics": 6_400, "vector_memory_bytes": 102_400,
}  # fmt: skip
FEWER = {"SQ_INSTS": 8_000, "SQ_INSTS_VALU": 4_500}
CODE = {"vgpr_spill_count": 0, "scratch_bytes": 0, "occupancy_waves_per_simd": 8}


def side(counts: dict[str, int] | None = None, **code: int) -> Side:
    metrics = {name: Metric(name, value) for name, value in {**CODE, **code}.items()}
    return Side({**COUNTS, **(counts or {})}, {"k": Profile("k", "gfx950", metrics)})


def compared(after: Side) -> Improvement:
    return unnamed_improvement(side(), after, TARGET)


def test_a_tenth_fewer_instructions_speak_for_themselves() -> None:
    gain = compared(side(FEWER)).gain
    assert gain is not None and gain.level is Speed.COUNTED
    assert gain.metrics == {"instructions": (10_000, 8_000), "alu_cycles": (24_000, 18_000)}
    assert gain.statement.startswith("executed instructions 1.25x fewer")
    nearly = {"SQ_INSTS": 9_000, "SQ_INSTS_VALU": 5_400}
    assert compared(side(nearly)).gain is None
    assert compared(side()).reason.startswith("no resource and no count")
    fewer_waves = {"SQ_WAVES": 50, "SQ_INSTS": 5_000, "SQ_INSTS_VALU": 3_000}
    assert compared(side(fewer_waves)).gain is not None


@pytest.mark.parametrize(
    ("traded", "said"),
    [
        ({"vector_memory_bytes": 102_656}, "vector memory bytes 102400 -> 102656"),
        ({"SQ_INSTS_VMEM": 500}, "vector memory instructions 400 -> 500"),
        ({"SQ_INSTS_LDS": 201}, "lds instructions 200 -> 201"),
        ({"lane_atomics": 6_401}, "lane atomics 6400 -> 6401"),
        ({"SQ_INSTS_VALU": 6_001}, "weighted by their issue rates, 24000 -> 24004"),
        ({"SQ_WAVES": 10}, "a wave executes 800 instructions on average, not 100"),
    ],
)
def test_fewer_instructions_that_something_else_pays_for_are_no_gain(traded: dict[str, int], said: str) -> None:
    found = compared(side(FEWER | traded))
    assert found.gain is None and said in found.reason and found.reason.endswith("; not timed"), found.reason


def test_code_and_host_may_not_get_worse_either() -> None:
    assert "VGPR spills 0 -> 4 is worse" in compared(side(FEWER, vgpr_spill_count=4)).reason
    assert "occupancy (waves per SIMD) 8 -> 4 is worse" in compared(side(FEWER, occupancy_waves_per_simd=4)).reason
    assert "launches 1 -> 2" in compared(replace(side(FEWER), launches=2)).reason
    assert "the host calls torch's to more often" in compared(replace(side(FEWER), host={"to": 1})).reason


def test_lane_atomics_speak_where_they_shrink_by_more_than_the_rest_grows() -> None:
    aggregated = {"lane_atomics": 400, "SQ_INSTS": 12_000, "SQ_INSTS_VALU": 8_000}
    gain = compared(side(aggregated)).gain
    assert gain is not None and gain.statement == "executed lane atomics 16x fewer, executed instructions 1.20x more"
    gone = compared(side({"lane_atomics": 0})).gain
    assert gone is not None and gone.statement == "executed lane atomics 6400 -> 0"
    for traded, said in (
        ({"lane_atomics": 5_700, "SQ_INSTS": 10_300}, "instructions 10000 -> 10300"),
        ({"lane_atomics": 400, "SQ_WAVES": 5}, "a wave executes 2000 instructions on average, not 100"),
        ({"lane_atomics": 400, "vector_memory_bytes": 204_800}, "vector memory bytes 102400 -> 204800"),
        ({"lane_atomics": 5_761}, "no count"),
    ):
        found = compared(side(traded))
        assert found.gain is None and said in found.reason, found.reason
    assert "host" in compared(replace(side(aggregated), host={"argsort": 1})).reason


FILE = """
import torch
import triton
import triton.language as tl


@triton.jit
def square(x):
    return x * x + x * 0.5 - x * x * x * 0.125 + x * x * x * x * 0.0625


@triton.jit
def first(x_ptr, h_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(h_ptr + at, square(square(tl.load(x_ptr + at, mask=at < n))), mask=at < n)


@triton.jit
def second(x_ptr, h_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    h = square(square(x))
    tl.store(y_ptr + at, tl.sin(x) + h, mask=at < n)


def run(x):
    h, y = torch.empty_like(x), torch.empty_like(x)
    n = x.numel()
    first[(triton.cdiv(n, 64),)](x, h, n, BLOCK=64)
    second[(triton.cdiv(n, 64),)](x, h, y, n, BLOCK=64)
    return h, y


if __name__ == "__main__":
    torch.manual_seed(0)
    run(torch.randn(1000, device="cuda"))
"""
LOOPED = """    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        tl.store(h_ptr + at, square(square(tl.load(x_ptr + at, mask=at < n))), mask=at < n)"""


def kernel(*edits: tuple[str, str]) -> Kernel:
    source = FILE
    for old, new in edits:
        assert old in source
        source = source.replace(old, new)
    return parse_kernel(source.encode(), "k.py")


@pytest.fixture(scope="module")
def evaluator() -> Evaluator:
    recorded = capture(kernel(), TARGET, executor="interpreter")
    return Evaluator(kernel(), recorded.stored, TARGET, EvaluateOptions(executor="interpreter", seed=5))


def test_warps_without_work_are_a_gain_that_nobody_has_to_name(evaluator: Evaluator) -> None:
    found = evaluator.evaluate(kernel(("BLOCK=64)", "BLOCK=64, num_warps=1)")))
    assert isinstance(found.verdict, Accepted), found.statements
    assert found.verdict.speed is Speed.COUNTED and found.verdict.correctness.validated
    assert found.verdict.gain is not None
    before, after = found.verdict.gain.metrics["instructions"]
    assert before >= 4 * after > 0


@pytest.mark.parametrize(
    ("edits", "said"),
    [
        ([("x * 0.5 - x", "0.5 * x - x")], "no resource and no count"),
        ([("    h = square(square(x))\n", "    h = tl.load(h_ptr + at, mask=at < n)\n")], "vector memory bytes"),
        (
            [
                ("first[(triton.cdiv(n, 64),)](x, h, n, BLOCK=64)", "first[(1,)](x, h, n, BLOCK=64, num_warps=1)"),
                (FILE[FILE.index("    at = ") : FILE.index("\n\n\n@triton.jit\ndef second")], LOOPED),
            ],
            "a wave executes",
        ),
    ],
    ids=["rewrite", "read-instead-of-computed", "one-program"],
)
def test_what_is_no_gain(evaluator: Evaluator, edits: list[tuple[str, str]], said: str) -> None:
    found = evaluator.evaluate(kernel(*edits))
    assert isinstance(found.verdict, NoGain) and found.verdict.correctness.validated, found.verdict
    assert said in found.verdict.reason
