"""Rare instructions and modifiers on both cores, from sparse matrix products to indexed registers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
from compile_corpus import build, find_clang
from corpus.case import Case, HipSource

from sandbox.emulator import EmulationResult, Memory, fast, reference
from sandbox.emulator.launch import prepare
from sandbox.emulator.loader import load_code_object

pytestmark = pytest.mark.skipif(find_clang() is None, reason="no clang with the amdgcn back end")
CORES = ["fast", "reference"]
ARCHS = ["gfx942", "gfx950"]


def run(name: str, arch: str, core: str, *values: np.ndarray | int) -> EmulationResult:
    if core == "fast" and not fast.available():
        pytest.skip("no C compiler")
    source = HipSource(Path(__file__).parent / "corpus" / "rare.hip", name, (64, 1, 1))
    code = load_code_object(build(Case("", source, (1, 1, 1), lambda _: {}, lambda a, b: None), arch).code)
    memory = Memory()
    arguments = [v if isinstance(v, int) else memory.allocate(str(n), v) for n, v in enumerate(values)]
    launch = prepare(code, name, (1,), (64,), arguments, memory)
    return (fast.run if core == "fast" else reference.run)(launch, [0])


@dataclass(frozen=True)
class Layout:
    """Where the values of a sparse product lie, in bits of k from high to low.

    `a_lane`, `b_lane`: the lane group that holds a value. `a_pair`: which pair of kept values of the lane the four
    places belong to. `b_element`: which value of the lane. As found with single-hot operands on an MI350 (the comments
    of ROCm's FPSan), so these are not the words the emulator's own layout is written in.
    """

    m: int
    k: int
    a_lane: tuple[int, ...]
    a_pair: tuple[int, ...]
    b_lane: tuple[int, ...]
    b_element: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.m}x{self.m}x{self.k}"


LAYOUTS = (
    Layout(16, 32, (4, 3), (2,), (4, 3), (2, 1, 0)),
    Layout(32, 16, (3,), (2,), (3,), (2, 1, 0)),
    Layout(16, 64, (4, 3), (5, 2), (4, 3), (5, 2, 1, 0)),
    Layout(32, 32, (3,), (4, 2), (3,), (4, 2, 1, 0)),
)
DEEP = (
    Layout(16, 64, (5, 4), (3, 2), (4, 3), (5, 2, 1, 0)),
    Layout(32, 32, (4,), (3, 2), (3,), (4, 2, 1, 0)),
    Layout(16, 128, (6, 4), (3, 5, 2), (4, 3), (6, 5, 2, 1, 0)),
    Layout(32, 64, (5,), (3, 4, 2), (3,), (5, 4, 2, 1, 0)),
)
TYPES = {16: ("f16", "bf16"), 8: ("i8", "bf8_bf8", "bf8_fp8", "fp8_bf8", "fp8_fp8")}
FORMS = [(arch, layout, kind) for arch in ARCHS
         for layouts in ((LAYOUTS,) if arch == "gfx942" else (LAYOUTS, DEEP)) for n, layout in enumerate(layouts)
         for kind in TYPES[16 if n < 2 else 8]]  # fmt: skip


def chosen(number: int, bits: tuple[int, ...]) -> int:
    """The bits of `number` at the places `bits`, the first one highest."""
    return sum((number >> bit & 1) << len(bits) - 1 - n for n, bit in enumerate(bits))


def dtype_of(kind: str, arch: str) -> torch.dtype:
    """The torch type of a matrix element; the small floats of gfx942 have no negative zero."""
    if kind in ("fp8", "bf8") and arch == "gfx942":
        return torch.float8_e4m3fnuz if kind == "fp8" else torch.float8_e5m2fnuz
    return {
        "f16": torch.float16, "bf16": torch.bfloat16, "i8": torch.int8,
        "fp8": torch.float8_e4m3fn, "bf8": torch.float8_e5m2,
    }[kind]  # fmt: skip


def values_of(raw: np.ndarray, kind: str, arch: str) -> np.ndarray:
    """[64][bytes] as numbers [64][values], read by torch."""
    return torch.from_numpy(raw).view(dtype_of(kind, arch)).to(torch.float64).numpy()


def sparse_product(layout: Layout, a: np.ndarray, b: np.ndarray, index: np.ndarray, part: int) -> np.ndarray:
    """[row][column] in doubles, from what each lane holds: a [64][kept], b [64][2 kept], index [64]."""
    out, m = np.zeros((layout.m, layout.m)), layout.m
    for q in range(layout.k // 4):
        pair, lane = chosen(4 * q, layout.a_pair), chosen(4 * q, layout.a_lane)
        for row in range(m):
            holder = lane * m + row
            places = int(index[holder]) >> (part * 2 * a.shape[1] + 4 * pair)
            for s in range(2):
                k = 4 * q + (places >> 2 * s & 3)
                column = b[chosen(k, layout.b_lane) * m : (chosen(k, layout.b_lane) + 1) * m]
                out[row] += a[holder, 2 * pair + s] * column[:, chosen(k, layout.b_element)]
    return out


def result_of(product: np.ndarray) -> np.ndarray:
    """[lane][register]: runs of four rows go round the lane groups; a lane's column is its number modulo M."""
    m = len(product)
    lane, register = np.arange(64)[:, None], np.arange(m * m // 64)
    rows = register % 4 + 4 * (lane // m) + (256 // m) * (register // 4)
    return product[rows, lane % m] + register + 1


def indices(rng: np.random.Generator) -> np.ndarray:
    """Two different places of each four, for every pair of 2-bit fields."""
    pairs = [a | b << 2 for a in range(4) for b in range(a + 1, 4)]
    draws = rng.choice(pairs, (64, 8)).astype(np.uint64)
    return (draws << np.arange(0, 32, 4, dtype=np.uint64)).sum(axis=1).astype(np.uint32)


def operand(rng: np.random.Generator, kind: str, count: int, arch: str) -> np.ndarray:
    """[64][bytes] of small whole numbers, which every type holds and every sum of their products too."""
    numbers = torch.from_numpy(rng.integers(-4, 5, (64, count))).to(torch.float32)
    return numbers.to(dtype_of(kind, arch)).view(torch.uint8).numpy()


@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize(("arch", "layout", "kind"), FORMS, ids=str)
def test_sparse_products(arch: str, layout: Layout, kind: str, core: str) -> None:
    rng = np.random.default_rng(layout.k)
    kinds, kept = (kind.split("_")[0], kind.split("_")[-1]), layout.k * layout.m // 128
    a, b = operand(rng, kinds[0], kept, arch), operand(rng, kinds[1], 2 * kept, arch)
    index, result = indices(rng), "i32" if kind == "i8" else "f32"
    out = np.zeros((64, layout.m * layout.m // 64), np.int32 if kind == "i8" else np.float32)
    name = f"smfmac_{result}_{layout.m}x{layout.m}x{layout.k}_{kind}"
    assert run(name, arch, core, a, b, index, out).clean
    part = int(2 * kept < 32)  # the kernels ask for the second part of the index register where it has one
    product = sparse_product(layout, values_of(a, kinds[0], arch), values_of(b, kinds[1], arch), index, part)
    assert np.array_equal(out, result_of(product))


@pytest.mark.parametrize("core", CORES)
def test_lds_counters(core: str) -> None:
    keep = (np.arange(64) % 3 == 0).astype(np.int32)
    slot, left = np.zeros(64, np.int32), np.full(64, -1, np.int32)
    assert run("append_consume", "gfx950", core, keep, slot, left).clean
    assert np.array_equal(slot, np.where(keep, 100, -1)), "every lane gets the value before"
    assert np.array_equal(left, np.where((keep == 1) & (np.arange(64) % 2 == 1), 100 + keep.sum(), -1))


@pytest.mark.parametrize("core", CORES)
def test_a_message_to_the_host_changes_nothing(core: str) -> None:
    out = np.zeros(64, np.int32)
    result = run("message", "gfx942", core, out)
    assert result.clean and np.array_equal(out, np.arange(64))
    assert result.counters["SQ_INSTS_SENDMSG"] == 2, "the message and the end"


@pytest.mark.parametrize("core", CORES)
def test_registers_through_the_index_register(core: str) -> None:
    out = np.zeros(128, np.int32)
    assert run("indexed", "gfx942", core, np.array([2], np.int32), out).clean
    assert np.array_equal(out[:64], np.arange(64) * 10 + 2)
    assert np.array_equal(out[64:], np.arange(64))


PATTERNS = {
    0: [*range(64)],
    1: [*range(32), *range(32)],
    2: [*range(32, 64), *range(32, 64)],
    3: [*range(16, 64), *range(16)],
    4: [*range(16)] * 4,
    5: [*range(16, 32)] * 4,
    6: [*range(32, 48)] * 4,
    7: [*range(48, 64)] * 4,
}
"""blgp to the lane whose B each lane uses, from the words of AMD's matrix instruction calculator."""


@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize(
    ("shape", "results"), [("32x32x1f32", 32), ("16x16x1f32", 16), ("4x4x1f32", 4), ("16x16x4f32", 4)]
)
def test_lanes_of_b_are_permuted(shape: str, results: int, core: str) -> None:
    rng = np.random.default_rng(results)
    a, b = (rng.integers(-9, 10, 64).astype(np.float32) for _ in range(2))
    for pattern, lanes in PATTERNS.items():
        out, expected = np.zeros((2, 64, results), np.float32)
        assert run(f"mfma_{shape}_{pattern}", "gfx942", core, a, b, out).clean
        assert run(f"mfma_{shape}_0", "gfx942", core, a, b[lanes], expected).clean
        assert np.array_equal(out, expected), pattern


@pytest.mark.parametrize("core", CORES)
def test_matrices_of_doubles_are_negated(core: str) -> None:
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-9, 10, (4, 16)).astype(np.float64) for _ in range(2))  # [k][row], [k][column]
    out = np.zeros((4, 64, 4))
    assert run("mfma_doubles", "gfx950", core, a, b, out).clean
    lane, register = np.arange(64)[:, None], np.arange(4)
    product, c = (a.T @ b)[lane // 16 + 4 * register, lane % 16], 1.0 + register
    for got, expected in zip(out, (product + c, -product + c, -product - c, product - c), strict=True):
        assert np.array_equal(got, expected)


@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize("arch", ARCHS)
def test_dot_products_with_signs_selections_and_clamp(arch: str, core: str) -> None:
    rng = np.random.default_rng(2)
    x, y = (rng.integers(-8, 9, (64, 2)).astype(np.float16) / 8 for _ in range(2))
    c, out = rng.integers(-8, 9, 64).astype(np.float32) / 8, np.zeros((2, 64), np.float32)
    assert run("dots", arch, core, x, y, c, out).clean
    assert np.array_equal(out[0], np.clip(-(x * y).sum(axis=1) - c, 0, 1))
    assert np.array_equal(out[1], x[:, 1] * y[:, 0] + x[:, 0] * y[:, 0] + c)


@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize("arch", ARCHS)
def test_a_float_constant_of_packed_integers(arch: str, core: str) -> None:
    x, out = np.arange(128, dtype=np.int16).reshape(64, 2), np.zeros((64, 2), np.int16)
    assert run("packed_constant", arch, core, x, out).clean
    assert np.array_equal(out, x + np.array([0, 0x3F80], np.int16)), "v_pk_add_u16 v0, v0, 1.0"


@pytest.mark.parametrize("core", CORES)
def test_rows_exchanged_without_inactive_lanes(core: str) -> None:
    x, y, out = np.arange(64, dtype=np.uint32), np.arange(100, 164, dtype=np.uint32), np.zeros((64, 2), np.uint32)
    assert run("swapped_rows", "gfx950", core, x, y, 64, out).clean
    rows = (np.arange(64) // 16 % 2).astype(bool)
    assert np.array_equal(out[:, 0], np.where(rows, np.roll(y, 16), x))
    assert np.array_equal(out[:, 1], np.where(rows, y, np.roll(x, -16)))
    part = run("swapped_rows", "gfx950", core, x, y, 40, out)
    assert part.status == "unsupported" and "v_permlane16_swap_b32" in part.reason


@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize("arch", ARCHS)
def test_scalar_registers_through_m0(arch: str, core: str) -> None:
    out = np.zeros(4, np.int64)
    assert run("relative", arch, core, 2, out).clean
    assert out.tolist() == [9, 9 | 10 << 32, 70, 71]
    beyond = run("relative", arch, core, 70, out)
    assert beyond.status == "unsupported" and "s_movrels_b32" in beyond.reason


@pytest.mark.parametrize("core", CORES)
def test_a_barrier_of_the_whole_grid_is_named(core: str) -> None:
    result = run("grid_barrier", "gfx942", core, np.zeros(64, np.int32))
    assert result.status == "unsupported" and "ds_gws_barrier" in result.reason
