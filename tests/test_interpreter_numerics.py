"""Number formats of the interpreter against torch's own conversions."""

import numpy as np
import pytest
import torch

from sandbox.interpreter_numerics import (
    as_float32,
    bitcast,
    convert_float,
    from_memory,
    round_bf16,
    round_tf32,
    to_integer,
    to_memory,
)

TORCH = {
    "f8E4M3FN": torch.float8_e4m3fn,
    "f8E5M2": torch.float8_e5m2,
    "f8E4M3FNUZ": torch.float8_e4m3fnuz,
    "f8E5M2FNUZ": torch.float8_e5m2fnuz,
}


def interesting() -> np.ndarray:
    rng = np.random.default_rng(5)
    bits = rng.integers(0, 2**32, 200_000, dtype=np.uint32)
    exact = np.array([0.0, -0.0, 1.0, -1.0, 448.0, 464.0, 57344.0, 240.0, 1e-45, np.inf, -np.inf, np.nan], np.float32)
    return np.concatenate([bits.view(np.float32), rng.standard_normal(50_000).astype(np.float32) * 8, exact])


def test_bf16_rounds_as_torch() -> None:
    values = interesting()
    ours = round_bf16(values)
    theirs = torch.from_numpy(values).to(torch.bfloat16).float().numpy()
    np.testing.assert_array_equal(ours, theirs)


def test_bf16_survives_memory() -> None:
    codes = np.arange(65536, dtype=np.uint16)
    values = from_memory(codes, "bf16")
    kept = ~np.isnan(values)
    np.testing.assert_array_equal(to_memory(values, "bf16")[kept], codes[kept])


@pytest.mark.parametrize("element", TORCH)
def test_fp8_codes_decode_as_torch(element: str) -> None:
    codes = np.arange(256, dtype=np.uint8)
    theirs = torch.from_numpy(codes).view(TORCH[element]).float().numpy()
    np.testing.assert_array_equal(as_float32(codes, element), theirs)


@pytest.mark.parametrize("element", TORCH)
def test_fp8_rounds_to_nearest_even_and_saturates(element: str) -> None:
    values = interesting()
    table = as_float32(np.arange(128, dtype=np.uint8), element)
    largest = table[np.isfinite(table)].max()
    inside = values[np.abs(values) <= largest]
    ours = as_float32(convert_float(inside, "f32", element), element)
    theirs = torch.from_numpy(inside).to(TORCH[element]).float().numpy()
    np.testing.assert_array_equal(ours, theirs)
    beyond = convert_float(np.array([largest * 4, -largest * 4], np.float32), "f32", element)
    np.testing.assert_array_equal(as_float32(beyond, element), [largest, -largest])


def test_tf32_keeps_ten_bits() -> None:
    one = np.float32(1)
    step = np.float32(2.0**-10)
    np.testing.assert_array_equal(round_tf32(np.array([one + step / 2, one + step * 1.5])), [one, one + 2 * step])
    values = interesting()
    finite = values[np.isfinite(values)]
    assert not (round_tf32(finite).view(np.uint32) & 0x1FFF).any()


def test_integers_saturate_and_nan_is_zero() -> None:
    values = np.array([1.9, -1.9, 3e9, -3e9, np.nan, np.inf], np.float32)
    np.testing.assert_array_equal(to_integer(values, "i32"), [1, -1, 2**31 - 1, -(2**31), 0, 2**31 - 1])
    np.testing.assert_array_equal(to_integer(np.array([300.0, -3.0]), "i8", unsigned=True).view(np.uint8), [255, 0])
    np.testing.assert_array_equal(to_integer(np.array([1e19, -1e19]), "i64"), [2**63 - 1, -(2**63)])


def test_toward_zero_never_grows() -> None:
    values = np.array([1.00390625, -1.00390625, 65519.9, 1.0006], np.float32)
    for element in ("bf16", "f16"):
        cut = as_float32(convert_float(values, "f32", element, toward_zero=True), element)
        assert (np.abs(cut) <= np.abs(values)).all()


def test_bitcast_keeps_bits() -> None:
    codes = np.arange(0, 32768, dtype=np.uint16).view(np.int16)
    back = bitcast(bitcast(codes, "i16", "bf16"), "bf16", "i16")
    finite = np.isfinite(bitcast(codes, "i16", "bf16"))
    np.testing.assert_array_equal(back[finite], codes[finite])
