"""Kernels run in the interpreter and compared with torch: what a launch means must not depend on how it is executed."""

import math

import pytest
import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice
from triton.tools.tensor_descriptor import TensorDescriptor

from sandbox.interpreter import (
    InterpreterAssertion,
    InterpreterBudget,
    InterpreterUnsupported,
    interpret_launch,
)
from sandbox.target import load_target
from sandbox.workload import Execution

GFX942 = load_target("gfx942")
GFX950 = load_target("gfx950")


def run(kernel, grid, *args, **kwargs):
    return interpret_launch(kernel, grid, args, kwargs, budget_s=60, target=kwargs.pop("target", GFX942))


@triton.jit
def matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        x = tl.load(a + rm[:, None] * K + (k + rk)[None, :], mask=(rm[:, None] < M) & (k + rk < K)[None, :], other=0.0)
        y = tl.load(b + (k + rk)[:, None] * N + rn[None, :], mask=(k + rk < K)[:, None] & (rn[None, :] < N), other=0.0)
        acc = tl.dot(x, y, acc)
    tl.store(c + rm[:, None] * N + rn[None, :], acc.to(c.dtype.element_ty), mask=(rm[:, None] < M) & (rn[None, :] < N))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32, torch.float8_e4m3fn])
def test_dot_of_every_float_type(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    m, n, k = 70, 50, 100
    a, b = (torch.randn(s).to(dtype) for s in ((m, k), (k, n)))
    c = torch.empty(m, n, dtype=torch.float32)
    run(matmul, (3, 2), a, b, c, m, n, k, BM=32, BN=32, BK=32, num_warps=4, target=GFX950)
    torch.testing.assert_close(c, a.float() @ b.float(), atol=1e-4, rtol=1e-5)


@triton.jit
def square_dot(a, b, c, N: tl.constexpr, PRECISION: tl.constexpr):
    r = tl.arange(0, N)
    x = tl.load(a + r[:, None] * N + r[None, :])
    y = tl.load(b + r[:, None] * N + r[None, :])
    tl.store(c + r[:, None] * N + r[None, :], tl.dot(x, y, input_precision=PRECISION))


def test_input_precision_shows() -> None:
    torch.manual_seed(1)
    a, b = torch.randn(32, 32), torch.randn(32, 32)
    exact = (a.double() @ b.double()).float()
    errors = {}
    for precision in ("ieee", "tf32", "bf16x3"):
        c = torch.empty(32, 32)
        run(square_dot, (1,), a, b, c, N=32, PRECISION=precision)
        errors[precision] = (c - exact).abs().max().item()
    assert errors["ieee"] < errors["bf16x3"] < errors["tf32"] < 2e-2


def test_integer_dot_is_exact() -> None:
    a, b = (torch.randint(-128, 128, (64, 64), dtype=torch.int8) for _ in range(2))
    c = torch.zeros(64, 64, dtype=torch.int32)
    run(square_dot, (1,), a, b, c, N=64, PRECISION="ieee")
    assert torch.equal(c, a.int() @ b.int())


def test_a_kernel_the_target_refuses_still_runs() -> None:
    a, b, c = torch.eye(16), torch.eye(16), torch.empty(16, 16)
    run(square_dot, (1,), a, b, c, N=16, PRECISION="tf32", target=GFX950)  # gfx950 has no tf32
    torch.testing.assert_close(c, torch.eye(16))


@triton.jit
def library(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    y = libdevice.pow(v, 1.7) + libdevice.tanh(v) + libdevice.erf(v) + libdevice.log1p(v) + libdevice.rsqrt(v)
    y += libdevice.atan2(v, v + 1) + libdevice.llrint(v).to(tl.float32) + libdevice.cosh(v) + libdevice.fmod(v, 0.3)
    tl.store(out + i, y, mask=i < n)


def test_library_functions() -> None:
    x = torch.rand(1000) * 3 + 0.01
    out = torch.empty(1000)
    run(library, (4,), x, out, 1000, BLOCK=256)
    d = x.double()
    want = d**1.7 + d.tanh() + torch.erf(d) + torch.log1p(d) + d.rsqrt()
    want += (
        torch.atan2(d, d + 1) + d.round() + d.cosh() + torch.fmod(d, torch.tensor(0.3, dtype=torch.float32).double())
    )
    torch.testing.assert_close(out.double(), want, atol=2e-5, rtol=2e-6)


@triton.jit
def scatter(index, value, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    at = tl.load(index + i, mask=i < n, other=0)
    tl.atomic_add(out + at, tl.load(value + i, mask=i < n), mask=i < n)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.int32, torch.float64])
def test_atomic_add(dtype: torch.dtype) -> None:
    torch.manual_seed(2)
    index = torch.randint(0, 7, (300,), dtype=torch.int32)
    value = torch.randint(-4, 5, (300,)).to(dtype)
    out = torch.zeros(7, dtype=dtype)
    run(scatter, (3,), index, value, out, 300, BLOCK=128)
    want = torch.zeros(7, dtype=torch.float64).index_add_(0, index.long(), value.double())
    torch.testing.assert_close(out.double(), want)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_in_float64_throughout_half_precision_sums_are_rounded_once(dtype: torch.dtype) -> None:
    out, index = torch.ones(1, dtype=dtype), torch.zeros(1024, dtype=torch.int32)
    values = torch.full((1024,), 2.0**-12, dtype=dtype)
    arguments = {"BLOCK": 256, "num_warps": 4}
    interpret_launch(scatter, (4,), (index, values, out, 1024), arguments, budget_s=60, target=GFX942, wide=True)
    assert out.item() == 1.25, "each addition alone is lost in the rounding"
    out.fill_(1.0)
    interpret_launch(scatter, (4,), (index, values, out, 1024), arguments, budget_s=60, target=GFX942)
    assert out.item() < 1.25


@triton.jit
def tickets(counter, taken, best, lock, shared):
    mine = tl.atomic_add(counter, 1)
    tl.store(taken + mine, tl.program_id(0))
    tl.atomic_max(best, tl.program_id(0).to(tl.float32) * -1.5)
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(shared, tl.load(shared) + 1)
    tl.atomic_xchg(lock, 0)


def test_atomics_return_old_values_and_locks_do_not_hang() -> None:
    counter, lock, shared = (torch.zeros(1, dtype=torch.int32) for _ in range(3))
    taken = torch.full((20,), -1, dtype=torch.int32)
    best = torch.full((1,), -100.0)
    run(tickets, (20,), counter, taken, best, lock, shared)
    assert counter.item() == 20 and shared.item() == 20 and lock.item() == 0
    assert sorted(taken.tolist()) == list(range(20))
    assert best.item() == 0.0


@triton.jit
def halves(a, b):
    return (a + b) * 0.5, a - b


@triton.jit(noinline=True)
def twice_plus(a, b):
    return 2 * a + b


@triton.jit
def flow(x, out, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    if pid * BLOCK >= n:
        return
    i = pid * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n, other=0.0)
    total = tl.zeros((BLOCK,), tl.float32)
    for k in tl.range(0, pid + 1, num_stages=2):
        total += v * k
    steps = 0
    left = pid
    while left > 0:
        left = left // 2
        steps += 1
    if pid % 2 == 0:
        a, b = halves(total, v)
    else:
        a, b = v, total
    tl.store(out + i, a + b + twice_plus(steps, pid), mask=i < n)


def test_control_flow_that_differs_between_programs() -> None:
    x = torch.randn(450)
    out = torch.zeros(640)
    run(flow, lambda meta: (triton.cdiv(640, meta["BLOCK"]),), x, out, 450, BLOCK=64)
    want = torch.zeros(640)
    for pid in range(8):
        v = x[pid * 64 : (pid + 1) * 64]
        total = v * sum(range(pid + 1))
        a, b = ((total + v) * 0.5, total - v) if pid % 2 == 0 else (v, total)
        want[pid * 64 : pid * 64 + v.numel()] = a + b + 2 * pid.bit_length() + pid
    torch.testing.assert_close(out, want)


@triton.jit
def weighted(a, b):
    return a * 0.5 + b


@triton.jit
def along(x, out, ints, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    best, where = tl.max(v, 0, return_indices=True)
    tl.store(out + i, tl.cumsum(v, 0))
    tl.store(out + N + i, tl.associative_scan(v, 0, weighted))
    tl.store(out + 2 * N + i, tl.sort(v))
    tl.store(out + 3 * N + i, tl.gather(v, (i * 3) % N, 0))
    tl.store(out + 4 * N + i, tl.flip(v, 0))
    both = tl.join(v, -v)
    first, second = tl.split(both)
    tl.store(out + 5 * N + i, first * 2 + second)
    tl.store(out + 6 * N + i, tl.reshape(tl.trans(tl.reshape(v, (N // 8, 8))), (N,)))
    tl.store(ints, where)
    tl.store(ints + 1, tl.argmin(v, 0))
    tl.store(ints + 2 + i, tl.histogram((v * 4).to(tl.int32) & 7, N))
    tl.store(out + 7 * N + i, best + tl.sum(v) + tl.min(v, 0) + tl.reduce(v, 0, weighted))


def test_reductions_scans_and_shapes() -> None:
    torch.manual_seed(3)
    n = 64
    x = torch.randn(n)
    out, ints = torch.zeros(8 * n), torch.zeros(2 + n, dtype=torch.int32)
    run(along, (1,), x, out, ints, N=n)
    rows = out.reshape(8, n)
    torch.testing.assert_close(rows[0], x.cumsum(0), atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(rows[2], x.sort().values)
    torch.testing.assert_close(rows[3], x[(torch.arange(n) * 3) % n])
    torch.testing.assert_close(rows[4], x.flip(0))
    torch.testing.assert_close(rows[5], x)
    torch.testing.assert_close(rows[6], x.reshape(8, 8).T.reshape(-1))
    assert ints[0] == x.argmax() and ints[1] == x.argmin()
    want = torch.bincount(((x * 4).int() & 7).long(), minlength=n).int()
    assert torch.equal(ints[2:], want)


@triton.jit
def integers(a, b, out, N: tl.constexpr):
    i = tl.arange(0, N)
    x, y = tl.load(a + i), tl.load(b + i)
    tl.store(out + i, x // y)
    tl.store(out + N + i, x % y)
    tl.store(out + 2 * N + i, x >> 3)
    tl.store(out + 3 * N + i, (x.to(tl.uint32, bitcast=True) >> 3).to(tl.int32, bitcast=True))
    tl.store(out + 4 * N + i, tl.umulhi(x, y))
    tl.store(out + 5 * N + i, (x < y).to(tl.int32) + (x.to(tl.uint32) < y.to(tl.uint32)).to(tl.int32) * 2)
    tl.store(out + 6 * N + i, (x.to(tl.float32) * 3.7).to(tl.int32))


def test_integer_arithmetic_is_that_of_c() -> None:
    torch.manual_seed(4)
    n = 128
    a = torch.randint(-(2**31), 2**31 - 1, (n,), dtype=torch.int64).int()
    b = torch.randint(1, 1000, (n,), dtype=torch.int64).int() * torch.where(torch.rand(n) < 0.5, 1, -1).int()
    out = torch.zeros(7 * n, dtype=torch.int32)
    run(integers, (1,), a, b, out, N=n)
    rows = out.reshape(7, n)
    assert torch.equal(rows[0], torch.div(a, b, rounding_mode="trunc"))
    assert torch.equal(rows[1], torch.fmod(a, b))
    assert torch.equal(rows[2], a >> 3)
    assert rows[3].tolist() == [((v & 0xFFFFFFFF) >> 3) for v in a.tolist()]
    high = [((x & 0xFFFFFFFF) * (y & 0xFFFFFFFF)) >> 32 for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    assert [v & 0xFFFFFFFF for v in rows[4].tolist()] == high
    below = [(x < y) + 2 * ((x & 0xFFFFFFFF) < (y & 0xFFFFFFFF)) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    assert rows[5].tolist() == below
    assert rows[6].max().item() == 2**31 - 1  # conversions saturate


@triton.jit
def tiles(x, y, out, desc, M, N, BM: tl.constexpr, BN: tl.constexpr):
    row = tl.program_id(0) * BM
    pointer = tl.make_block_ptr(x, (M, N), (N, 1), (row, 0), (BM, BN), (1, 0))
    a = tl.load(pointer, boundary_check=(0, 1), padding_option="zero")
    pointer = tl.advance(pointer, (0, BN))
    a += tl.load(pointer, boundary_check=(0, 1), padding_option="zero")
    made = tl.make_tensor_descriptor(y, [M, N], [N, 1], [BM, BN])
    a += made.load([row, 0]) * desc.load([row, 0])
    target = tl.make_block_ptr(out, (M, BN), (BN, 1), (row, 0), (BM, BN), (1, 0))
    tl.store(target, a, boundary_check=(0, 1))


def test_block_pointers_and_descriptors() -> None:
    torch.manual_seed(5)
    m, n, bm, bn = 50, 40, 16, 32
    x, y, z = (torch.randn(m, n) for _ in range(3))
    out = torch.zeros(m, bn)
    run(tiles, (4,), x, y, out, TensorDescriptor.from_tensor(z, [bm, bn]), m, n, BM=bm, BN=bn)
    tail = torch.zeros(m, bn)
    tail[:, : n - bn] = x[:, bn:]
    torch.testing.assert_close(out, x[:, :bn] + tail + y[:, :bn] * z[:, :bn])


@triton.jit
def tupled(pair, out, sizes, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(pair[0] + i) * sizes[1] + tl.load(pair[1] + i), mask=i < sizes[0])


def test_tuple_arguments() -> None:
    a, b, out = torch.randn(16), torch.randn(16), torch.zeros(16)
    run(tupled, (1,), (a, b), out, (10, 3), BLOCK=16)
    want = torch.zeros(16)
    want[:10] = (a * 3 + b)[:10]
    torch.testing.assert_close(out, want)


@triton.jit
def table(pointers, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    source = tl.load(pointers + tl.program_id(0)).to(tl.pointer_type(tl.float32))
    tl.store(out + tl.program_id(0) * BLOCK + i, tl.load(source + i))


def test_pointers_stored_in_a_tensor() -> None:
    parts = [torch.randn(32) for _ in range(3)]
    pointers = torch.tensor([p.data_ptr() for p in parts], dtype=torch.int64)
    out = torch.zeros(3, 32)
    run(table, (3,), pointers, out, BLOCK=32)
    torch.testing.assert_close(out, torch.stack(parts))


@triton.jit
def assembly(x, out, TEXT: tl.constexpr, CONSTRAINTS: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i)
    y = tl.inline_asm_elementwise(TEXT, CONSTRAINTS, [v], dtype=tl.float32, is_pure=True, pack=1)
    tl.store(out + i, y)


def test_known_assembly_runs_and_unknown_is_refused() -> None:
    x, out = torch.randn(64), torch.zeros(64)
    run(assembly, (1,), x, out, TEXT="tanh.approx.f32 $0, $1;", CONSTRAINTS="=f,f", BLOCK=64)
    torch.testing.assert_close(out, x.tanh())
    run(assembly, (1,), x, out, TEXT="v_exp_f32 $0, $1", CONSTRAINTS="=v,v", BLOCK=64)
    torch.testing.assert_close(out, x.exp2())
    with pytest.raises(InterpreterUnsupported, match="inline assembly"):
        run(assembly, (1,), x, out, TEXT="nanosleep.u32 $1; mov.b32 $0, $1;", CONSTRAINTS="=r,r", BLOCK=64)


@triton.jit
def shift(x, out, n, by, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i + by, tl.load(x + i), mask=i < n)


def test_accesses_outside_a_tensor_are_found_and_do_no_harm() -> None:
    whole = torch.zeros(256)
    x, out = torch.arange(100.0), torch.zeros(100)
    done = run(shift, (1,), x, out, 100, 3, BLOCK=128)
    kinds = {f.message.split(":")[0] for f in done.findings}
    assert kinds == {"out-of-bounds load", "out-of-bounds store"}
    store = next(f for f in done.findings if "store" in f.message)
    assert store.lanes == 3 and store.line is not None and "out" in store.message
    torch.testing.assert_close(out[3:], x[:97])
    assert not whole.any()


@triton.jit
def checked(x, BLOCK: tl.constexpr):
    v = tl.load(x + tl.arange(0, BLOCK))
    tl.device_assert(v >= 0, "negative input")


def test_device_assertions() -> None:
    x = torch.ones(16)
    interpret_launch(checked, (1,), (x,), {"BLOCK": 16, "debug": True}, target=GFX942)
    x[3] = -1
    with pytest.raises(InterpreterAssertion, match="negative input"):
        interpret_launch(checked, (1,), (x,), {"BLOCK": 16, "debug": True}, target=GFX942)


def test_budget_ends_a_launch() -> None:
    x, out = torch.zeros(128), torch.zeros(128)
    for budget_s, said in (
        (0.01, "did not finish within 0.01 s: 0"),
        (12.0, "would take about [0-9]+ s, 12 s are allowed: [0-9]+"),
    ):
        with pytest.raises(InterpreterBudget, match=f"{said} of 100000000 programs ran") as raised:
            interpret_launch(shift, (10**8,), (x, out, 128, 0), {"BLOCK": 128}, budget_s=budget_s, target=GFX942)
        assert Execution("unknown", reason=str(raised.value)).over_budget


@triton.jit
def random(out, seed, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.rand(seed, i))


def test_random_numbers_are_philox() -> None:
    out = torch.zeros(4096)
    run(random, (4,), out, 7, BLOCK=1024)
    assert out.min() >= 0 and out.max() < 1 and abs(out.mean() - 0.5) < 0.02
    again = torch.zeros(4096)
    run(random, (16,), again, 7, BLOCK=256)
    assert torch.equal(out, again)


@triton.jit
def scaled(a, sa, b, sb, c, N: tl.constexpr, K: tl.constexpr, FORMAT: tl.constexpr, PACK: tl.constexpr):
    r, k, g = tl.arange(0, N), tl.arange(0, K // PACK), tl.arange(0, K // 32)
    x = tl.load(a + r[:, None] * (K // PACK) + k[None, :])
    y = tl.load(b + r[None, :] * (K // PACK) + k[:, None])
    u = tl.load(sa + r[:, None] * (K // 32) + g[None, :])
    v = tl.load(sb + r[:, None] * (K // 32) + g[None, :])
    tl.store(c + r[:, None] * N + r[None, :], tl.dot_scaled(x, u, FORMAT, y, v, FORMAT))


@pytest.mark.parametrize("kind", ["e2m1", "e4m3"])
def test_scaled_dot(kind: str) -> None:
    torch.manual_seed(6)
    n, k = 32, 64
    scales = [torch.randint(124, 131, (n, k // 32), dtype=torch.uint8) for _ in range(2)]
    if kind == "e2m1":
        codes = [torch.randint(0, 256, (n, k // 2), dtype=torch.uint8) for _ in range(2)]
        lut = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6])
        lut = torch.cat([lut, -lut])
        values = [torch.stack([lut[(q & 15).long()], lut[(q >> 4).long()]], -1).reshape(n, k) for q in codes]
    else:
        codes = [torch.randn(n, k).to(torch.float8_e4m3fn) for _ in range(2)]
        values = [q.float() for q in codes]
        codes = [q.view(torch.uint8) for q in codes]
    wide = [v * torch.exp2(s.float() - 127).repeat_interleave(32, 1) for v, s in zip(values, scales, strict=True)]
    c = torch.empty(n, n)
    pack = 2 if kind == "e2m1" else 1
    run(scaled, (1,), codes[0], scales[0], codes[1], scales[1], c, N=n, K=k, FORMAT=kind, PACK=pack, target=GFX950)
    torch.testing.assert_close(c, wide[0] @ wide[1].T, atol=1e-3, rtol=1e-4)


@triton.jit
def mathy(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    w = v.to(tl.bfloat16)
    y = tl.exp(v) + tl.log(tl.abs(v) + 1) + tl.sin(v) + tl.math.rsqrt(v * v + 1) + tl.sigmoid(v) + tl.erf(v)
    y += tl.where(v > 0, tl.sqrt_rn(tl.abs(v)), tl.div_rn(v, 3.0)) + tl.clamp(v, -0.5, 0.5) + tl.fma(v, v, v)
    y += (w * w + w).to(tl.float32) + tl.floor(v) + tl.ceil(v) + tl.softmax(v)
    tl.store(out + i, y)


def test_math_and_bf16_arithmetic() -> None:
    torch.manual_seed(7)
    x = torch.randn(256)
    out = torch.zeros(256)
    run(mathy, (1,), x, out, N=256)
    d, w = x.double(), x.bfloat16()
    want = d.exp() + (d.abs() + 1).log() + d.sin() + (d * d + 1).rsqrt() + d.sigmoid() + torch.erf(d)
    want += torch.where(d > 0, d.abs().sqrt(), d / 3) + d.clamp(-0.5, 0.5) + d * d + d
    want += (w * w + w).double() + d.floor() + d.ceil() + d.softmax(0)
    torch.testing.assert_close(out.double(), want, atol=1e-5 * math.e, rtol=1e-5)
