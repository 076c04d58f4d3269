"""Triton kernels without cross-lane work: arithmetic, conversions, control flow."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from corpus.case import Case, TritonSource, Values, outputs_match, randint, randn

N = 3000  # not a multiple of any block: every kernel has a tail


@triton.jit
def add_kernel(x, y, out, n, BLOCK: tl.constexpr):
    offset = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offset < n
    tl.store(out + offset, tl.load(x + offset, inside) + tl.load(y + offset, inside), inside)


@triton.jit
def gelu_kernel(x, out, n, BLOCK: tl.constexpr):
    offset = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + offset, offset < n).to(tl.float32)
    value = value * 0.5 * (1.0 + tl.math.erf(value * 0.7071067811865476))
    tl.store(out + offset, value, offset < n)


@triton.jit
def swiglu_kernel(gate, up, out, n, BLOCK: tl.constexpr):
    offset = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    g = tl.load(gate + offset, offset < n).to(tl.float32)
    u = tl.load(up + offset, offset < n).to(tl.float32)
    tl.store(out + offset, g * tl.sigmoid(g) * u, offset < n)


@triton.jit
def math_kernel(x, out, n, BLOCK: tl.constexpr):
    offset = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offset < n
    v = tl.load(x + offset, inside, other=1.0)
    tl.store(out + offset, tl.exp(v), inside)
    tl.store(out + n + offset, tl.log(tl.abs(v) + 0.5), inside)
    tl.store(out + 2 * n + offset, tl.sin(v) + tl.cos(v), inside)
    tl.store(out + 3 * n + offset, tl.rsqrt(tl.abs(v) + 0.1), inside)
    tl.store(out + 4 * n + offset, tl.sqrt(tl.abs(v)), inside)
    tl.store(out + 5 * n + offset, tl.floor(v) + tl.ceil(v * 3.0), inside)
    tl.store(out + 6 * n + offset, tl.exp2(v) - tl.log2(tl.abs(v) + 1.0), inside)
    tl.store(out + 7 * n + offset, 1.0 / (v * v + 0.25), inside)
    tl.store(out + 8 * n + offset, tl.fma(v, v, 1.5), inside)
    tl.store(out + 9 * n + offset, tl.div_rn(v, 3.0), inside)


@triton.jit
def clamp_kernel(x, out, n, low, high, BLOCK: tl.constexpr):
    offset = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + offset, offset < n)
    tl.store(out + offset, tl.minimum(tl.maximum(value, low), high), offset < n)


@triton.jit
def integer_kernel(x, y, out, n, BLOCK: tl.constexpr):
    offset = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offset < n
    a = tl.load(x + offset, inside, other=1)
    b = tl.load(y + offset, inside, other=1)
    tl.store(out + offset, a // b, inside)
    tl.store(out + n + offset, a % b, inside)
    tl.store(out + 2 * n + offset, (a << 3) ^ (b >> 2), inside)
    tl.store(out + 3 * n + offset, (a & b) | ~a, inside)
    tl.store(out + 4 * n + offset, tl.where(a > b, a * b, a - b), inside)
    tl.store(out + 5 * n + offset, tl.abs(a) + tl.minimum(a, b), inside)


def integer_reference(v: Values) -> Values:
    a, b = v["x"].to(torch.int64), v["y"].to(torch.int64)
    quotient = torch.div(a, b, rounding_mode="trunc")
    rows = [quotient, a - quotient * b, (a << 3) ^ (b >> 2), (a & b) | ~a, torch.where(a > b, a * b, a - b)]
    rows.append(a.abs() + torch.minimum(a, b))
    return {"out": torch.cat(rows).to(v["x"].dtype)}


@triton.jit
def mulhi_kernel(x, y, out, high, n, BLOCK: tl.constexpr):
    offset = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + offset, offset < n)
    b = tl.load(y + offset, offset < n)
    tl.store(out + offset, a.to(tl.int64) * b.to(tl.int64) + (a.to(tl.int64) << 7), offset < n)
    tl.store(high + offset, tl.umulhi(a.to(tl.uint32), b.to(tl.uint32)).to(tl.int32), offset < n)


def mulhi_reference(v: Values) -> Values:
    a, b = v["x"].to(torch.int64), v["y"].to(torch.int64)
    high = [((int(p) & 0xFFFFFFFF) * (int(q) & 0xFFFFFFFF)) >> 32 for p, q in zip(a, b, strict=True)]
    return {"out": a * b + (a << 7), "high": torch.tensor(high).to(torch.int32)}


@triton.jit
def convert_kernel(x, out, n, BLOCK: tl.constexpr):
    offset = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + offset, offset < n)
    tl.store(out + offset, value.to(out.dtype.element_ty), offset < n)


@triton.jit
def double_kernel(x, y, out, n, BLOCK: tl.constexpr):
    offset = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offset < n
    a = tl.load(x + offset, inside, other=1.0)
    b = tl.load(y + offset, inside, other=1.0)
    tl.store(out + offset, a / b, inside)
    tl.store(out + n + offset, tl.sqrt(tl.abs(a)) + tl.exp(b), inside)
    tl.store(out + 2 * n + offset, tl.maximum(a, b) * a - b, inside)
    tl.store(out + 3 * n + offset, tl.floor(a * 10.0) + (b * 100.0).to(tl.int32), inside)


def double_reference(v: Values) -> Values:
    a, b = v["x"], v["y"]
    rows = [a / b, a.abs().sqrt() + b.exp(), torch.maximum(a, b) * a - b, (a * 10).floor() + (b * 100).trunc()]
    return {"out": torch.cat(rows)}


@triton.jit
def mandelbrot_kernel(out, width, height, limit, BLOCK: tl.constexpr):
    offset = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offset < width * height
    cx = (offset % width).to(tl.float32) * (3.0 / 64.0) - 2.0
    cy = (offset // width).to(tl.float32) * (2.0 / 32.0) - 1.0
    zx = tl.zeros((BLOCK,), tl.float32)
    zy = tl.zeros((BLOCK,), tl.float32)
    count = tl.zeros((BLOCK,), tl.int32)
    step = 0
    alive = BLOCK
    while (step < limit) & (alive > 0):
        bounded = zx * zx + zy * zy < 4.0
        alive = tl.sum(bounded.to(tl.int32))
        zx, zy = tl.where(bounded, zx * zx - zy * zy + cx, zx), tl.where(bounded, 2.0 * zx * zy + cy, zy)
        count += bounded.to(tl.int32)
        step += 1
    tl.store(out + offset, count, inside)


def mandelbrot_check(inputs: Values, outputs: Values) -> None:
    width, height, limit = inputs["width"], inputs["height"], inputs["limit"]
    index = torch.arange(width * height)
    c = torch.complex((index % width) * (3.0 / 64) - 2.0, torch.div(index, width, rounding_mode="floor") * 0.0625 - 1.0)
    z, count = torch.zeros_like(c), torch.zeros(width * height, dtype=torch.int32)
    for _ in range(limit):
        bounded = z.abs() < 2.0
        z = torch.where(bounded, z * z + c, z)
        count += bounded.int()
    differing = (count != outputs["out"]).float().mean()
    assert differing < 0.01, f"{differing:.3f} of the pixels differ"  # fused multiply-add moves a few border pixels


@triton.jit
def collatz_kernel(x, out, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    value = tl.load(x + pid).to(tl.int64)
    steps = 0
    while value != 1:
        if value % 2 == 0:
            value = value // 2
        else:
            value = 3 * value + 1
        steps += 1
    tl.store(out + pid, steps)


def collatz_reference(v: Values) -> Values:
    def steps(value: int) -> int:
        count = 0
        while value != 1:
            value = value // 2 if value % 2 == 0 else 3 * value + 1
            count += 1
        return count

    return {"out": torch.tensor([steps(int(value)) for value in v["x"]], dtype=torch.int32)}


@triton.jit
def rotary_kernel(x, cos, sin, out, row, HALF: tl.constexpr):
    pid = tl.program_id(0)
    lane = tl.arange(0, HALF)
    first = tl.load(x + pid * row + lane).to(tl.float32)
    second = tl.load(x + pid * row + HALF + lane).to(tl.float32)
    c = tl.load(cos + pid * HALF + lane)
    s = tl.load(sin + pid * HALF + lane)
    tl.store(out + pid * row + lane, first * c - second * s)
    tl.store(out + pid * row + HALF + lane, second * c + first * s)


def rotary_reference(v: Values) -> Values:
    first, second = v["x"].double().chunk(2, dim=1)
    return {"out": torch.cat([first * v["cos"] - second * v["sin"], second * v["cos"] + first * v["sin"]], 1)}


@triton.jit
def asm_kernel(x, y, out, n, BLOCK: tl.constexpr):
    offset = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + offset, offset < n, other=0)
    b = tl.load(y + offset, offset < n, other=0)
    mixed = tl.inline_asm_elementwise("v_xad_u32 $0, $1, $2, $2", "=v,v,v", [a, b], tl.int32, is_pure=True, pack=1)
    tl.store(out + offset, mixed, offset < n)


@triton.jit
def early_exit_kernel(x, out, n, limit, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    if pid >= limit:
        return
    offset = pid * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for step in range(pid + 1):
        total += tl.load(x + step * BLOCK + tl.arange(0, BLOCK))
    tl.store(out + offset, total)


def early_exit_reference(v: Values) -> Values:
    sums = v["x"].reshape(8, 128).double().cumsum(0)
    sums[v["limit"] :] = 0
    return {"out": sums.reshape(-1)}


def _convert(name: str, source: torch.Tensor, target: torch.dtype, archs: tuple[str, ...]) -> Case:
    return Case(
        f"convert_{name}", TritonSource(convert_kernel, {"BLOCK": 1024}), (3, 1, 1),
        lambda arch: {"x": source.clone(), "out": torch.zeros(N, dtype=target), "n": N},
        outputs_match(lambda v: {"out": v["x"].to(target)}), archs,
    )  # fmt: skip


def _edges(dtype: torch.dtype) -> torch.Tensor:
    """Values with ties, denormals, infinities and NaN in front."""
    special = torch.tensor([0.0, -0.0, 1e-45, -1e-40, 6e-8, 65504.0, 1e38, float("inf"), -float("inf"), float("nan")])
    ties = (torch.arange(256) + 0.5) * 2.0**-8 + 1.0
    rest = randn(N - len(special) - len(ties), seed=5) * torch.exp2(randint(-20, 20, N - 266, seed=6).float())
    return torch.cat([special, ties, rest]).to(dtype)


def _pair(dtype: torch.dtype) -> Values:
    return {"x": randn(N, dtype=dtype, seed=1), "y": randn(N, dtype=dtype, seed=2)}


def _integers(dtype: torch.dtype, bound: int) -> Values:
    divisor = randint(1, bound, N, dtype=dtype, seed=4) * (1 - 2 * randint(0, 2, N, dtype=dtype, seed=9))
    return {"x": randint(-bound, bound, N, dtype=dtype, seed=3), "y": divisor}


def _math_reference(v: Values) -> Values:
    x = v["x"].double()
    rows = [x.exp(), (x.abs() + 0.5).log(), x.sin() + x.cos(), (x.abs() + 0.1).rsqrt(), x.abs().sqrt()]
    rows += [x.floor() + (v["x"] * 3.0).ceil().double(), x.exp2() - (x.abs() + 1).log2(), 1 / (x * x + 0.25)]
    return {"out": torch.cat([*rows, x * x + 1.5, x / 3])}


def cases() -> list[Case]:
    block = {"BLOCK": 1024}
    both = ("gfx942", "gfx950")
    gelu = torch.nn.functional.gelu
    silu = torch.nn.functional.silu
    add = outputs_match(lambda v: {"out": v["x"] + v["y"]})
    out = torch.zeros
    return [
        *(
            Case(f"add_{str(t)[6:]}", TritonSource(add_kernel, block), (3, 1, 1),
                 lambda arch, t=t: {**_pair(t), "out": out(N, dtype=t), "n": N}, add)
            for t in (torch.float32, torch.float16, torch.bfloat16)
        ),
        Case("add_int64_far_pointers", TritonSource(add_kernel, block, small_pointers=False), (3, 1, 1),
             lambda arch: {**_integers(torch.int64, 2**62), "out": out(N, dtype=torch.int64), "n": N}, add),
        Case("gelu", TritonSource(gelu_kernel, block), (3, 1, 1),
             lambda arch: {"x": randn(N) * 3, "out": out(N), "n": N},
             outputs_match(lambda v: {"out": gelu(v["x"].double())}, rtol=1e-5, atol=1e-6)),
        Case("swiglu_fp16", TritonSource(swiglu_kernel, block, num_warps=8), (3, 1, 1),
             lambda arch: {"gate": randn(N, dtype=torch.float16), "up": randn(N, dtype=torch.float16, seed=3),
                           "out": out(N, dtype=torch.float16), "n": N},
             outputs_match(lambda v: {"out": silu(v["gate"].double()) * v["up"].double()}, rtol=2e-3, atol=1e-4)),
        Case("math", TritonSource(math_kernel, {"BLOCK": 512}, num_warps=2), (6, 1, 1),
             lambda arch: {"x": randn(N) * 2, "out": out(10 * N), "n": N},
             outputs_match(_math_reference, rtol=3e-6, atol=2e-6)),
        Case("clamp_fp16", TritonSource(clamp_kernel, {"BLOCK": 256}, num_warps=1), (12, 1, 1),
             lambda arch: {"x": randn(N, dtype=torch.float16) * 2, "out": out(N, dtype=torch.float16), "n": N,
                           "low": -1.5, "high": 1.25},
             outputs_match(lambda v: {"out": v["x"].clamp(-1.5, 1.25)})),
        *(
            Case(f"integer_{str(t)[6:]}", TritonSource(integer_kernel, {"BLOCK": 256}, num_warps=w), (12, 1, 1),
                 lambda arch, t=t, b=b: {**_integers(t, b), "out": out(6 * N, dtype=t), "n": N},
                 outputs_match(integer_reference))
            for t, b, w in ((torch.int32, 2**20, 4), (torch.int64, 2**33, 1), (torch.int8, 100, 2),
                            (torch.int16, 2**14, 4))
        ),
        Case("mulhi", TritonSource(mulhi_kernel, block), (3, 1, 1),
             lambda arch: {"x": randint(-(2**31), 2**31, N, seed=1), "y": randint(-(2**31), 2**31, N, seed=2),
                           "out": out(N, dtype=torch.int64), "high": out(N, dtype=torch.int32), "n": N},
             outputs_match(mulhi_reference)),
        _convert("fp32_fp16", _edges(torch.float32), torch.float16, both),
        _convert("fp32_bf16", _edges(torch.float32), torch.bfloat16, both),
        _convert("fp16_fp32", _edges(torch.float16), torch.float32, both),
        _convert("fp64_fp32", _edges(torch.float64), torch.float32, both),
        _convert("fp32_int32", randn(N) * 1e6, torch.int32, both),
        _convert("int64_fp32", randint(-(2**40), 2**40, N, dtype=torch.int64), torch.float32, both),
        _convert("uint8_fp16", randint(0, 256, N, dtype=torch.uint8), torch.float16, both),
        _convert("fp32_int8", randn(N) * 40, torch.int8, both),
        _convert("fp32_e4m3", (randn(N) * 30).clamp(-200, 200), torch.float8_e4m3fn, ("gfx950",)),
        _convert("fp32_e4m3fnuz", (randn(N) * 30).clamp(-200, 200), torch.float8_e4m3fnuz, ("gfx942",)),
        _convert("fp32_e5m2", randn(N) * 30, torch.float8_e5m2, ("gfx950",)),
        Case("double", TritonSource(double_kernel, {"BLOCK": 256}), (12, 1, 1),
             lambda arch: {**_pair(torch.float64), "out": out(4 * N, dtype=torch.float64), "n": N},
             outputs_match(double_reference, rtol=1e-14, atol=1e-14)),
        Case("mandelbrot", TritonSource(mandelbrot_kernel, {"BLOCK": 256}), (8, 1, 1),
             lambda arch: {"out": out(64 * 32, dtype=torch.int32), "width": 64, "height": 32, "limit": 40},
             mandelbrot_check),
        Case("collatz_scalar", TritonSource(collatz_kernel, {"BLOCK": 1}, num_warps=1), (20, 1, 1),
             lambda arch: {"x": torch.arange(1, 21, dtype=torch.int32) * 7, "out": out(20, dtype=torch.int32),
                           "n": 20},
             outputs_match(collatz_reference)),
        Case("rotary_bf16", TritonSource(rotary_kernel, {"HALF": 64}, num_warps=1), (16, 1, 1),
             lambda arch: {"x": randn(16, 128, dtype=torch.bfloat16), "cos": randn(16, 64, seed=8).cos(),
                           "sin": randn(16, 64, seed=8).sin(), "out": out(16, 128, dtype=torch.bfloat16), "row": 128},
             outputs_match(rotary_reference, rtol=8e-3, atol=1e-3)),
        Case("inline_asm", TritonSource(asm_kernel, block), (3, 1, 1),
             lambda arch: {**_integers(torch.int32, 2**20), "out": out(N, dtype=torch.int32), "n": N},
             outputs_match(lambda v: {"out": (v["x"] ^ v["y"]) + v["y"]})),
        Case("early_exit", TritonSource(early_exit_kernel, {"BLOCK": 128}), (8, 1, 1),
             lambda arch: {"x": randn(1024), "out": out(1024), "n": 1024, "limit": 5},
             outputs_match(early_exit_reference, rtol=1e-5, atol=1e-5)),
    ]  # fmt: skip
