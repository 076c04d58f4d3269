"""HIP kernels of wave.hip, memory.hip and matrix.hip with their references; arithmetic.hip is in hip_arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from corpus.case import BOTH, Case, Check, HipSource, Values, outputs_match, randint, randn

HERE = Path(__file__).parent
zeros = torch.zeros


def hip_case(
    file: str, kernel: str, inputs: Callable[[], Values], check: Check, *, grid: tuple[int, ...] = (1,),
    block: tuple[int, ...] = (64,), lds: int = 0, archs: tuple[str, ...] = BOTH, flags: tuple[str, ...] = (),
) -> Case:  # fmt: skip
    """A case whose inputs do not depend on the architecture; grid and block are padded with ones."""
    full_grid, full_block = ((*shape, 1, 1)[:3] for shape in (grid, block))
    source = HipSource(HERE / file, kernel, full_block, lds, flags)
    return Case(f"hip_{kernel}", source, full_grid, lambda arch: inputs(), check, archs)


def exactly(expected: Callable[[Any], Values]) -> Check:
    return outputs_match(expected)


def compact_check(inputs: Values, outputs: Values) -> None:
    kept = inputs["x"][inputs["x"] % 3 == 0]
    assert int(outputs["count"][0]) == len(kept)
    assert torch.equal(outputs["out"][: len(kept)].sort().values, kept.sort().values)


def shuffles_reference(v: Values) -> Values:
    x, lane = v["x"], torch.arange(64)
    permuted = torch.zeros_like(x)
    permuted[lane * 5 % 64] = x
    swizzle_xor = x[lane ^ 1]  # 0x041f: and 0x1f, or 0, xor 1 within 32 lanes
    quad = x[(lane // 4 * 4) + torch.tensor([1, 0, 3, 2])[lane % 4]]  # 0x80b1: quad permutation 1,0,3,2
    rows = [x[(lane + 1).clamp(max=63)], x[lane * 7 % 64], x[lane ^ 21], permuted, x[37].expand(64), swizzle_xor, quad]
    return {"out": torch.cat(rows)}


def dpp_reference(v: Values) -> Values:
    x, lane = v["x"], torch.arange(64)
    row, place = lane // 16 * 16, lane % 16

    def move(source: torch.Tensor, valid: torch.Tensor, missing: int = -1) -> torch.Tensor:
        return torch.where(valid, x[source.clamp(0, 63)], missing).to(torch.int32)

    everywhere = torch.ones(64, dtype=torch.bool)
    bcast15, bcast31 = (lane // 16) % 2 == 1, lane >= 32
    rows = [
        move(lane ^ 3, everywhere), move(lane + 1, place + 1 < 16), move(lane - 3, place >= 3, 0),
        move(row + (place - 5) % 16, everywhere), move(lane + 1, lane < 63), move((lane + 1) % 64, everywhere),
        move(lane - 1, lane > 0, 0), move((lane - 1) % 64, everywhere), move(row + 15 - place, everywhere),
        move(lane // 8 * 8 + 7 - lane % 8, everywhere), move(row - 1, bcast15), move(torch.full((64,), 31), bcast31),
        move(row + 5, everywhere), move(lane - 1, (place >= 1) & (lane < 48) & (place // 4 % 2 == 0)),
    ]  # fmt: skip
    return {"out": torch.cat(rows)}


def divergent_reference(v: Values) -> Values:
    def run(value: int) -> int:
        steps = 0
        while value != 1 and steps < 200:
            if value & 1:
                value, steps = value * 3 + 1, steps + 2
            else:
                value >>= 1
            if value % 5 == 0:
                continue
            steps += 1
        return steps

    return {"out": torch.tensor([run(value) for value in v["x"].tolist()])}


def vote_reference(v: Values) -> Values:
    rows = []
    for wave in (v["x"] > 0).reshape(-1, 64):
        places = wave.nonzero().flatten().tolist()
        first, last = (places[0], places[-1]) if places else (255, 255)
        rows += [len(places) * 65536 + first * 256 + last] * 64
    return {"out": torch.tensor(rows)}


def rotate_reference(v: Values) -> Values:
    lane = torch.arange(256)
    x, other = v["x"], (lane + 97) & 255
    narrow = (x >> 5) & 0xFFFF
    signed = ((x >> 11) & 255).to(torch.uint8).view(torch.int8).to(torch.int64)
    return {"out": x[other] ^ (narrow[(other + 3) & 255] << 20) ^ signed[(other * 3) & 255]}


def scratch_reference(v: Values) -> Values:
    def wrap(value: int) -> int:
        return (value + 2**31) % 2**32 - 2**31

    x, totals = v["x"].tolist(), []
    for lane in range(64):
        local = [wrap(x[(lane + i) & 63] * (i + 1)) for i in range(40)]
        at = x[lane] & 31
        for step in range(20):
            local[at] = wrap(local[at] + step)
            mixed = local[at] ^ (at * 7)
            at = abs(mixed) % 40
        total = 0
        for value in local:
            total = wrap(total * 31 + value)
        totals.append(total)
    return {"out": torch.tensor(totals)}


def ackermann_reference(v: Values) -> Values:
    def value(m: int, n: int) -> int:
        return n + 1 if m == 0 else 2 + n if m == 1 else 3 + 2 * n

    return {"out": torch.tensor([value(x % 3, x % 4) for x in v["x"].tolist()])}


def flat_reference(v: Values) -> Values:
    x, lane = v["x"], torch.arange(64)
    kind = x & 3
    choices = torch.stack([x.flip(0) * 2, x + (lane & 3), x[lane ^ 1], x[lane ^ 1]])
    return {"out": choices[kind.long(), lane] + kind}


def wide_atomics_check(inputs: Values, outputs: Values) -> None:
    x = inputs["x"].tolist()
    mask = 2**64 - 1
    unsigned = [value & mask for value in x]
    got = [value & mask for value in outputs["out"].tolist()]
    both = any_of = odd = 0
    both = mask
    for value in unsigned:
        both, any_of, odd = both & value, any_of | value, odd ^ value
    want = [sum(x) & mask, max(unsigned), min(unsigned), both, any_of, odd, max(x) & mask, min(x) & mask]
    assert got[:8] == want
    assert outputs["out"][8:9].view(torch.float64).item() == sum(value & 1023 for value in x)
    assert 0 in outputs["before"].tolist() and len(set(outputs["before"].tolist())) > 100


def narrow_atomics_check(inputs: Values, outputs: Values) -> None:
    x = inputs["x"].tolist()
    unsigned = [value & 0xFFFFFFFF for value in x]
    both, any_of, odd = -1, 0, 0
    for value in x:
        both, any_of, odd = both & value, any_of | value, odd ^ value
    increments = len(x) % 7  # inc wraps 6 -> 0
    want = [sum(x), max(x), min(x), max(unsigned), min(unsigned), both, any_of, odd, -sum(x), increments]
    want.append((-len(x)) % 7)  # dec wraps 0 -> 6
    wrapped = [(value + 2**31) % 2**32 - 2**31 for value in want]
    assert outputs["out"].tolist() == wrapped, (outputs["out"].tolist(), wrapped)


def lds_atomics_check(inputs: Values, outputs: Values) -> None:
    x = inputs["x"].tolist()
    any_of = odd = 0
    for value in x:
        any_of, odd = any_of | value, odd ^ value
    out = outputs["out"].tolist()
    assert out[:6] == [sum(x), max(x), min(0, *x), any_of, odd, -sum(x)], out
    assert 0 <= out[6] < 128 and out[7] == 3 * 128
    assert out[8:] == [sum(x), max(5, *x), 128]
    exchanged = [*outputs["before"][128:].tolist(), out[6]]
    assert sorted(exchanged) == sorted([0, *range(128)])
    assert sorted(outputs["before"][:128].tolist())[0] == 0


def records_reference(v: Values) -> Values:
    raw = v["in"].reshape(-1, 16)
    tag = raw[:, 0].double()
    value = raw[:, 1:5].contiguous().view(torch.int32)[:, 0].double()
    half = (raw[:, 5].int() | raw[:, 6].int() << 8).double()
    sign = raw[:, 7].contiguous().view(torch.int8).double()
    return {"out": tag + value * 0.5 + half + sign * 1000.0 + raw[:, 8:].contiguous().view(torch.float64)[:, 0]}


def records_input() -> Values:
    raw = randint(0, 256, 90, 16, dtype=torch.uint8)
    raw[:, 8:] = randn(90, dtype=torch.float64).view(torch.uint8).reshape(90, 8)
    return {"in": raw.reshape(-1), "out": zeros(90, dtype=torch.float64), "n": 90}


def buffer_reference(v: Values) -> Values:
    """A buffer access past `num_records` reads zero and writes nothing, component by component."""
    size, lane = v["bytes"], torch.arange(64)
    raw = torch.cat([v["x"].view(torch.uint8)[:size], zeros(4096, dtype=torch.uint8)])

    def load(offset: torch.Tensor, width: int) -> torch.Tensor:
        whole = offset + width <= size
        parts = [raw[(offset + i).clamp(max=len(raw) - 1)].long() << 8 * i for i in range(width)]
        return torch.where(whole, sum(parts), 0)

    four = torch.stack([load(lane * 16 + 4 * i, 4) for i in range(4)], 1)
    # the scalar offset takes part in the range check, the instruction's offset too
    value = four + (load(lane * 4 + 64, 4) + load(lane * 2 + 6, 2) + load(lane + 3, 1))[:, None]
    value = ((value + 2**31) % 2**32 - 2**31).to(torch.int32).reshape(-1)
    keep = torch.arange(256) * 4 + 4 <= size
    return {"out": torch.where(keep, value, v["out"])}


def constants_reference(v: Values) -> Values:
    primes = torch.tensor([2, 3, 5, 7, 11, 13, 17, 19])
    x = v["x"].long()
    totals = primes[x & 7].repeat(2) + primes[:2].repeat_interleave(64)
    kind = (x % 7).repeat(2)
    table = [totals + 11, totals * 3, totals ^ 77, -totals, totals << 4, totals + 100, totals - 9]
    return {"out": torch.stack(table)[kind, torch.arange(128)]}


def grid_reference(v: Values) -> Values:
    z, y, x = torch.meshgrid(torch.arange(4), torch.arange(11), torch.arange(21), indexing="ij")
    return {"out": (x + 100 * y + 10000 * z).flatten()}


def _wave_cases() -> list[Case]:
    i32, i64 = torch.int32, torch.int64
    return [
        hip_case("wave.hip", "block_reduce", lambda: {"x": randn(4000), "out": zeros(4), "n": 4000},
                 lambda v, o: torch.testing.assert_close(o["out"].double().sum(), v["x"].double().sum(), rtol=1e-4,
                                                         atol=1e-3), grid=(4,), block=(256,)),
        hip_case("wave.hip", "ballot_compact", lambda: {"x": randint(0, 1000, 500), "out": zeros(500, dtype=i32),
                                                        "count": zeros(1, dtype=i32), "n": 500},
                 compact_check, grid=(4,), block=(128,)),
        hip_case("wave.hip", "lds_histogram", lambda: {"x": randint(0, 256, 5000, dtype=torch.uint8),
                                                       "out": zeros(256, dtype=i32), "n": 5000},
                 exactly(lambda v: {"out": torch.bincount(v["x"].long(), minlength=256)}), grid=(2,), block=(256,)),
        hip_case("wave.hip", "transpose", lambda: {"x": randn(70, 50), "out": zeros(50, 70), "rows": 70,
                                                   "columns": 50},
                 exactly(lambda v: {"out": v["x"].T.contiguous()}), grid=(2, 3), block=(32, 8)),
        hip_case("wave.hip", "bitonic", lambda: {"x": randint(-999, 999, 512), "out": zeros(512, dtype=i32)},
                 exactly(lambda v: {"out": v["x"].reshape(2, 256).sort(1).values.flatten()}), grid=(2,), block=(256,)),
        hip_case("wave.hip", "dynamic_lds_scan", lambda: {"x": randint(0, 9, 384).float(), "out": zeros(384)},
                 exactly(lambda v: {"out": v["x"].reshape(2, 192).cumsum(1).flatten()}), grid=(2,), block=(192,),
                 lds=2 * 192 * 4),
        hip_case("wave.hip", "shuffles", lambda: {"x": randint(-99, 99, 64), "out": zeros(448, dtype=i32)},
                 exactly(shuffles_reference)),
        hip_case("wave.hip", "dpp_moves", lambda: {"x": randint(-99, 99, 64), "out": zeros(896, dtype=i32)},
                 exactly(dpp_reference)),
        hip_case("wave.hip", "dpp_scan", lambda: {"x": randint(-99, 99, 256), "out": zeros(256, dtype=i32)},
                 exactly(lambda v: {"out": v["x"].reshape(-1, 64).cumsum(1).flatten()}), grid=(2,), block=(128,)),
        hip_case("wave.hip", "divergent", lambda: {"x": randint(1, 9999, 128), "out": zeros(128, dtype=i32)},
                 exactly(divergent_reference), grid=(2,)),
        hip_case("wave.hip", "wave_vote", lambda: {"x": randint(-99, 30, 256), "out": zeros(256, dtype=i32)},
                 exactly(vote_reference), block=(256,)),
        hip_case("wave.hip", "lds_rotate", lambda: {"x": randint(0, 2**62, 256, dtype=i64),
                                                    "out": zeros(256, dtype=i64)},
                 exactly(rotate_reference), block=(256,)),
    ]  # fmt: skip


def _memory_cases() -> list[Case]:
    i32, i64 = torch.int32, torch.int64
    scale = torch.tensor([2.0, 0.0, -1.0])
    return [
        hip_case("memory.hip", "float_max_cas", lambda: {"x": randn(300), "out": torch.full((5,), -9.0), "n": 300},
                 exactly(lambda v: {"out": v["x"].reshape(-1, 5).amax(0)}), grid=(3,), block=(128,)),
        hip_case("memory.hip", "wide_atomics",
                 lambda: {"x": randint(-(2**60), 2**60, 200, dtype=i64),
                          "out": torch.tensor([0, 0, -1, -1, 0, 0, -(2**62), 2**62, 0], dtype=i64),
                          "before": zeros(200, dtype=i64), "n": 200},
                 wide_atomics_check, grid=(2,), block=(128,)),
        hip_case("memory.hip", "narrow_atomics",
                 lambda: {"x": randint(-99999, 99999, 200),
                          "out": torch.tensor([0, -(2**31), 2**31 - 1, 0, -1, -1, 0, 0, 0, 0, 0], dtype=i32),
                          "before": zeros(200, dtype=i32), "n": 200},
                 narrow_atomics_check, grid=(2,), block=(128,)),
        hip_case("memory.hip", "lds_atomics", lambda: {"x": randint(1, 999, 128), "out": zeros(11, dtype=i32),
                                                       "before": zeros(256, dtype=i32)},
                 lds_atomics_check, block=(128,)),
        hip_case("memory.hip", "scratch_array", lambda: {"x": randint(0, 999, 64), "out": zeros(64, dtype=i32)},
                 exactly(scratch_reference)),
        hip_case("memory.hip", "recursion", lambda: {"x": randint(0, 999, 128), "out": zeros(128, dtype=i32)},
                 exactly(ackermann_reference), block=(128,)),
        hip_case("memory.hip", "function_pointers", lambda: {"x": randn(126), "out": zeros(126)},
                 outputs_match(lambda v: {"out": torch.where(torch.arange(126) % 3 == 1, v["x"] * v["x"],
                                                             v["x"] * scale[torch.arange(126) % 3])}),
                 grid=(2,), block=(63,)),
        hip_case("memory.hip", "flat_pointers", lambda: {"x": randint(0, 999, 64), "out": zeros(64, dtype=i32)},
                 exactly(flat_reference)),
        hip_case("memory.hip", "packed_records", records_input,
                 outputs_match(records_reference, rtol=1e-15), grid=(1,), block=(128,)),
        hip_case("memory.hip", "buffer_range", lambda: {"x": randint(-999, 999, 256), "out": zeros(256, dtype=i32),
                                                        "bytes": 903}, exactly(buffer_reference)),
        hip_case("memory.hip", "grid_shape", lambda: {"out": zeros(4 * 11 * 21, dtype=i32), "width": 21,
                                                      "height": 11}, exactly(grid_reference), grid=(3, 3, 2),
                 block=(8, 4, 2)),
        hip_case("memory.hip", "global_to_lds", lambda: {"x": randint(-99, 99, 512), "out": zeros(512, dtype=i32)},
                 exactly(lambda v: {"out": v["x"].reshape(2, 256).flip(1).flatten()}), grid=(2,), block=(256,)),
        hip_case("memory.hip", "constants", lambda: {"x": randint(0, 999, 64), "out": zeros(128, dtype=i32)},
                 exactly(constants_reference), grid=(2,)),
    ]  # fmt: skip


def _matrix(kernel: str, m: int, n: int, k: int, blocks: int, dtype: torch.dtype, bias: bool = False) -> Case:
    out = {torch.float64: torch.float64, torch.int8: torch.int32}.get(dtype, torch.float32)
    tolerance = {torch.float64: 1e-13, torch.int8: 0.0}.get(dtype, 1e-5)

    def operand(rows: int, columns: int, seed: int) -> torch.Tensor:
        if dtype == torch.int8:
            return randint(-128, 128, blocks * rows, columns, dtype=dtype, seed=seed)
        value = randn(blocks * rows, columns, dtype=dtype, seed=seed)
        return value.view(torch.int16) if dtype == torch.bfloat16 else value

    def expected(v: Values) -> Values:
        a, b = (v[key].view(torch.bfloat16) if dtype == torch.bfloat16 else v[key] for key in "ab")
        product = a.double().reshape(blocks, m, k) @ b.double().reshape(blocks, k, n)
        if bias:
            product = product + torch.arange(1, 5).repeat(m // 4)[None, :, None]
        return {"d": product.reshape(blocks * m, n)}

    inputs = {"a": operand(m, k, 1), "b": operand(k, n, 2), "d": zeros(blocks * m, n, dtype=out)}
    return hip_case("matrix.hip", kernel, lambda: {key: value.clone() for key, value in inputs.items()},
                    outputs_match(expected, rtol=tolerance, atol=tolerance))  # fmt: skip


def _matrix_cases() -> list[Case]:
    half, f32, f64 = torch.float16, torch.float32, torch.float64
    return [
        _matrix("mfma_16x16x16_f16", 16, 16, 16, 1, half, bias=True),
        _matrix("mfma_32x32x8_f16", 32, 32, 8, 1, half),
        _matrix("mfma_4x4x4_f16", 4, 4, 4, 16, half),
        _matrix("mfma_16x16x4_f32", 16, 16, 4, 1, f32),
        _matrix("mfma_16x16x1_f32", 16, 16, 1, 4, f32),
        _matrix("mfma_32x32x1_f32", 32, 32, 1, 2, f32),
        _matrix("mfma_16x16x4_f64", 16, 16, 4, 1, f64),
        _matrix("mfma_4x4x4_f64", 4, 4, 4, 4, f64),
        _matrix("mfma_16x16x16_bf16", 16, 16, 16, 1, torch.bfloat16),
        _matrix("mfma_16x16x32_i8", 16, 16, 32, 1, torch.int8),
    ]


def cases() -> list[Case]:
    return [*_wave_cases(), *_memory_cases(), *_matrix_cases()]
