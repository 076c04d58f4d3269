"""Triton kernels that synchronise through global memory."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from corpus.case import Case, TritonSource, Values, outputs_match, randint, randn

N, SLOTS = 1000, 24


@triton.jit
def scatter_add_kernel(x, index, out, n, BLOCK: tl.constexpr):
    offset = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offset < n
    tl.atomic_add(out + tl.load(index + offset, inside, other=0), tl.load(x + offset, inside, other=0), inside)


@triton.jit
def bitwise_kernel(x, index, largest, smallest, all_of, any_of, odd_of, n, BLOCK: tl.constexpr):
    offset = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offset < n
    value = tl.load(x + offset, inside, other=0)
    slot = tl.load(index + offset, inside, other=0)
    tl.atomic_max(largest + slot, value, inside)
    tl.atomic_min(smallest + slot, value, inside)
    tl.atomic_and(all_of + slot, value, inside)
    tl.atomic_or(any_of + slot, value, inside)
    tl.atomic_xor(odd_of + slot, value, inside)


def bitwise_reference(v: Values) -> Values:
    dtype = v["x"].dtype
    signed = v["x"].to(torch.int64)
    result = {name: v[name].to(torch.int64).clone() for name in ("largest", "smallest", "all_of", "any_of", "odd_of")}
    for value, slot in zip(signed.tolist(), v["index"].tolist(), strict=True):
        result["largest"][slot] = max(int(result["largest"][slot]), value)
        result["smallest"][slot] = min(int(result["smallest"][slot]), value)
        result["all_of"][slot] &= value
        result["any_of"][slot] |= value
        result["odd_of"][slot] ^= value
    return {name: value.to(dtype) for name, value in result.items()}


@triton.jit
def float_extreme_kernel(x, largest, smallest, n, BLOCK: tl.constexpr):
    offset = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offset < n
    value = tl.load(x + offset, inside, other=0.0)
    tl.atomic_max(largest + offset % 8, value, inside)
    tl.atomic_min(smallest + offset % 8, value, inside)


@triton.jit
def ticket_kernel(counter, seen, last, BLOCK: tl.constexpr):
    ticket = tl.atomic_add(counter, 1)
    tl.store(seen + ticket, tl.program_id(0))
    previous = tl.atomic_xchg(last, tl.program_id(0))
    tl.store(seen + tl.num_programs(0) + ticket, previous)


def ticket_check(inputs: Values, outputs: Values) -> None:
    count = len(outputs["seen"]) // 2
    assert int(outputs["counter"][0]) == count
    assert sorted(outputs["seen"][:count].tolist()) == list(range(count))
    exchanged = [*outputs["seen"][count:].tolist(), int(outputs["last"][0])]
    assert sorted(exchanged) == [-1, *range(count)]


@triton.jit
def lock_kernel(x, lock, total, turns, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    value = tl.load(x + pid * BLOCK + tl.arange(0, BLOCK))
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    lane = tl.arange(0, BLOCK)
    tl.store(total + lane, tl.load(total + lane) + value)
    tl.store(turns, tl.load(turns) + 1)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


@triton.jit
def last_block_kernel(x, partial, counter, out, n, BLOCK: tl.constexpr, BLOCKS: tl.constexpr):
    pid = tl.program_id(0)
    offset = pid * BLOCK + tl.arange(0, BLOCK)
    tl.store(partial + pid, tl.sum(tl.load(x + offset, offset < n, other=0.0), 0))
    tl.debug_barrier()
    if tl.atomic_add(counter, 1) == BLOCKS - 1:
        block = tl.arange(0, BLOCKS)
        tl.store(out, tl.sum(tl.load(partial + block), 0))


@triton.jit
def column_gradient_kernel(x, out, rows, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    lane = tl.arange(0, BLOCK)
    inside = lane < columns
    tl.atomic_add(out + lane, tl.load(x + row * columns + lane, inside, other=0.0), inside, sem="relaxed")


def _scatter_add(name: str, dtype: torch.dtype, check_dtype: torch.dtype, rtol: float, atol: float) -> Case:
    def inputs(arch: str) -> Values:
        integral = not dtype.is_floating_point
        x = randint(-900, 900, N, dtype=dtype) if integral else randn(N, dtype=dtype)
        index = randint(0, SLOTS, N, seed=7)
        return {"x": x, "index": index, "out": torch.zeros(SLOTS, dtype=dtype), "n": N}

    def expected(v: Values) -> Values:
        zero = torch.zeros(SLOTS, dtype=check_dtype)
        return {"out": zero.index_add(0, v["index"].long(), v["x"].to(check_dtype))}

    return Case(f"atomic_add_{name}", TritonSource(scatter_add_kernel, {"BLOCK": 256}), (4, 1, 1), inputs,
                outputs_match(expected, rtol=rtol, atol=atol))  # fmt: skip


def _bitwise(name: str, dtype: torch.dtype) -> Case:
    """Values are not negative: Triton 3.6 merges signed atomic_max and atomic_min in a wave with unsigned compares."""

    def inputs(arch: str) -> Values:
        high = min(torch.iinfo(dtype).max, 2**40)
        x = randint(0, high, N, dtype=dtype)
        start = {"largest": 0, "smallest": high, "all_of": high, "any_of": 0, "odd_of": 0}
        slots = {key: torch.full((SLOTS,), value, dtype=torch.int64).to(dtype) for key, value in start.items()}
        return {"x": x, "index": randint(0, SLOTS, N, seed=7), **slots, "n": N}

    return Case(f"atomic_bitwise_{name}", TritonSource(bitwise_kernel, {"BLOCK": 256}), (4, 1, 1), inputs,
                outputs_match(bitwise_reference))  # fmt: skip


def cases() -> list[Case]:
    out = torch.zeros
    return [
        _scatter_add("fp32", torch.float32, torch.float64, 1e-4, 1e-4),
        _scatter_add("fp64", torch.float64, torch.float64, 1e-12, 1e-12),
        _scatter_add("fp16", torch.float16, torch.float64, 2e-2, 1e-1),
        _scatter_add("bf16", torch.bfloat16, torch.float64, 1e-1, 6e-1),
        _scatter_add("int32", torch.int32, torch.int64, 0, 0),
        _scatter_add("int64", torch.int64, torch.int64, 0, 0),
        _bitwise("int32", torch.int32),
        _bitwise("uint32", torch.uint32),
        _bitwise("int64", torch.int64),
        Case("atomic_float_extremes", TritonSource(float_extreme_kernel, {"BLOCK": 256}), (4, 1, 1),
             lambda arch: {"x": randn(N), "largest": torch.full((8,), -9.0), "smallest": torch.full((8,), 9.0),
                           "n": N},
             outputs_match(lambda v: {"largest": v["x"].reshape(-1, 8).amax(0),
                                      "smallest": v["x"].reshape(-1, 8).amin(0)})),
        Case("ticket", TritonSource(ticket_kernel, {"BLOCK": 64}, num_warps=1), (12, 1, 1),
             lambda arch: {"counter": out(1, dtype=torch.int32), "seen": out(24, dtype=torch.int32),
                           "last": torch.full((1,), -1, dtype=torch.int32)}, ticket_check),
        Case("spin_lock", TritonSource(lock_kernel, {"BLOCK": 128}), (6, 1, 1),
             lambda arch: {"x": randint(0, 99, 768).float(), "lock": out(1, dtype=torch.int32), "total": out(128),
                           "turns": out(1, dtype=torch.int32), "n": 768},
             outputs_match(lambda v: {"total": v["x"].reshape(6, 128).sum(0), "lock": out(1).int(),
                                      "turns": torch.tensor([6])})),
        Case("last_block", TritonSource(last_block_kernel, {"BLOCK": 128, "BLOCKS": 8}), (8, 1, 1),
             lambda arch: {"x": randn(1000), "partial": out(8), "counter": out(1, dtype=torch.int32), "out": out(1),
                           "n": 1000},
             outputs_match(lambda v: {"out": v["x"].double().sum()[None]}, rtol=1e-4, atol=1e-4)),
        Case("column_gradient", TritonSource(column_gradient_kernel, {"BLOCK": 512}), (8, 1, 1),
             lambda arch: {"x": randn(8, 300), "out": out(300), "rows": 8, "columns": 300},
             outputs_match(lambda v: {"out": v["x"].double().sum(0)}, rtol=1e-5, atol=1e-5)),
    ]  # fmt: skip
