"""Rare instructions on both cores: sparse matrix products, LDS counters, messages, indexed registers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from compile_corpus import build, find_clang
from corpus.case import Case, HipSource

from sandbox.emulator import EmulationResult, Memory, fast, reference
from sandbox.emulator.launch import prepare
from sandbox.emulator.loader import load_code_object

pytestmark = pytest.mark.skipif(find_clang() is None, reason="no clang with the amdgcn back end")
CORES = ["fast", "reference"]
ARCHS = ["gfx942", "gfx950"]


def run(name: str, arch: str, core: str, *arrays: np.ndarray) -> EmulationResult:
    if core == "fast" and not fast.available():
        pytest.skip("no C compiler")
    source = HipSource(Path(__file__).parent / "corpus" / "rare.hip", name, (64, 1, 1))
    code = load_code_object(build(Case("", source, (1, 1, 1), lambda _: {}, lambda a, b: None), arch).code)
    memory = Memory()
    arguments = [memory.allocate(str(n), a) for n, a in enumerate(arrays)]
    launch = prepare(code, name, (1,), (64,), arguments, memory)
    return (fast.run if core == "fast" else reference.run)(launch, [0])


def dense(kept: np.ndarray, index: np.ndarray, part: int) -> np.ndarray:
    """[16][k] from the values each lane keeps, [lane][element], and its index register."""
    lanes, count = kept.shape
    out = np.zeros((16, 2 * count * lanes // 16), np.float64)
    for lane in range(lanes):
        for j in range(count):
            place = int(index[lane]) >> (part * 2 * count + 2 * j) & 3
            out[lane % 16, lane // 16 * 2 * count + 4 * (j // 2) + place] += kept[lane, j]
    return out


def result_of(product: np.ndarray, start: np.ndarray) -> np.ndarray:
    """[lane][register]: register r of lane l is row 4 (l / 16) + r, column l % 16."""
    lane = np.arange(64)[:, None]
    return product[4 * (lane // 16) + np.arange(4), lane % 16] + start


def indices(rng: np.random.Generator) -> np.ndarray:
    """Two different places of each four, for every pair of 2-bit fields."""
    pairs = [a | b << 2 for a in range(4) for b in range(a + 1, 4)]
    draws = rng.choice(pairs, (64, 8)).astype(np.uint64)
    return (draws << np.arange(0, 32, 4, dtype=np.uint64)).sum(axis=1).astype(np.uint32)


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("core", CORES)
def test_sparse_halves(core: str, arch: str) -> None:
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal((64, n)).astype(np.float16) for n in (4, 8))
    index, out = indices(rng), np.zeros((64, 4), np.float32)
    assert run("sparse_16x16x32_f16", arch, core, a, b, index, out).clean
    columns = b.astype(np.float64).reshape(4, 16, 8).transpose(1, 0, 2).reshape(16, 32)
    expected = result_of(dense(a.astype(np.float64), index, 1) @ columns.T, np.array([1, 2, 3, 4]))
    np.testing.assert_allclose(out, expected, atol=1e-4, rtol=1e-5)


@pytest.mark.parametrize("core", CORES)
def test_sparse_integers(core: str) -> None:
    rng = np.random.default_rng(2)
    a, b = (rng.integers(-128, 128, (64, n), np.int8) for n in (8, 16))
    index, out = indices(rng), np.zeros((64, 4), np.int32)
    assert run("sparse_16x16x64_i8", "gfx942", core, a, b, index, out).clean
    columns = b.astype(np.float64).reshape(4, 16, 16).transpose(1, 0, 2).reshape(16, 64)
    expected = result_of(dense(a.astype(np.float64), index, 0) @ columns.T, np.zeros(4))
    assert np.array_equal(out, expected)


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
