"""Memory, LDS bookkeeping, exact arithmetic and small float formats of the reference core, each by itself."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pytest

from sandbox.emulator.decoder import decode
from sandbox.emulator.instruction import DecodeError, Unsupported
from sandbox.emulator.launch import sample_workgroups
from sandbox.emulator.memory import Memory
from sandbox.emulator.opcodes import ARCHS, mnemonics, opcodes
from sandbox.emulator.reference import build_step
from sandbox.emulator.semantics import exact, minifloat
from sandbox.emulator.shadow import LdsShadow


def test_allocations_lie_far_apart_and_share_their_bytes() -> None:
    memory, data = Memory(), np.arange(10, dtype=np.int32)
    a, b = memory.allocate("a", data), memory.allocate("b", 1 << 20)
    assert b.base - a.end >= 1 << 31
    assert a.base & 0xFFFFFFFF != b.base & 0xFFFFFFFF and a.base % 256 == b.base % 256 == 0
    a.data[0] = 7
    assert data[0] == 7
    addresses = np.array([a.base, a.end - 4, a.end - 3, a.base - 1, b.base, 0, 2**64 - 2], np.uint64)
    assert memory.resolve(addresses, 4).tolist() == [0, 0, -1, -1, 1, -1, -1]
    assert "4 past its end" in memory.describe(a.end + 4) and "8 bytes before the start of b" in memory.describe(
        b.base - 8
    )
    with pytest.raises(ValueError, match="not contiguous"):
        memory.allocate("c", np.zeros((4, 4))[:, 1])


def test_a_launch_does_not_change_the_memory_it_extends() -> None:
    memory = Memory()
    memory.allocate("a", 16)
    inner = memory.extended()
    inner.allocate("code", 16)
    assert [x.name for x in memory] == ["a"] and [x.name for x in inner] == ["a", "code"]


def bytes_at(*where: int) -> np.ndarray:
    return np.array(where, np.int64)


def test_races_between_barriers_are_seen_in_every_order() -> None:
    lds, one = np.zeros(8, np.uint8), np.array([1], np.uint8)
    for first_writes in (True, False):
        shadow = LdsShadow(8)
        shadow.write(bytes_at(3), np.array([9], np.uint8), lds, wave=2)
        shadow.next_epoch()
        if first_writes:
            assert shadow.write(bytes_at(3), one, lds, wave=0) is None
            assert shadow.read(bytes_at(3), wave=1)[1] == 3
        else:
            assert shadow.read(bytes_at(3), wave=1) == (None, None)
            assert shadow.write(bytes_at(3), one, lds, wave=0) == 3


def test_what_is_no_race() -> None:
    lds, shadow = np.zeros(8, np.uint8), LdsShadow(8)
    five = np.array([5], np.uint8)
    assert shadow.write(bytes_at(0), five, lds, wave=0) is None
    lds[0] = 5
    assert shadow.write(bytes_at(0), five, lds, wave=1) is None, "the same value"
    assert shadow.read(bytes_at(0), wave=0) == (None, None), "the writer itself"
    assert shadow.write(bytes_at(1), five, lds, wave=1) is None, "the byte beside it"
    assert shadow.write(bytes_at(2), five, lds, wave=0, atomic=True) is None
    assert shadow.write(bytes_at(2), np.array([6], np.uint8), lds, wave=1, atomic=True) is None, "two atomics"
    shadow.next_epoch()
    assert shadow.write(bytes_at(0), np.array([8], np.uint8), lds, wave=1) is None, "behind a barrier"
    assert shadow.read(bytes_at(7), wave=0)[0] == 7, "never written"


def floats(draw: random.Random, count: int, dtype: type, low: int, high: int) -> np.ndarray:
    values = [
        draw.choice([draw.gauss(0, 1), 1.0, 0.0, -0.0, 3.0]) * 2.0 ** draw.randint(low, high) for _ in range(count)
    ]
    return np.array(values).astype(dtype)


@pytest.mark.parametrize(
    ("dtype", "low", "high"), [(np.float16, -14, 7), (np.float32, -80, 60), (np.float64, -560, 480)]
)
def test_fma_rounds_once(dtype: type, low: int, high: int) -> None:
    draw = random.Random(5)
    a, b, c = (floats(draw, 3000, dtype, low, high) for _ in range(3))
    c[::2] = (-(a.astype(dtype) * b.astype(dtype)))[::2].astype(dtype)  # cancellation
    function = {np.float16: exact.fma16, np.float32: exact.fma32, np.float64: exact.fma64}[dtype]
    with np.errstate(all="ignore"):
        got = function(a, b, c)
    for x, y, z, value in zip(a.tolist(), b.tolist(), c.tolist(), got.tolist(), strict=True):
        if not np.isfinite([x, y, z, value]).all():
            continue
        want = Fraction(x) * Fraction(y) + Fraction(z)
        error = abs(Fraction(value) - want)
        neighbours = [np.nextafter(dtype(value), dtype(np.inf)), np.nextafter(dtype(value), dtype(-np.inf))]
        assert all(error <= abs(Fraction(float(n)) - want) for n in neighbours if np.isfinite(n)), (x, y, z, value)


def test_directed_rounding() -> None:
    third = np.array([1 / 3, -1 / 3])
    down, up, zero = (
        exact.narrow(third, np.float32, m).astype(np.float64) for m in (exact.DOWNWARD, exact.UPWARD, exact.TOWARD_ZERO)
    )
    assert (down <= third).all() and (up >= third).all() and (np.abs(zero) <= np.abs(third)).all()
    assert (up - down == np.spacing(np.float32(1 / 3))).all()


def test_small_floats_are_those_of_torch() -> None:
    torch = pytest.importorskip("torch")
    formats = {
        minifloat.FP8: torch.float8_e4m3fn, minifloat.BF8: torch.float8_e5m2, minifloat.FP8_FNUZ: torch.float8_e4m3fnuz,
        minifloat.BF8_FNUZ: torch.float8_e5m2fnuz,
    }  # fmt: skip
    codes = torch.arange(256, dtype=torch.uint8)
    values = torch.randn(5000, generator=torch.Generator().manual_seed(1), dtype=torch.float64) * 8
    for fmt, dtype in formats.items():
        assert np.array_equal(codes.view(dtype).double().numpy(), minifloat.table(fmt), equal_nan=True)
        assert np.array_equal(
            values.float().to(dtype).view(torch.uint8).numpy(), minifloat.encode(values.float().double().numpy(), fmt)
        )


def test_small_floats_saturate_only_on_request() -> None:
    large = np.array([1e6, -1e6, np.inf, np.nan])
    assert minifloat.encode(large, minifloat.FP8, saturate=False).tolist() == [0x7F, 0xFF, 0x7F, 0x7F]
    assert minifloat.encode(large, minifloat.FP8, saturate=True).tolist() == [0x7E, 0xFE, 0x7F, 0x7F]
    assert minifloat.encode(large, minifloat.BF8, saturate=False).tolist() == [0x7C, 0xFC, 0x7C, 0x7E]
    assert minifloat.encode(large, minifloat.FP8_FNUZ, saturate=False).tolist() == [0x80] * 4
    assert minifloat.encode(large[:2], minifloat.FP4, saturate=False).tolist() == [0x7, 0xF]


def test_a_sample_of_workgroups_has_both_ends_and_is_seeded() -> None:
    assert sample_workgroups(5, 64, 0) == [0, 1, 2, 3, 4]
    sample = sample_workgroups(10_000, 66, 3)
    assert len(sample) == 66 and sample[0] == 0 and sample[-1] == 9_999
    assert sample == sample_workgroups(10_000, 66, 3) != sample_workgroups(10_000, 66, 4)


@pytest.mark.parametrize("arch", ARCHS)
def test_every_opcode_has_a_step_or_says_it_has_none(arch: str) -> None:
    draw, built = random.Random(2), set()
    for seed in range(6000):
        word = (
            draw.getrandbits(32)
            if seed % 2
            else draw.choice([0xD0, 0xD1, 0xD2, 0xD3, 0xD8, 0xDC, 0x7E]) << 24 | draw.getrandbits(24)
        )
        raw = (word | draw.getrandbits(64) << 32).to_bytes(12, "little")
        try:
            i = decode(raw, 0, arch)
            build_step(i, arch)
        except (DecodeError, Unsupported) as e:
            assert str(e)
            continue
        built.add(i.mnemonic)
    assert len(built) > 300
    assert built <= mnemonics(arch) | {m.replace("v_mfma_", "v_mfma_scale_") for m in mnemonics(arch)}
    assert len({row.mnemonic for rows in opcodes(arch).values() for row in rows.values()}) == len(mnemonics(arch))
