"""Tensors walked in blocks: every element once, and the same verdict however they are cut."""

from __future__ import annotations

import numpy as np
import pytest

from sandbox import blocks
from sandbox.blocks import Numbers, Rows, each, same_bytes
from sandbox.correctness import TensorValue, Yardsticks, compare, informative, noise_between
from sandbox.float_errors import Squares

SHAPES = [(), (1,), (15,), (16,), (1000,), (3, 5), (7, 16), (40, 3, 9), (2, 700), (1, 1, 40)]


def tensor(values: np.ndarray) -> TensorValue:
    return TensorValue(str(values.dtype), values.shape, tuple(s // values.itemsize for s in values.strides), values)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("size", [1, 7, 64, 1 << 15])
def test_blocks_hold_every_element_once_and_whole_rows_or_parts_of_one(
    shape: tuple[int, ...], size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "BLOCK_ELEMENTS", size)
    rows = Rows.of(shape)
    elements = np.arange(rows.count * rows.width)
    assert elements.size == np.prod(shape, dtype=int)
    walked = rows.blocks()
    assert np.concatenate([elements[b.span] for b in walked]).tolist() == elements.tolist()
    for block in walked:
        assert (elements[block.span] // rows.width).tolist() == np.repeat(
            np.arange(block.rows.start, block.rows.stop), block.by_row(elements[block.span]).shape[1]
        ).tolist()
        assert block.span.stop - block.span.start <= max(size, rows.width)


def test_rows_of_an_empty_tensor_have_no_blocks() -> None:
    assert Rows.of((4, 0)).blocks() == Rows.of((0,)).blocks() == []


def test_work_on_many_blocks_comes_back_in_order() -> None:
    walked = Rows(100, 1 << 15).blocks()
    assert len(walked) == 100
    assert each(walked, lambda block: block.rows.start) == list(range(100))


@pytest.mark.parametrize("seed", range(60))
def test_the_verdict_is_the_same_however_the_elements_are_cut(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(seed)
    shape = SHAPES[seed % len(SHAPES)]
    oracle = np.asarray(rng.standard_normal(shape) * 10.0 ** rng.integers(-3, 4))
    base = (oracle * (1 + 1e-7 * rng.standard_normal(shape))).astype(np.float32)
    got = np.array(base * (1 + 10.0 ** rng.integers(-8, -2) * rng.standard_normal(shape)), dtype=np.float32)
    for values in (base, got, got):
        if rng.random() < 0.3:
            values.flat[rng.integers(values.size)] = rng.choice([np.nan, np.inf, -np.inf, 0.0, 50.0])
    yardsticks = Yardsticks(noise={"x": 1e-6} if seed % 3 == 0 else {})
    found = []
    for size in (1 << 15, 64, 5):
        monkeypatch.setattr(blocks, "BLOCK_ELEMENTS", size)
        one, other = {"x": tensor(got)}, {"x": tensor(base)}
        agreement = compare(one, other, {"x": tensor(oracle)}, yardsticks)
        errors = (agreement.candidate_error, agreement.baseline_error)
        found.append(([m.message for m in agreement.mismatches], errors, noise_between(one, other), informative(one)))
    assert found[1][0] == found[0][0] and found[2][0] == found[0][0]
    assert found[1][1:] == found[2][1:] == found[0][1:]


def test_squares_neither_overflow_nor_vanish() -> None:
    for size in (1e-200, 1e-3, 1.0, 1e200):
        numbers = np.array([3.0, -4.0, 0.0, 12.0]) * size
        parts = [Squares.of(numbers[:2]), Squares.of(numbers[2:3]), Squares.of(numbers[3:])]
        assert Squares.together(parts).root_of_mean(4) == pytest.approx(6.5 * size, rel=1e-14)
    assert Squares.together([]).root_of_mean(4) == 0.0
    assert Squares.together([Squares.of(np.array([1.0, np.inf]))]).root_of_mean(2) == np.inf


def test_bytes_are_the_same_only_if_all_are() -> None:
    a = np.arange(1 << 19, dtype=np.float32)
    assert same_bytes(a, a.copy()) and same_bytes(a.reshape(512, -1).T, a.reshape(512, -1).T.copy())
    b = a.copy()
    b[-1] = -b[-1]
    assert not same_bytes(a, b)
    assert not same_bytes(np.array([0.0]), np.array([-0.0]))
    assert same_bytes(np.array([np.nan]), np.array([np.nan]))


def test_a_complex_element_is_two_numbers() -> None:
    numbers = Numbers.of("complex64", np.array([1 + 2j, 3 - 4j], dtype=np.complex64))
    assert numbers.dtype == "float32" and numbers[slice(1, 4)].tolist() == [2.0, 3.0, -4.0]
