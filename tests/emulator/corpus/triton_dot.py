"""Triton kernels on the matrix units: matmul in every type, split-K, scaled dot, flash attention."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from corpus.case import Case, TritonSource, Values, outputs_match, randint, randn


@triton.jit
def matmul_kernel(a, b, c, M, N, K, TM: tl.constexpr, TN: tl.constexpr, TK: tl.constexpr, PRECISION: tl.constexpr):
    rows = tl.program_id(0) * TM + tl.arange(0, TM)
    columns = tl.program_id(1) * TN + tl.arange(0, TN)
    depth = tl.arange(0, TK)
    a_tile = a + rows[:, None] * K + depth[None, :]
    b_tile = b + depth[:, None] * N + columns[None, :]
    total = tl.zeros((TM, TN), dtype=tl.int32 if a.dtype.element_ty == tl.int8 else tl.float32)
    for start in range(0, K, TK):
        left = tl.load(a_tile, (rows[:, None] < M) & (start + depth[None, :] < K), other=0.0)
        right = tl.load(b_tile, (columns[None, :] < N) & (start + depth[:, None] < K), other=0.0)
        total = tl.dot(left, right, total, input_precision=PRECISION, out_dtype=total.dtype)
        a_tile += TK
        b_tile += TK * N
    inside = (rows[:, None] < M) & (columns[None, :] < N)
    tl.store(c + rows[:, None] * N + columns[None, :], total.to(c.dtype.element_ty), inside)


@triton.jit
def split_k_kernel(a, b, c, M, N, K, TM: tl.constexpr, TN: tl.constexpr, TK: tl.constexpr, SPLIT: tl.constexpr):
    rows = tl.program_id(0) * TM + tl.arange(0, TM)
    columns = tl.program_id(1) * TN + tl.arange(0, TN)
    total = tl.zeros((TM, TN), tl.float32)
    for start in range(tl.program_id(2) * TK, K, TK * SPLIT):
        depth = start + tl.arange(0, TK)
        left = tl.load(a + rows[:, None] * K + depth[None, :])
        total = tl.dot(left, tl.load(b + depth[:, None] * N + columns), total)
    tl.atomic_add(c + rows[:, None] * N + columns[None, :], total)


@triton.jit
def persistent_matmul_kernel(a, b, c, M, N, K, TM: tl.constexpr, TN: tl.constexpr, TK: tl.constexpr):
    across = tl.cdiv(N, TN)
    for tile in range(tl.program_id(0), tl.cdiv(M, TM) * across, tl.num_programs(0)):
        left = tl.make_block_ptr(a, (M, K), (K, 1), (tile // across * TM, 0), (TM, TK), (1, 0))
        right = tl.make_block_ptr(b, (K, N), (N, 1), (0, tile % across * TN), (TK, TN), (1, 0))
        total = tl.zeros((TM, TN), tl.float32)
        for _ in range(0, K, TK):
            total = tl.dot(tl.load(left, boundary_check=(0, 1)), tl.load(right, boundary_check=(0, 1)), total)
            left = tl.advance(left, (0, TK))
            right = tl.advance(right, (TK, 0))
        place = tl.make_block_ptr(c, (M, N), (N, 1), (tile // across * TM, tile % across * TN), (TM, TN), (1, 0))
        tl.store(place, total.to(c.dtype.element_ty), boundary_check=(0, 1))


@triton.jit
def int4_matmul_kernel(a, packed, scales, c, M, N, K, TM: tl.constexpr, TN: tl.constexpr, TK: tl.constexpr):
    rows = tl.program_id(0) * TM + tl.arange(0, TM)
    columns = tl.program_id(1) * TN + tl.arange(0, TN)
    total = tl.zeros((TM, TN), tl.float32)
    for start in range(0, K, TK):
        depth = start + tl.arange(0, TK)
        left = tl.load(a + rows[:, None] * K + depth[None, :])
        word = tl.load(packed + (depth // 8)[:, None] * N + columns[None, :])
        nibble = (word >> ((depth % 8) * 4)[:, None]) & 15
        right = (nibble - 8).to(tl.float16) * tl.load(scales + columns)[None, :]
        total = tl.dot(left, right.to(tl.float16), total)
    tl.store(c + rows[:, None] * N + columns[None, :], total)


def int4_reference(v: Values) -> Values:
    shifts = torch.arange(8, dtype=torch.int32) * 4
    nibbles = (v["packed"][:, None, :] >> shifts[None, :, None]) & 15
    weights = (nibbles.reshape(-1, v["packed"].shape[1]) - 8).half() * v["scales"]
    return {"c": v["a"].double() @ weights.double()}


@triton.jit
def attention_kernel(q, k, v, out, length, scale, CAUSAL: tl.constexpr, TQ: tl.constexpr, TK: tl.constexpr,
                     D: tl.constexpr):  # fmt: skip
    base = tl.program_id(1) * length * D
    rows = tl.program_id(0) * TQ + tl.arange(0, TQ)
    lane = tl.arange(0, D)
    query = tl.load(q + base + rows[:, None] * D + lane[None, :])
    peak = tl.full((TQ,), -1e30, tl.float32)
    total = tl.zeros((TQ,), tl.float32)
    result = tl.zeros((TQ, D), tl.float32)
    stop = (tl.program_id(0) + 1) * TQ if CAUSAL else length
    for start in range(0, stop, TK):
        columns = start + tl.arange(0, TK)
        key = tl.load(k + base + columns[None, :] * D + lane[:, None])
        score = tl.dot(query, key) * scale
        if CAUSAL:
            score = tl.where(rows[:, None] >= columns[None, :], score, -1e30)
        new_peak = tl.maximum(peak, tl.max(score, 1))
        weight = tl.exp(score - new_peak[:, None])
        shrink = tl.exp(peak - new_peak)
        total = total * shrink + tl.sum(weight, 1)
        value = tl.load(v + base + columns[:, None] * D + lane[None, :])
        result = result * shrink[:, None] + tl.dot(weight.to(value.dtype), value)
        peak = new_peak
    tl.store(out + base + rows[:, None] * D + lane[None, :], (result / total[:, None]).to(out.dtype.element_ty))


def attention_reference(v: Values, causal: bool) -> Values:
    q, k, value = (v[name].double() for name in "qkv")
    mask = torch.ones(q.shape[1], q.shape[1]).tril().bool() if causal else None
    return {"out": torch.nn.functional.scaled_dot_product_attention(q, k, value, attn_mask=mask)}


@triton.jit
def scaled_kernel(a, a_scale, b, b_scale, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr,
                  A_KIND: tl.constexpr, B_KIND: tl.constexpr, A_PACK: tl.constexpr, B_PACK: tl.constexpr):  # fmt: skip
    rows, columns = tl.arange(0, M), tl.arange(0, N)
    left = tl.load(a + rows[:, None] * (K // A_PACK) + tl.arange(0, K // A_PACK)[None, :])
    right = tl.load(b + tl.arange(0, K // B_PACK)[:, None] * N + columns[None, :])
    group = tl.arange(0, K // 32)
    left_scale = tl.load(a_scale + rows[:, None] * (K // 32) + group[None, :])
    right_scale = tl.load(b_scale + columns[:, None] * (K // 32) + group[None, :])
    total = tl.dot_scaled(left, left_scale, A_KIND, right, right_scale, B_KIND)
    tl.store(c + rows[:, None] * N + columns[None, :], total)


FP4_VALUES = torch.tensor([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0])


def _unpack(bits: torch.Tensor, kind: str, axis: int) -> torch.Tensor:
    if kind == "e2m1":
        pair = torch.stack([bits & 15, bits >> 4], axis + 1)
        shape = [n * (2 if i == axis else 1) for i, n in enumerate(bits.shape)]
        return FP4_VALUES[pair.reshape(shape).long()].double()
    return bits.view({"e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2}[kind]).double()


def scaled_reference(v: Values, a_kind: str, b_kind: str) -> Values:
    left = _unpack(v["a"], a_kind, 1) * torch.exp2(v["a_scale"].double() - 127).repeat_interleave(32, 1)
    right = _unpack(v["b"], b_kind, 0) * torch.exp2(v["b_scale"].double() - 127).repeat_interleave(32, 1).T
    return {"c": left @ right}


def _scaled(name: str, a_kind: str, b_kind: str, m: int, n: int, k: int) -> Case:
    def bits(kind: str, rows: int, columns: int, seed: int) -> torch.Tensor:
        if kind == "e2m1":
            return randint(0, 256, rows, columns, dtype=torch.uint8, seed=seed)
        dtype = {"e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2}[kind]
        return randn(rows, columns, seed=seed).to(dtype).view(torch.uint8)

    pack = {"e2m1": 2, "e4m3": 1, "e5m2": 1}

    def inputs(arch: str) -> Values:
        return {
            "a": bits(a_kind, m, k // pack[a_kind], 1), "a_scale": randint(122, 132, m, k // 32, dtype=torch.uint8),
            "b": bits(b_kind, k // pack[b_kind], n, 2),
            "b_scale": randint(122, 132, n, k // 32, dtype=torch.uint8, seed=3), "c": torch.zeros(m, n),
        }  # fmt: skip

    constants = {"M": m, "N": n, "K": k, "A_KIND": a_kind, "B_KIND": b_kind, "A_PACK": pack[a_kind],
                 "B_PACK": pack[b_kind]}  # fmt: skip
    check = outputs_match(lambda v: scaled_reference(v, a_kind, b_kind), rtol=1e-5, atol=1e-3)
    return Case(f"dot_scaled_{name}", TritonSource(scaled_kernel, constants), (1, 1, 1), inputs, check, ("gfx950",))


def _matmul(
    name: str, dtype: Any, out: torch.dtype, shape: tuple[int, int, int], tile: tuple[int, int, int], *,
    warps: int = 4, tolerance: tuple[float, float] = (1e-3, 1e-3), precision: str | None = None,
    archs: tuple[str, ...] = ("gfx942", "gfx950"), **options: Any,
) -> Case:  # fmt: skip
    m, n, k = shape
    tm, tn, tk = tile

    def operand(rows: int, columns: int, kind: torch.dtype, seed: int) -> torch.Tensor:
        if kind == torch.int8:
            return randint(-128, 128, rows, columns, dtype=torch.int8, seed=seed)
        return randn(rows, columns, seed=seed).to(kind)

    def inputs(arch: str) -> Values:
        kind = dtype(arch) if not isinstance(dtype, torch.dtype) else dtype
        return {"a": operand(m, k, kind, 1), "b": operand(k, n, kind, 2), "c": torch.zeros(m, n, dtype=out),
                "M": m, "N": n, "K": k}  # fmt: skip

    source = TritonSource(matmul_kernel, {"TM": tm, "TN": tn, "TK": tk, "PRECISION": precision}, warps, options)
    check = outputs_match(lambda v: {"c": v["a"].double() @ v["b"].double()}, rtol=tolerance[0], atol=tolerance[1])
    return Case(f"matmul_{name}", source, (-(-m // tm), -(-n // tn), 1), inputs, check, archs)


def _native_e4m3(arch: str) -> torch.dtype:
    return torch.float8_e4m3fnuz if arch == "gfx942" else torch.float8_e4m3fn


def _native_e5m2(arch: str) -> torch.dtype:
    return torch.float8_e5m2fnuz if arch == "gfx942" else torch.float8_e5m2


def _attention(name: str, dtype: torch.dtype, causal: bool, dim: int, warps: int) -> Case:
    def inputs(arch: str) -> Values:
        shape = (2, 128, dim)
        tensors = {key: randn(*shape, dtype=dtype, seed=i) for i, key in enumerate("qkv")}
        return {**tensors, "out": torch.zeros(shape, dtype=dtype), "length": 128, "scale": dim**-0.5}

    constants = {"CAUSAL": causal, "TQ": 64, "TK": 32, "D": dim}
    check = outputs_match(lambda v: attention_reference(v, causal), rtol=2e-2, atol=2e-2)
    return Case(f"attention_{name}", TritonSource(attention_kernel, constants, warps), (2, 2, 1), inputs, check)


def _special_cases() -> list[Case]:
    half = torch.float16
    product = outputs_match(lambda v: {"c": v["a"].double() @ v["b"].double()}, rtol=2e-3, atol=2e-2)
    tile = {"TM": 32, "TN": 32, "TK": 32}
    return [
        Case("matmul_split_k", TritonSource(split_k_kernel, {**tile, "SPLIT": 2}), (2, 2, 2),
             lambda arch: {"a": randn(64, 128, dtype=half), "b": randn(128, 64, dtype=half, seed=1),
                           "c": torch.zeros(64, 64), "M": 64, "N": 64, "K": 128}, product),
        Case("matmul_persistent", TritonSource(persistent_matmul_kernel, tile), (3, 1, 1),
             lambda arch: {"a": randn(70, 64, dtype=half), "b": randn(64, 90, dtype=half, seed=1),
                           "c": torch.zeros(70, 90, dtype=half), "M": 70, "N": 90, "K": 64}, product),
        Case("matmul_int4", TritonSource(int4_matmul_kernel, tile), (1, 2, 1),
             lambda arch: {"a": randn(32, 64, dtype=half),
                           "packed": randint(-(2**31), 2**31, 8, 64, dtype=torch.int32),
                           "scales": randn(64, dtype=half, seed=5), "c": torch.zeros(32, 64), "M": 32, "N": 64,
                           "K": 64},
             outputs_match(int4_reference, rtol=2e-3, atol=2e-2)),
    ]  # fmt: skip


def cases() -> list[Case]:
    half, bf16, f32 = torch.float16, torch.bfloat16, torch.float32
    return [
        _matmul("fp16", half, f32, (128, 128, 64), (64, 64, 32)),
        _matmul("fp16_tail", half, half, (100, 72, 80), (64, 64, 32), tolerance=(2e-3, 2e-2)),
        _matmul("fp16_16x16", half, f32, (64, 64, 64), (32, 32, 32), matrix_instr_nonkdim=16, warps=2),
        _matmul("fp16_kpack", half, f32, (64, 64, 128), (64, 64, 64), kpack=2, archs=("gfx942",)),
        _matmul("fp16_stages3", half, f32, (64, 64, 256), (64, 64, 32), num_stages=3, warps=8),
        _matmul("bf16", bf16, bf16, (128, 64, 64), (64, 64, 32), tolerance=(1e-2, 5e-2)),
        _matmul("bf16_16x16", bf16, f32, (32, 64, 64), (32, 64, 32), matrix_instr_nonkdim=16, warps=1),
        _matmul("fp32", f32, f32, (64, 64, 48), (64, 64, 16), tolerance=(1e-5, 1e-4)),
        _matmul("fp32_16x16", f32, f32, (32, 32, 32), (32, 32, 32), tolerance=(1e-5, 1e-4), matrix_instr_nonkdim=16),
        _matmul(
            "tf32", f32, f32, (64, 64, 32), (64, 64, 32), precision="tf32", tolerance=(2e-2, 3e-2), archs=("gfx942",)
        ),
        _matmul("bf16x3", f32, f32, (32, 32, 32), (32, 32, 32), precision="bf16x3", tolerance=(1e-4, 1e-3)),
        _matmul("e4m3", _native_e4m3, f32, (64, 64, 128), (64, 64, 64), tolerance=(1e-5, 1e-3)),
        _matmul(
            "e4m3_16x16",
            _native_e4m3,
            f32,
            (32, 32, 128),
            (32, 32, 128),
            tolerance=(1e-5, 1e-3),
            matrix_instr_nonkdim=16,
        ),
        _matmul("e5m2", _native_e5m2, f32, (64, 64, 128), (64, 64, 64), tolerance=(1e-5, 1e-3)),
        _matmul("int8", torch.int8, torch.int32, (64, 64, 128), (64, 64, 64), tolerance=(0, 0)),
        _matmul(
            "int8_16x16", torch.int8, torch.int32, (32, 32, 64), (32, 32, 64), tolerance=(0, 0), matrix_instr_nonkdim=16
        ),
        *_special_cases(),
        _scaled("mxfp8", "e4m3", "e4m3", 64, 64, 128),
        _scaled("mxfp8_e5m2", "e5m2", "e4m3", 32, 64, 128),
        _scaled("mxfp4", "e2m1", "e2m1", 64, 64, 128),
        _scaled("mxfp8_mxfp4", "e4m3", "e2m1", 64, 32, 128),
        _attention("fp16", half, False, 64, 4),
        _attention("bf16_causal", bf16, True, 32, 2),
    ]
