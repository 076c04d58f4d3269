"""PTX snippets as kernels write them, against what the instructions are documented to do."""

import numpy as np
import pytest
import torch
import triton
import triton.language as tl

from sandbox.interpreter import InterpreterUnsupported, interpret_launch
from sandbox.interpreter_ir import IrError
from sandbox.interpreter_ptx import evaluate
from sandbox.target import load_target


def f32(*values: float) -> np.ndarray:
    return np.array(values, np.float32).view(np.uint32).astype(np.uint64)


def u32(*values: int) -> np.ndarray:
    return np.array([v & 0xFFFFFFFF for v in values], np.uint64)


def as_f32(bits: np.ndarray) -> list[float]:
    return bits.astype(np.uint32).view(np.float32).tolist()


@pytest.mark.parametrize(
    ("asm", "inputs", "want"),
    [
        ("tanh.approx.f32 $0, $1;", [0.5], [np.tanh(0.5)]),
        ("ex2.approx.ftz.f32 $0, $1;", [3.0], [8.0]),
        ("lg2.approx.f32 $0, $1;", [8.0], [3.0]),
        ("rcp.approx.f32 $0, $1;", [4.0], [0.25]),
        ("rsqrt.approx.ftz.f32 $0, $1;", [4.0], [0.5]),
        ("fma.rn.f32 $0, $1, $2, $3;", [2.0, 3.0, 1.0], [7.0]),
        ("add.sat.f32 $0, $1, $2;", [0.75, 0.75], [1.0]),
        ("max.NaN.f32 $0, $1, $2;", [1.0, float("nan")], [float("nan")]),
        ("{ .reg .f32 t; mul.f32 t, $1, $1; add.f32 $0, t, 0f3F800000; }", [3.0], [10.0]),
        ("{.reg .pred p; setp.gt.f32 p, $1, $2; selp.f32 $0, $1, $2, p;}", [2.0, 5.0], [5.0]),
        ("{.reg .pred p; mov.f32 $0, $1; setp.lt.f32 p, $1, 0f00000000; @p neg.f32 $0, $1;}", [-2.0], [2.0]),
    ],
)
def test_floats(asm: str, inputs: list[float], want: list[float]) -> None:
    got = evaluate(asm, 1, [f32(v) for v in inputs])
    np.testing.assert_allclose(as_f32(got[0]), np.float32(want), rtol=1e-6)


@pytest.mark.parametrize(
    ("asm", "inputs", "want"),
    [
        ("and.b32 $0, $1, 0x0F0F0F0F;", [0x12345678], 0x02040608),
        ("shr.u32 $0, $1, 4;", [0xF0000000], 0x0F000000),
        ("shr.s32 $0, $1, 4;", [0xF0000000], 0xFF000000),
        ("shl.b32 $0, $1, 33;", [1], 0),
        ("lop3.b32 $0, $1, $2, $3, 0xEA;", [0xF0F0, 0xFF00, 0x000F], (0xF0F0 & 0xFF00) | 0x000F),
        ("prmt.b32 $0, $1, $2, 0x5410;", [0x33221100, 0x77665544], 0x55441100),
        ("prmt.b32 $0, $1, $2, 0x7531;", [0x33221100, 0x77665544], 0x77553311),
        ("bfe.u32 $0, $1, 8, 8;", [0x12345678], 0x56),
        ("bfe.s32 $0, $1, 8, 8;", [0x1234A678], 0xFFFFFFA6),
        ("bfi.b32 $0, $1, $2, 8, 8;", [0xAB, 0x12345678], 0x1234AB78),
        ("popc.b32 $0, $1;", [0xF00F], 8),
        ("clz.b32 $0, $1;", [0x00010000], 15),
        ("clz.b32 $0, $1;", [0], 32),
        ("brev.b32 $0, $1;", [1], 0x80000000),
        ("mul.hi.u32 $0, $1, $2;", [0xFFFFFFFF, 0xFFFFFFFF], 0xFFFFFFFE),
        ("mul.lo.s32 $0, $1, $2;", [-3, 5], -15),
        ("mad.lo.u32 $0, $1, $2, $3;", [7, 6, 1], 43),
        ("min.s32 $0, $1, $2;", [-3, 5], -3),
        ("min.u32 $0, $1, $2;", [-3, 5], 5),
        ("cvt.rni.s32.f32 $0, $1;", [0x40200000], 2),
        ("cvt.rzi.u32.f32 $0, $1;", [0xC0200000], 0),
        ("cvt.rn.f32.s32 $0, $1;", [-2], 0xC0000000),
        ("cvt.rn.bf16x2.f32 $0, $1, $2;", [0x3F800000, 0x40000000], 0x3F804000),
        ("cvt.rn.f16x2.f32 $0, $1, $2;", [0x3F800000, 0x40000000], 0x3C004000),
        ("cvt.rn.satfinite.e4m3x2.f32 $0, $1, $2;", [0x3F800000, 0x7F000000], 0x387E),
        ("cvt.rn.f16x2.e4m3x2 $0, $1;", [0x3840], 0x38004000 + 0x04000000),
        ("add.f16x2 $0, $1, $2;", [0x3C003C00, 0x40003C00], 0x42004000),
        ("fma.rn.bf16x2 $0, $1, $2, $3;", [0x40003F80, 0x40404000, 0x3F803F80], 0x40E04040),
    ],
)
def test_bits(asm: str, inputs: list[int], want: int) -> None:
    got = evaluate(asm, 1, [u32(v) for v in inputs])
    assert [hex(int(v)) for v in np.broadcast_to(got[0], (1,))] == [hex(want & 0xFFFFFFFF)]


def test_registers_are_packed_and_unpacked() -> None:
    low, high = evaluate("mov.b32 {$0, $1}, $2;", 2, [u32(0xBEEFCAFE)])
    assert (int(low[0]), int(high[0])) == (0xCAFE, 0xBEEF)
    whole = evaluate("mov.b32 $0, {$1, $2};", 1, [np.array([0xCAFE], np.uint64), np.array([0xBEEF], np.uint64)])
    assert int(whole[0][0]) == 0xBEEFCAFE


@pytest.mark.parametrize(
    "asm",
    [
        "ld.global.f32 $0, [$1];",
        "mov.u32 $0, %laneid;",
        "bar.sync 0;",
        "add.rz.f32 $0, $1, $1;",
        "shfl.sync.bfly.b32 $0, $1, 1, 31, -1;",
        "mov.b32 unrelated, $1;",
        "",
    ],
)
def test_everything_else_is_refused(asm: str) -> None:
    with pytest.raises(IrError, match="inline assembly is not interpreted"):
        evaluate(asm, 1, [u32(1)])


@triton.jit
def packed(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i)
    y = tl.inline_asm_elementwise(
        "{ .reg .b32 t; and.b32 t, $1, 0x7f7f7f7f; xor.b32 $0, t, 0x01010101; }",
        "=r,r", [v], dtype=tl.int8, is_pure=True, pack=4,
    )  # fmt: skip
    tl.store(out + i, y)


@triton.jit
def two_results(x, low, high, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    a, b = tl.inline_asm_elementwise(
        """
        and.b32 $0, $2, 15;
        shr.u32 $1, $2, 4;
        """,
        "=r,=r,r", [tl.load(x + i)], dtype=(tl.int32, tl.int32), is_pure=True, pack=1,
    )  # fmt: skip
    tl.store(low + i, a)
    tl.store(high + i, b)


@triton.jit
def timed(out):
    tl.store(
        out, tl.inline_asm_elementwise("mov.u64 $0, %globaltimer;", "=l", [], dtype=tl.int64, is_pure=False, pack=1)
    )


def test_in_kernels() -> None:
    target = load_target("gfx942")
    x = torch.randint(-128, 128, (64,), dtype=torch.int8)
    out = torch.zeros(64, dtype=torch.int8)
    interpret_launch(packed, (1,), (x, out), {"BLOCK": 64}, target=target)
    assert torch.equal(out, (x & 0x7F) ^ 1)
    words = torch.randint(0, 2**31 - 1, (64,), dtype=torch.int32)
    low, high = torch.zeros_like(words), torch.zeros_like(words)
    interpret_launch(two_results, (1,), (words, low, high), {"BLOCK": 64}, target=target)
    assert torch.equal(low, words & 15) and torch.equal(high, words >> 4)
    with pytest.raises(InterpreterUnsupported, match=r"%globaltimer \(.*test_interpreter_ptx.py:\d+\)"):
        interpret_launch(timed, (1,), (torch.zeros(1, dtype=torch.int64),), {}, target=target)
