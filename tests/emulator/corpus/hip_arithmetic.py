"""HIP kernels of arithmetic.hip with their references in torch and Python integers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from corpus.case import Case, Values, generator, outputs_match, randint, randn
from corpus.hip_kernels import exactly, hip_case, zeros

N = 190
F64, F32, F16, I16, I32, I64 = torch.float64, torch.float32, torch.float16, torch.int16, torch.int32, torch.int64
M32, M64 = 2**32 - 1, 2**64 - 1


def signed(value: int, bits: int) -> int:
    """Two's complement reading of the low `bits` bits."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def double_reference(v: Values) -> Values:
    a, b = v["a"], v["b"]
    fma = torch.from_numpy((a.numpy().astype(np.longdouble) * b.numpy() + np.longdouble(0.75)).astype(np.float64))
    rows = [a / b, a.abs().sqrt(), fma, a.floor() + b.ceil() + (a * 3).trunc() + (b * 5).round()]
    rows += [torch.minimum(a, b) * 2 + torch.maximum(a, b), torch.ldexp(a, (b * 4).trunc())]
    rows += [a.float().double() + (b * 1000).trunc() + (a * 1000).abs().trunc()]
    rows += [torch.where(a < b, a - b, torch.where(a == b, 1.0, a * b))]
    return {"out": torch.cat(rows)}


def float_reference(v: Values) -> Values:
    a, b = v["a"].double(), v["b"].double()
    index = torch.arange(N)
    a7, a3 = (v["b"] * 7).trunc(), (v["a"] * 3).round()
    a100, b100 = (v["a"] * 100).trunc(), (v["b"] * 100).abs().trunc()
    mantissa, exponent = torch.frexp(a).mantissa, torch.frexp(b).exponent
    rows = [a / b, a.abs().sqrt(), torch.stack([a, b, torch.full_like(a, 0.5)]).median(0).values]
    rows += [a - a.floor() + a7 + a3, mantissa + exponent, torch.ldexp(a, index % 20 - 10)]
    rows += [torch.where(_in_class(v["a"]), 1.0, torch.minimum(a, b) + torch.maximum(a, b) * 4)]
    rows += [a100 + b100 + (index & 255), torch.copysign(a, b), a * b + 1]
    return {"out": torch.cat([row.double() for row in rows])}


def _in_class(x: torch.Tensor) -> torch.Tensor:
    """Membership in mask 0x3f8: negative normal, denormal and zero, positive zero to infinity (bits 3 to 9)."""
    return ~torch.isnan(x) & (x != -float("inf"))


def wide_range(dtype: torch.dtype, seed: int) -> torch.Tensor:
    """Numbers of every exponent, denormals among them, with zeros, infinities and NaN in front."""
    top = 127 if dtype == F32 else 1023
    exponents = randint(-top - 20, top + 1, N, seed=seed).double()
    value = torch.ldexp(randn(N, dtype=F64, seed=seed + 1).clamp(-1.9, 1.9), exponents).to(dtype)
    value[:5] = torch.tensor([0.0, -0.0, float("inf"), float("nan"), 1.0])
    return value


def division_reference(v: Values) -> Values:
    return {"out": v["a"] / v["b"], "wide": v["c"] / v["d"]}


def half_packed_reference(v: Values) -> Values:
    x, y = v["a"].double(), v["b"].double()
    half = lambda t: t.to(F16).double()  # a rounding step
    swapped = torch.stack([x[:, 1], y[:, 0]], 1)
    rows = [x + y, half(x * y) - x, x * y + x, torch.minimum(x, y), torch.maximum(x, -y), swapped + y]
    return {"out": torch.cat([half(row) for row in rows]), "dots": (x * y).sum(1) + 0.5}


def half_reference(v: Values) -> Values:
    x, y = v["a"].double(), v["b"].double()
    half = lambda t: t.to(F16).double()  # a rounding step
    rows = [x + half(y * x), x / y, x.abs().sqrt(), half(x.floor() + y.ceil()) + x.trunc()]
    rows += [torch.where(x < y, x * y + x, torch.maximum(x, y)), half((x * 8).trunc()) + half((y * 8).abs().trunc())]
    return {"out": torch.cat([half(row) for row in [*rows, (v["a"].float() * v["b"].float()).double()]])}


def short_reference(v: Values) -> Values:
    x, y = v["a"].int(), v["b"].int()
    shift = y & 15
    rows = [x + y, x - y, x * y + x, torch.minimum(x, y), torch.maximum(x, y), x << shift, x >> shift]
    rows += [(x & 0xFFFF) >> shift, (x + y).clamp(-32768, 32767), (x - y).clamp(-32768, 32767)]
    return {"out": torch.cat(rows).to(I16)}


def _bytes(x: int) -> list[int]:
    return [x >> 8 * i & 255 for i in range(4)]


def _permute(x: int, y: int, selectors: int) -> int:
    pool = _bytes(y) + _bytes(x)
    return sum(pool[s] << 8 * i for i, s in enumerate(_bytes(selectors)))


def _dot(x: int, y: int, bits: int, is_signed: bool) -> int:
    mask = (1 << bits) - 1
    parts = [((x >> i & mask), (y >> i & mask)) for i in range(0, 32, bits)]
    return sum(signed(a, bits) * signed(b, bits) if is_signed else a * b for a, b in parts)


def integer_row(x: int, y: int) -> list[int]:
    sx, sy = signed(x, 32), signed(y, 32)
    concat = x << 32 | y
    trailing = (y | 1 << 31) & -(y | 1 << 31)
    divisor = signed((y >> 20) | 1, 32)
    sad = sum(abs(a - b) for a, b in zip(_bytes(x), _bytes(y), strict=True))
    masked = sum(abs(a - b) for a, b in zip(_bytes(x), _bytes(y), strict=True) if b)
    numerator = signed(x << 8, 32)
    quotient = abs(numerator) // divisor * (1 if numerator >= 0 else -1)
    return [
        x.bit_count() + (32 - (x | 1).bit_length()) * 100 + (trailing.bit_length() - 1) * 10000,
        int(f"{x:032b}"[::-1], 2) ^ int.from_bytes(y.to_bytes(4, "little"), "big"),
        _permute(x, y, 0x07020500),
        (concat >> 13 & M32) ^ (concat >> 24 & M32),
        (x >> (y & 31) & 511) + signed(y >> 5, 11),
        (x & 0xFFFFFF) * (y & 0xFFFFFF), quotient, x % (y | 1), min(x + y, M32),
        max(-(2**31), min(2**31 - 1, sx - sy)), x * y >> 32, sx * sy >> 32, sad + 17 + masked + 3,
        _dot(x, y, 8, True) + 100, _dot(x, y, 8, False) + 7, _dot(x, y, 4, True) + 3 + _dot(x, y, 4, False) + 3,
        (x << (y & 31)) | (x >> (-y & 31)), (x & y) | (~x & (y >> 3)),
        sx >> (y & 31) if sx > sy else y >> (x & 31), x - y if x < y else (x ^ y) + 5,
    ]  # fmt: skip


def long_row(x: int, y: int) -> list[int]:
    sx, sy = signed(x, 64), signed(y, 64)
    divisor = signed((y >> 17) | 1, 64)
    remainder = abs(sx) % divisor * (1 if sx >= 0 else -1)
    trailing = (y | 1 << 63) & -(y | 1 << 63)
    shift = y & 63
    return [
        x + y, x - y, x * y, x // (y | 1), remainder, (x << shift) & M64 ^ x >> shift, sx >> shift,
        1 if x < y else 2 if sx > sy else 3,
        x.bit_count() + (64 - (x | 1).bit_length()) * 1000 + (trailing.bit_length() - 1) * 100000,
        (x >> 12) + int(np.float32(y & M32)), x * y >> 64,
    ]  # fmt: skip


def _by_row(function: Callable[[int, int], list[int]], bits: int) -> Callable[[Values], Values]:
    def reference(v: Values) -> Values:
        mask = (1 << bits) - 1
        rows = [function(x & mask, y & mask) for x, y in zip(v["a"].tolist(), v["b"].tolist(), strict=True)]
        flat = [signed(row[i], bits) for i in range(len(rows[0])) for row in rows]
        return {"out": torch.tensor(flat, dtype=I32 if bits == 32 else I64)}

    return reference


def _toward_zero_half(x: torch.Tensor) -> torch.Tensor:
    """fp32 to fp16 bits, rounded towards zero; values in the normal fp16 range or zero."""
    half = x.to(F16)
    too_far = half.double().abs() > x.double().abs()
    return (half.view(I16) - too_far.to(I16)).int() & 0xFFFF


def conversions_reference(v: Values) -> Values:
    x, index = v["a"], torch.arange(N)
    y = x.roll(-1)
    word = lambda low, high: (low & 0xFFFF) | (high.int() << 16)  # packing two halves
    norm = lambda t, low, scale: ((t * 0.01).clamp(low, 1).double() * scale).round().int()
    byte = x.double().clamp(0, 255).round().int()
    rows = [word(_toward_zero_half(x), _toward_zero_half(y)), word(norm(x, -1, 32767), norm(y, -1, 32767))]
    rows += [word(norm(x, 0, 65535), norm(y, 0, 65535)), byte << 16 | 0x11003344]
    rows += [word((index * 70000).clamp(max=32767).int(), (-index * 50).clamp(-32768).int())]
    rows += [(index * 3 & 255).int() + (index >> 1 & 255).float().view(I32)]
    rows += [x.to(F16).view(I16).int() & 0xFFFF]
    return {"out": torch.cat([row.int() for row in rows])}


def fp8_reference(arch: str) -> Callable[[Values], Values]:
    fp8, bf8 = (
        (torch.float8_e4m3fnuz, torch.float8_e5m2fnuz) if arch == "gfx942" else (torch.float8_e4m3fn, torch.float8_e5m2)
    )

    def reference(v: Values) -> Values:
        x, y = v["a"], v["a"].roll(-1)
        parts = [t.to(kind).view(torch.uint8).int() for kind in (fp8, bf8) for t in (x, y)]
        word = parts[0] | parts[1] << 8 | parts[2] << 16 | parts[3] << 24
        return {"packed": word, "back": torch.cat([y.to(fp8).float(), x.to(bf8).float()])}

    return reference


def rounding_reference(v: Values) -> Values:
    a = v["a"]
    up = torch.nextafter(a, torch.zeros_like(a))
    return {"out": torch.cat([torch.where(a > 0, a, up), a])}


def cases() -> list[Case]:
    pair = lambda dtype, *shape: {"a": randn(*shape, dtype=dtype, seed=1) * 3, "b": randn(*shape, dtype=dtype, seed=2)}
    words = lambda dtype: {
        "a": randint(-(2**31), 2**31, N, dtype=I64, seed=1) * (1 if dtype == I32 else 2**31 + 12345),
        "b": randint(-(2**31), 2**31, N, dtype=I64, seed=2) * (1 if dtype == I32 else 2**22 + 77),
    }
    integers = lambda dtype, rows: {
        **{k: t.to(dtype) for k, t in words(dtype).items()},
        "out": zeros(rows * N, dtype=dtype),
        "n": N,
    }
    launch = {"grid": (3,), "block": (64,)}
    file = "arithmetic.hip"
    whole = lambda: (torch.randint(1, 2**22, (N,), generator=generator(3)) * 2 - 2**22 + 1).float()
    return [
        hip_case(file, "double_math", lambda: {**pair(F64, N), "out": zeros(8 * N, dtype=F64), "n": N},
                 outputs_match(double_reference, rtol=3e-16, atol=1e-300), **launch),
        hip_case(file, "division", lambda: {"a": wide_range(F32, 3), "b": wide_range(F32, 5), "c": wide_range(F64, 7),
                                            "d": wide_range(F64, 9), "out": zeros(N), "wide": zeros(N, dtype=F64),
                                            "n": N}, exactly(division_reference), **launch),
        hip_case(file, "float_math", lambda: {**pair(F32, N), "out": zeros(10 * N), "n": N},
                 outputs_match(float_reference, rtol=4e-7, atol=1e-6), **launch),
        hip_case(file, "half_packed", lambda: {**pair(F16, N, 2), "out": zeros(6 * N, 2, dtype=F16), "dots": zeros(N),
                                               "n": N}, outputs_match(half_packed_reference, rtol=1e-6, atol=1e-6),
                 **launch),
        hip_case(file, "half_math", lambda: {**pair(F16, N), "out": zeros(7 * N, dtype=F16), "n": N},
                 outputs_match(half_reference, rtol=1.1e-3, atol=1e-6), **launch),
        hip_case(file, "short_packed", lambda: {"a": randint(-32768, 32768, N, 2, dtype=I16, seed=1),
                                                "b": randint(-32768, 32768, N, 2, dtype=I16, seed=2),
                                                "out": zeros(10 * N, 2, dtype=I16), "n": N},
                 exactly(short_reference), **launch),
        hip_case(file, "integer_tricks", lambda: integers(I32, 20), exactly(_by_row(integer_row, 32)), **launch),
        hip_case(file, "long_math", lambda: integers(I64, 11), exactly(_by_row(long_row, 64)), **launch),
        hip_case(file, "conversions", lambda: {"a": randn(N) * 90, "out": zeros(7 * N, dtype=I32), "n": N},
                 exactly(conversions_reference), **launch),
        *(
            Case(f"hip_fp8_native_{arch}", case.source, case.grid, case.inputs,
                 outputs_match(fp8_reference(arch)), (arch,))
            for arch in ("gfx942", "gfx950")
            for case in [hip_case(file, "fp8_native", lambda: {"a": (randn(N) * 9).clamp(-200, 200),
                                                               "packed": zeros(N, dtype=I32), "back": zeros(2 * N),
                                                               "n": N}, exactly(dict), **launch)]
        ),
        hip_case(file, "matrix_inverse", lambda: {"in": randn(N, 4, 4, dtype=F64), "out": zeros(N, 4, 4, dtype=F64),
                                                  "n": N},
                 outputs_match(lambda v: {"out": torch.linalg.inv(v["in"])}, rtol=1e-9, atol=1e-9), **launch),
        hip_case(file, "rounding_mode", lambda: {"a": whole(), "out": zeros(2 * N), "n": N},
                 exactly(rounding_reference), **launch),
    ]  # fmt: skip
