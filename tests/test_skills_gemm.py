"""Matrix products are recognised by their loop, and the analytic model's first tiles become launch numbers."""

import pytest

from sandbox.kernel import Kernel, Language
from sandbox.target import load_target
from skills.facts import Facts, target_facts
from skills.gemm_loop import GemmLoop, first_tiles, gemm_loop, split_tiles
from skills.triton_source import parse_triton

SOURCE = """
import triton
import triton.language as tl


@triton.jit
def mm(a, b, c, M, N, K, sa, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP: tl.constexpr):
    pid = tl.program_id(0)
    row = (pid // tl.cdiv(N, BLOCK_N) * BLOCK_M + tl.arange(0, BLOCK_M)) % M
    col = pid % tl.cdiv(N, BLOCK_N) * BLOCK_N + tl.arange(0, BLOCK_N)
    kk = tl.arange(0, BLOCK_K)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, {steps}):
        x = tl.load(a + row[:, None] * sa + kk[None, :], mask={mask}, other=0.0)
        y = tl.load(b + kk[:, None] * N + col[None, :], mask=col[None, :] < N, other=0.0)
        acc += tl.dot(x, y)
        a += BLOCK_K
        b += BLOCK_K * N
    tl.store(c + row[:, None] * N + col[None, :], acc, mask=col[None, :] < N)
"""
CURRENT = {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 32, "GROUP": 8, "num_warps": 4, "num_stages": 2}


def found(steps: str = "tl.cdiv(K, BLOCK_K)", mask: str = "kk[None, :] < K - k * BLOCK_K") -> GemmLoop | None:
    source = parse_triton(Kernel(SOURCE.format(steps=steps, mask=mask), "mm.py", Language.TRITON))
    return gemm_loop(source, source.functions["mm"], CURRENT)


def known(target: str, *integers: str, dtype: str = "bfloat16") -> Facts:
    values = target_facts(load_target(target))
    return Facts({**values, "launch.integers": integers, "launch.arg_dtypes": (dtype, "float32")}, {})


@pytest.mark.parametrize("steps", ["tl.cdiv(K, BLOCK_K)", "K, BLOCK_K"])
def test_sizes_and_tile_are_read_from_the_loop(steps: str) -> None:
    loop = found(steps)
    assert loop == GemmLoop(
        "M", "N", "K", "BLOCK_M", "BLOCK_N", "BLOCK_K", frozenset({"BLOCK_M", "BLOCK_N", "BLOCK_K"})
    )


def test_an_axis_without_a_mask_does_not_grow() -> None:
    loop = found(mask="True")
    assert loop is not None and "BLOCK_K" not in loop.masked
    tiles = first_tiles(loop, CURRENT, known("gfx950", "M=4096", "N=4096", "K=4096"), load_target("gfx950"), 6)
    assert len(tiles) == 6
    assert all(t.get("BLOCK_K", 32) in (16, 32) for t in tiles)


@pytest.mark.parametrize("target", ["gfx942", "gfx950", "sm_90"])
def test_first_tiles_fit_and_suit_the_shape(target: str) -> None:
    loop, board = found(), load_target(target)
    assert loop is not None
    large = first_tiles(loop, CURRENT, known(target, "M=8192", "N=8192", "K=4096"), board, 6)
    skinny = first_tiles(loop, CURRENT, known(target, "M=16", "N=8192", "K=4096"), board, 6)
    for values in (*large, *skinny):
        m, n, k = (values.get(name, CURRENT[name]) for name in ("BLOCK_M", "BLOCK_N", "BLOCK_K"))
        assert (m + n) * k * 2 <= board.lds_bytes_per_workgroup
    assert large[0].get("BLOCK_M", 64) >= 128
    assert skinny[0]["BLOCK_M"] <= 32


def test_what_is_not_known_gives_no_tiles() -> None:
    loop, board = found(), load_target("gfx950")
    assert loop is not None
    assert first_tiles(loop, CURRENT, known("gfx950", "M=64", "N=64"), board, 6) == []
    assert found(steps="8") == found(), "K is found by its name"


@pytest.mark.parametrize("target", ["gfx942", "gfx950", "sm_90"])
def test_k_is_divided_where_tiles_do_not_fill_the_device(target: str) -> None:
    loop, board = found(), load_target(target)
    assert loop is not None
    divided = split_tiles(loop, CURRENT, known(target, "M=16", "N=1536", "K=7168"), board, 3)
    assert len(divided) == 3
    for values, parts in divided:
        n, k = (values.get(name, CURRENT[name]) for name in ("BLOCK_N", "BLOCK_K"))
        assert 1 < parts <= 2 * board.board.compute_units // -(-1536 // n)
        assert parts <= 7168 // (4 * k)
    assert split_tiles(loop, CURRENT, known(target, "M=8192", "N=8192", "K=4096"), board, 3) == []
    assert [
        v for v, _ in split_tiles(loop, CURRENT, known(target, "M=64", "N=64", "K=65536"), board, 3, fixed=True)
    ] == [{}], "the launch's own tile"


def test_the_first_tile_of_a_decode_step() -> None:
    """16 x 32 x 256 with three stages is what an expert chose by hand (benchmarks/suite/gemm_skinny/expert.py)."""
    loop = found()
    assert loop is not None
    first = first_tiles(loop, CURRENT, known("gfx950", "M=16", "N=8192", "K=8192"), load_target("gfx950"), 6)[0]
    assert first == {"BLOCK_M": 16, "BLOCK_N": 32, "BLOCK_K": 256, "num_stages": 3}
