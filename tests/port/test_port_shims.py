"""Shims against Python and against the 32-lane model: every contract `exact` that arithmetic can settle."""

import json

import numpy as np
import pytest

from agent.port.loop import port
from agent.port.request import PortRequest
from agent.shims.catalogue import load_catalogue, with_requirements
from agent.shims.generate import ShimPlan, compat_header, missing_symbols
from sandbox.emulator.loader import load_code_object
from sandbox.emulator.memory import Memory
from sandbox.emulator.run import emulate
from sandbox.hip import HipOptions, SourceTree, compile_hip
from sandbox.toolchain import find_toolchain


@pytest.fixture(scope="module")
def everything() -> str:
    plan = ShimPlan(tuple(with_requirements(load_catalogue())), {}, (), ())
    return compat_header(plan, find_toolchain())


def run(body: str, header: str, *arrays: np.ndarray, threads: int = 64, arch: str = "gfx942") -> None:
    parameters = ", ".join(f"{ctype(a)}* a{i}" for i, a in enumerate(arrays))
    head = '#include "compat.h"\nusing namespace wavesmith;\nextern "C" __global__ void k('
    source = f"{head}{parameters}) {{ int i = threadIdx.x; {body} }}\n"
    tree = SourceTree({"k.hip": source, "compat.h": header}, flags=("-w",))
    build = compile_hip(tree, "k.hip", arch, find_toolchain())
    assert build.ok, [str(d) for d in build.errors][:5]
    memory = Memory()
    arguments = [memory.allocate(f"a{i}", a) for i, a in enumerate(arrays)]
    result = emulate(load_code_object(build.code_object), "k", (1, 1, 1), (threads, 1, 1), arguments, memory)
    assert result.completed, result.reason or result.trap


def ctype(a: np.ndarray) -> str:
    return {"f4": "float", "f8": "double", "u4": "unsigned", "i4": "int", "u1": "unsigned char", "u2": "unsigned short",
            "u8": "unsigned long long"}[a.dtype.str[1:]]  # fmt: skip


def test_the_whole_header_compiles_on_the_host_too(everything: str) -> None:
    tree = SourceTree({"k.hip": '#include "compat.h"\n', "compat.h": everything}, flags=("-w",))
    for name in ("gfx950", "host"):
        build = compile_hip(tree, "k.hip", name, find_toolchain(), HipOptions(syntax_only=True))
        assert build.ok, [str(d) for d in build.errors][:5]


def test_probes_find_what_is_missing_and_what_is_not() -> None:
    missing = missing_symbols(find_toolchain())
    if find_toolchain().hip_version < (7, 0, 0):
        assert {"dot_products:__dp4a", "bfloat16_pairs:make_bfloat162"} <= missing
    assert "fast_functions:__expf" not in missing


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
def test_fp8_decodes_all_codes_and_encodes_them_back(everything: str, arch: str) -> None:
    codes = np.arange(256, dtype=np.uint8)
    e4, e5 = np.zeros(256, np.float32), np.zeros(256, np.float32)
    back4, back5 = np.zeros(256, np.uint8), np.zeros(256, np.uint8)
    body = (
        "a1[i] = from_fp8<3>(a0[i]); a2[i] = from_fp8<2>(a0[i]);"
        " a3[i] = to_fp8<3>(a1[i], true); a4[i] = to_fp8<2>(a2[i], false);"
    )
    run(body, everything, codes, e4, e5, back4, back5, threads=256, arch=arch)

    def value(code: int, mantissa: int, bias: int) -> float:
        exponent, fraction = (code & 0x7F) >> mantissa, code & ((1 << mantissa) - 1)
        if mantissa == 3 and code & 0x7F == 0x7F:
            return float("nan")
        if mantissa == 2 and exponent == 31:
            return float("nan") if fraction else float("inf") * (-1 if code & 0x80 else 1)
        size = (
            (1 + fraction / (1 << mantissa)) * 2.0 ** (exponent - bias)
            if exponent
            else fraction * 2.0 ** (1 - bias - mantissa)
        )
        return -size if code & 0x80 else size

    np.testing.assert_array_equal(e4, np.array([value(c, 3, 7) for c in range(256)], np.float32))
    np.testing.assert_array_equal(e5, np.array([value(c, 2, 15) for c in range(256)], np.float32))
    finite4, finite5 = ~np.isnan(e4), ~np.isnan(e5)
    np.testing.assert_array_equal(back4[finite4], codes[finite4])
    np.testing.assert_array_equal(back5[finite5], codes[finite5])


def test_fp8_rounds_ties_to_even_and_saturates(everything: str) -> None:
    values = np.array(
        [0.0, -0.0, 448.0, 464.0, 465.0, 1e9, 17.0, 19.0, 2.0**-10, 3 * 2.0**-10, np.inf, -1000.0], np.float32
    )
    codes = np.zeros(values.size, np.uint8)
    run(f"if (i < {values.size}) a1[i] = to_fp8<3>(a0[i], true);", everything, values, codes)
    assert codes.tolist() == [0, 0x80, 0x7E, 0x7E, 0x7E, 0x7E, 0x58, 0x5A, 0, 2, 0x7E, 0xFE]


def test_directed_rounding_brackets_the_exact_sum(everything: str) -> None:
    rng = np.random.default_rng(1)
    a = (rng.standard_normal(64) * np.exp2(rng.integers(-40, 40, 64))).astype(np.float32)
    b = (rng.standard_normal(64) * np.exp2(rng.integers(-40, 40, 64))).astype(np.float32)
    low, high, zero = (np.zeros(64, np.float32) for _ in range(3))
    body = "a2[i] = add_to(a0[i], a1[i], -1); a3[i] = add_to(a0[i], a1[i], 1); a4[i] = add_to(a0[i], a1[i], 0);"
    run(body, everything, a, b, low, high, zero)
    from fractions import Fraction

    for x, y, lo, hi, z in zip(a, b, low, high, zero, strict=True):
        exact = Fraction(float(x)) + Fraction(float(y))
        assert Fraction(float(lo)) <= exact <= Fraction(float(hi))
        assert lo == hi or np.nextafter(lo, np.float32(np.inf)) == hi
        assert z == (lo if exact > 0 else hi)


def test_simd_dot_products_and_bits(everything: str) -> None:
    rng = np.random.default_rng(2)
    a, b = rng.integers(0, 1 << 32, 64, dtype=np.uint32), rng.integers(0, 1 << 32, 64, dtype=np.uint32)
    out = np.zeros(64 * 4, np.uint32)
    body = (
        "a2[4*i] = __vaddss4(a0[i], a1[i]); a2[4*i+1] = (unsigned)__dp4a((int)a0[i], (int)a1[i], 7);"
        " a2[4*i+2] = __vabsdiffu2(a0[i], a1[i]); "
        " a2[4*i+3] = ptx::lop3(a0[i], a1[i], ~a0[i], 0xE8) ^ ptx::prmt(a0[i], a1[i], 0x37F9);"
    )
    run(body, everything, a, b, out)
    sa, sb = a.view(np.int8).reshape(64, 4).astype(int), b.view(np.int8).reshape(64, 4).astype(int)
    expected = np.clip(sa + sb, -128, 127).astype(np.int8).view(np.uint32).ravel()
    np.testing.assert_array_equal(out[0::4], expected)
    np.testing.assert_array_equal(out[1::4].view(np.int32), (sa * sb).sum(1) + 7)
    ha, hb = a.view(np.uint16).reshape(64, 2).astype(int), b.view(np.uint16).reshape(64, 2).astype(int)
    np.testing.assert_array_equal(out[2::4], np.abs(ha - hb).astype(np.uint16).view(np.uint32).ravel())

    def permute(x: int, y: int, selector: int) -> int:
        data = x | y << 32
        result = 0
        for k in range(4):
            s = selector >> (4 * k) & 15
            byte = data >> (8 * (s & 7)) & 255
            result |= (255 if byte & 128 else 0 if s & 8 else byte) << (8 * k) if s & 8 else byte << (8 * k)
        return result

    majority = (a & b) | (a & ~a) | (b & ~a)
    np.testing.assert_array_equal(
        out[3::4],
        np.array([int(m) ^ permute(int(x), int(y), 0x37F9) for m, x, y in zip(majority, a, b, strict=True)], np.uint32),
    )


@pytest.mark.parametrize("threads", [64, 48, 96])
def test_warp_shims_see_32_lanes(everything: str, threads: int) -> None:
    x = np.arange(threads, dtype=np.int32)
    out = np.zeros(threads * 4, np.int32)
    body = (
        "a1[4*i] = (int)__ballot_sync(~0u, a0[i] % 3 == 0); a1[4*i+1] = __shfl_sync(~0u, a0[i], 31 & (i + 1));"
        " a1[4*i+2] = (int)__activemask(); a1[4*i+3] = (int)__match_any_sync(~0u, a0[i] / 4);"
    )
    run(body, everything, x, out, threads=threads)
    for i in range(threads):
        warp = range(i // 32 * 32, min(i // 32 * 32 + 32, threads))
        ballot = sum(1 << (j % 32) for j in warp if j % 3 == 0)
        assert np.uint32(out[4 * i]) == ballot
        source = i // 32 * 32 + ((i + 1) & 31)
        if source in warp:
            assert out[4 * i + 1] == source
        assert np.uint32(out[4 * i + 2]) == sum(1 << (j % 32) for j in warp)
        assert np.uint32(out[4 * i + 3]) == sum(1 << (j % 32) for j in warp if j // 4 == i // 4)


def test_the_report_lists_every_shim_with_its_contract(tmp_path) -> None:
    file = tmp_path / "k.cu"
    file.write_text("#include <cuda_runtime.h>\n__global__ void k(int* x) { __stcs(x, __ldcs(x + 1) + 1); }\n")
    result = port(PortRequest(file, out=tmp_path / "out", execute=False))
    assert {u.name: u.contract for u in result.shim_uses} == {
        "cache_load_streaming": "performance-only",
        "cache_store_streaming": "performance-only",
    }
    report = (tmp_path / "out" / "report.md").read_text()
    assert "performance-only" in report and "cache_load_streaming" in report
    assert json.loads((tmp_path / "out" / "report.json").read_text())["outcome"] == "inconclusive"
