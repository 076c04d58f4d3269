"""Comparison of results: what has to match exactly, what may differ, and by how much."""

from __future__ import annotations

import numpy as np
import pytest

from sandbox.correctness import (
    TensorValue,
    Yardsticks,
    bitwise_equal,
    compare,
    informative,
    noise_between,
    typical_scales,
)
from sandbox.number_formats import decode
from sandbox.oracle import unwritten
from sandbox.trials import POISON_BYTE


def tensor(values: np.ndarray, dtype: str | None = None, stride: tuple[int, ...] | None = None) -> TensorValue:
    values = np.asarray(values)
    contiguous = tuple(s // values.itemsize for s in np.ascontiguousarray(values).strides)
    return TensorValue(dtype or str(values.dtype), values.shape, stride or contiguous, values)


def to_bfloat16(x: np.ndarray) -> np.ndarray:
    bits = np.asarray(x, dtype=np.float32).view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def checks(candidate, baseline, oracle=None, scales=None, noise=None) -> list[str]:
    def named(v):
        return v if isinstance(v, dict) else {"output[0]": v}

    yardsticks = Yardsticks(scales or {}, noise or {})
    found = compare(named(candidate), named(baseline), None if oracle is None else named(oracle), yardsticks)
    return [m.check for m in found.mismatches]


def draw(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape)


@pytest.mark.parametrize("missing", [{}, {"output[0]": tensor(np.ones(3))}])
def test_a_dropped_result_is_not_a_match(missing):
    both = {"output[0]": tensor(np.ones(3)), "output[1]": tensor(np.ones(3))}
    assert checks(missing, both) == ["output-count"]
    assert checks(both, missing) == ["output-count"]


def test_shape_dtype_and_stride_come_before_values():
    x = tensor(np.zeros((4, 6), np.float32))
    assert checks(tensor(np.zeros((6, 4), np.float32)), x) == ["output-shape"]
    assert checks(tensor(np.zeros((4, 6), np.float16)), x) == ["output-dtype"]
    assert checks(tensor(np.zeros((4, 6), np.float32), stride=(1, 4)), x) == ["output-stride"]
    one_row = tensor(np.zeros((1, 6), np.float32))
    assert checks(tensor(np.zeros((1, 6), np.float32), stride=(99, 1)), one_row) == []


def test_nan_and_infinity_are_no_wildcards():
    clean = np.ones(8, np.float32)
    with_nan, with_inf = clean.copy(), clean.copy()
    with_nan[3], with_inf[3] = np.nan, np.inf
    assert checks(tensor(with_nan), tensor(clean)) == ["nan-pattern"]
    assert checks(tensor(clean), tensor(with_nan)) == ["nan-pattern"]
    assert checks(tensor(clean), tensor(with_inf)) == ["inf-pattern"]
    assert checks(tensor(-with_inf), tensor(with_inf)) == ["inf-pattern"]
    assert checks(tensor(with_nan), tensor(with_nan.copy())) == []


def test_a_candidate_that_repairs_the_baseline_against_the_oracle_passes():
    truth = draw(64).astype(np.float64)
    broken = truth.astype(np.float32)
    broken[5] = np.nan
    assert checks(tensor(truth.astype(np.float32)), tensor(broken), tensor(truth)) == []
    overflow = np.array([1e6, 1.0, 2.0])
    half = tensor(np.array([np.inf, 1.0, 2.0], np.float16))
    assert checks(half, half, tensor(overflow)) == []


def test_another_summation_order_passes_and_fewer_bits_do_not():
    a, b = draw(32, 512, seed=1), draw(512, 32, seed=2)
    a32, b32 = a.astype(np.float32), b.astype(np.float32)
    truth = a32.astype(np.float64) @ b32.astype(np.float64)
    baseline = a32 @ b32
    reordered = sum(a32[:, i : i + 16] @ b32[i : i + 16] for i in range(0, 512, 16))
    halved = (a32.astype(np.float16).astype(np.float32)) @ (b32.astype(np.float16).astype(np.float32))
    assert checks(tensor(reordered), tensor(baseline), tensor(truth)) == []
    assert checks(tensor(halved), tensor(baseline), tensor(truth)) == ["tolerance"]
    assert checks(tensor(halved), tensor(baseline)) == ["tolerance"]


def test_half_accumulation_is_seen_in_half_results():
    a, b = draw(64, 1024, seed=3).astype(np.float16), draw(1024, 64, seed=4).astype(np.float16)
    truth = a.astype(np.float64) @ b.astype(np.float64)
    baseline = (a.astype(np.float32) @ b.astype(np.float32)).astype(np.float16)
    low = np.zeros((64, 64), np.float16)
    for i in range(0, 1024, 16):
        low = (low + (a[:, i : i + 16].astype(np.float32) @ b[i : i + 16].astype(np.float32))).astype(np.float16)
    found = checks(tensor(low), tensor(baseline), tensor(truth))
    assert found in (["precision"], ["tolerance"])
    assert checks(tensor(baseline), tensor(baseline), tensor(truth)) == []


def test_bfloat16_result_rounded_the_other_way_passes():
    x = draw(128, 64)
    rounded = to_bfloat16(x)
    other = to_bfloat16(x.astype(np.float32) * np.float32(1 + 2**-12))
    assert checks(tensor(other, "bfloat16"), tensor(rounded, "bfloat16"), tensor(x)) == []
    far = to_bfloat16(x * (1 + 2**-5))
    assert checks(tensor(far, "bfloat16"), tensor(rounded, "bfloat16"), tensor(x)) == ["tolerance"]


def test_small_elements_beside_large_ones_may_not_be_dropped():
    x = np.exp(draw(256) * 6).astype(np.float32)
    dropped = np.where(x < x.max() * 1e-6, 0, x).astype(np.float32)
    assert (dropped != x).any()
    assert checks(tensor(dropped), tensor(x), tensor(x.astype(np.float64))) == ["tolerance"]


def test_a_cancelled_sum_is_judged_by_its_usual_size():
    baseline, candidate = {"output[0]": tensor(np.array([0.5], np.float32))}, tensor(np.array([0.5001], np.float32))
    usual = typical_scales([{"output[0]": tensor(np.array([80.0], np.float32))}, baseline])
    assert checks(candidate, baseline) == ["tolerance"]
    assert checks(candidate, baseline, None, usual) == []


def test_a_very_bad_baseline_excuses_nothing():
    truth = draw(16, 64)
    bad = (truth * 3).astype(np.float32)
    assert checks(tensor((truth * 2).astype(np.float32)), tensor(bad), tensor(truth)) == ["tolerance"]
    assert checks(tensor(bad), tensor(bad), tensor(truth)) == []


def test_integers_and_booleans_are_exact():
    x = np.arange(10)
    y = x.copy()
    y[7] += 1
    assert checks(tensor(y), tensor(x)) == ["exact"]
    assert checks(tensor(x > 3), tensor(x > 4)) == ["exact"]


def test_scalars_and_tensors_are_not_interchangeable():
    assert checks({"a": 1}, {"a": 1.0}) == ["output-dtype"]
    assert checks({"a": 1.0}, {"a": tensor(np.ones(()))}) == ["output-dtype"]
    assert checks({"a": 2}, {"a": 1}) == ["tolerance"]
    assert checks({"a": None}, {"a": None}) == []


def test_zero_results_need_zeros():
    zero = tensor(np.zeros(32, np.float32))
    assert checks(zero, zero, zero) == []
    assert checks(tensor(np.full(32, 1e-6, np.float32)), zero, zero) == ["tolerance"]


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "bfloat16"])
def test_decode_agrees_with_torch(dtype):
    torch = pytest.importorskip("torch")
    codes = np.arange(65536, dtype=np.uint16) if dtype == "bfloat16" else np.arange(256, dtype=np.uint8)
    theirs = torch.from_numpy(codes).view(getattr(torch, dtype)).to(torch.float64).numpy()
    np.testing.assert_array_equal(decode(dtype, codes), theirs)


def test_same_bits():
    x = {"a": tensor(np.array([1.0, np.nan])), "b": float("nan")}
    assert bitwise_equal(x, {"a": tensor(np.array([1.0, np.nan])), "b": float("nan")})
    assert not bitwise_equal(x, {"a": tensor(np.array([1.0, 2.0])), "b": float("nan")})


def test_constant_and_unknown_results_say_nothing():
    assert not informative({"a": tensor(np.zeros(9))})
    assert not informative({"a": tensor(np.full(9, np.nan))})
    assert informative({"a": tensor(np.zeros(9)), "b": tensor(np.arange(9.0))})
    assert informative({"a": tensor(np.array([True, False, True]))}) and not informative(
        {"a": tensor(np.ones(9, bool))}
    )


def summed(parts: np.ndarray, order: np.ndarray, dtype: str) -> np.ndarray:
    """Parts (terms, ...) added one after the other in an order, rounded to the type each time, as atomics do."""
    total = np.zeros(parts.shape[1:])
    for i in order:
        total = total + parts[i]
        bits = total.astype(np.float32) if dtype == "float32" else to_bfloat16(total)
        total = decode(dtype, bits)
    return bits


def test_atomics_in_another_order_are_noise_and_fewer_terms_are_not() -> None:
    parts = draw(64, 40, 32, seed=1).astype(np.float32)
    rng = np.random.default_rng(2)
    for dtype in ("float32", "bfloat16"):
        first, again, other = (tensor(summed(parts, rng.permutation(64), dtype), dtype) for _ in range(3))
        wrong = tensor(summed(parts, rng.permutation(64)[1:], dtype), dtype)
        noise = noise_between({"output[0]": first}, {"output[0]": again})
        assert noise["output[0]"] > 0
        assert checks(other, first, noise=noise) == [], dtype
        assert checks(wrong, first, noise=noise) != [], dtype
    # Sums of bfloat16 that are off by their own noise are wrong where nothing of it is known.
    assert checks(other, first) != []


def test_a_cancelled_sum_may_move_by_its_noise_only_where_there_is_some() -> None:
    first, again = np.full((4, 64), 2.0, np.float32), np.full((4, 64), 2.0, np.float32)
    first[1, 38], again[1, 38] = -0.000809669495, -0.000809907913
    noise = noise_between({"output[0]": tensor(first)}, {"output[0]": tensor(again)})
    assert 0 < noise["output[0]"] < 1e-6
    assert checks(tensor(again), tensor(first), noise=noise) == []
    assert checks(tensor(again), tensor(first)) == ["tolerance"]


def test_noise_excuses_nothing_beyond_the_cap() -> None:
    first = draw(64, 64).astype(np.float32)
    again = first + np.float32(0.3) * draw(64, 64, seed=1).astype(np.float32)
    noise = noise_between({"output[0]": tensor(first)}, {"output[0]": tensor(again)})
    assert checks(tensor(again), tensor(first), noise=noise) != []


def test_noise_of_equal_runs_is_zero_and_integers_have_none() -> None:
    values = {"output[0]": tensor(draw(4, 4)), "output[1]": tensor(np.arange(4)), "output[2]": 1.5}
    assert noise_between(values, values) == {"output[0]": 0.0}
    empty = {"output[0]": tensor(np.zeros((0, 4), np.float32))}
    assert noise_between(empty, empty) == {"output[0]": 0.0}


@pytest.mark.parametrize("dtype", ["bool", "uint8", "float16", "int32", "float64", "complex64", "complex128"])
def test_elements_that_nobody_wrote_are_found_in_every_type(dtype):
    data = np.zeros((3, 4), dtype)
    if dtype != "bool":
        data[1, 2:] = np.frombuffer(bytes([POISON_BYTE]) * data.itemsize * 2, dtype)
    found = unwritten(TensorValue(dtype, (3, 4), (4, 1), data))
    assert found.shape == (3, 4)
    assert np.argwhere(found).tolist() == ([] if dtype == "bool" else [[1, 2], [1, 3]])
    assert np.argwhere(unwritten(TensorValue(dtype, (4, 3), (1, 4), data.T))).tolist() == (
        [] if dtype == "bool" else [[2, 1], [3, 1]]
    )
    for poisoned in (False, True):
        scalar = np.frombuffer(bytes([POISON_BYTE * poisoned]) * data.itemsize, dtype)[0]
        one = unwritten(TensorValue(dtype, (), (), np.array(scalar)))
        assert one.shape == () and bool(one) == (poisoned and dtype != "bool"), "a mean loss has no axis"


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32", "complex64", "bfloat16", "float8_e4m3fn"])
@pytest.mark.parametrize("shape", [(1,), (3,), (40,), (5, 64), (0, 4)])
def test_equal_bits_agree_whatever_the_oracle_as_the_long_way_says_too(
    dtype: str, shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(len(shape) + len(dtype))
    for _ in range(20):
        numbers = rng.standard_normal(shape) * 10.0 ** rng.integers(-12, 6)
        special = rng.choice([np.nan, np.inf, -np.inf, 0.0, 1e-45, 65504.0, 1.0], shape)
        numbers = np.where(rng.random(shape) < 0.3, special, numbers)
        with np.errstate(all="ignore"):
            if dtype == "bfloat16":
                bits = to_bfloat16(numbers)
            elif dtype.startswith("float8"):
                bits = rng.integers(0, 256, shape).astype(np.uint8)
            else:
                bits = np.asarray(numbers).astype(dtype)
        same = {"output[0]": tensor(bits, dtype)}
        oracle = {"output[0]": tensor(np.asarray(rng.standard_normal(shape)))}
        with monkeypatch.context() as patched:
            patched.setattr("sandbox.correctness._same_bits", lambda a, b: False)
            with np.errstate(all="ignore"):
                long_way = compare(same, same, oracle)
        assert compare(same, same, oracle).mismatches == long_way.mismatches == ()
