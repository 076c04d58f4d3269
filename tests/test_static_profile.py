"""Static profiles of really compiled kernels, and how two are compared."""

from functools import cache

import pytest
import torch
import triton
import triton.language as tl

from sandbox.bottleneck import LaunchShape, classify
from sandbox.compiling import Compiled, compile_launch
from sandbox.limits import check_launch
from sandbox.profiler import amdgcn
from sandbox.profiler.metrics import Metric, Profile
from sandbox.profiler.static import asm_profile, compare_static, resource_gains, static_profile
from sandbox.target import load_target


@triton.jit
def gemm(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        x = tl.load(a + rm[:, None] * K + (k + rk)[None, :])
        y = tl.load(b + (k + rk)[:, None] * N + rn[None, :])
        acc = tl.dot(x, y, acc)
    tl.store(c + rm[:, None] * N + rn[None, :], acc.to(tl.float16))


@triton.jit
def scatter(index, value, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    at = tl.load(index + i, mask=i < n, other=0)
    tl.atomic_add(out + at, tl.load(value + i, mask=i < n, other=0.0), mask=i < n)


@triton.jit
def activation(x, y, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i)
    tl.store(y + i, tl.exp(v) + tl.sin(v) + 1 / (1 + tl.exp2(v)))


@cache
def compiled(kind: str, arch: str, **options: int) -> Compiled:
    half, single = torch.zeros(512, 512, dtype=torch.float16), torch.zeros(4096)
    sizes = {"BM": 128, "BN": 128, "BK": 64}
    launches = {
        "gemm": (gemm, (half, half, half.clone(), 512, 512, 512), sizes),
        "bf16": (scatter, (torch.zeros(4096, dtype=torch.int32), single.bfloat16(), single.bfloat16(), 4095), {}),
        "fp32": (scatter, (torch.zeros(4096, dtype=torch.int32), single, single, 4095), {}),
        "activation": (activation, (single, single.clone()), {}),
    }
    kernel, args, constants = launches[kind]
    constants = constants or {"BLOCK": 256}
    result = compile_launch(kernel, args, {**constants, **options}, load_target(arch))
    assert isinstance(result, Compiled), result
    return result


def profile(kind: str, arch: str = "gfx942", **options: int) -> Profile:
    return static_profile(compiled(kind, arch, **options), load_target(arch))


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
def test_gemm(arch: str) -> None:
    p = profile("gemm", arch, num_warps=8, num_stages=2)
    assert p.count("mfma_count") > 0 and p.count("mfma_count_in_loops") > 0
    shapes = {m.name for m in p if m.name.startswith("mfma_") and "x" in m.name}
    assert any("f16" in name for name in shapes), shapes
    assert p.count("lds_bytes") == 32768 and p.count("threads_per_workgroup") == 512
    assert p.count("vgpr_count") == p.count("arch_vgpr_count") + p.count("agpr_count")
    assert p.number("global_load_mean_bytes") == 16 and p.count("global_load_16b_count") == p.count("global_load_count")
    assert p.count("barrier_count") >= 2 and p.count("waitcnt_count") > 0 and p.count("code_bytes") > 1000
    assert p.count("block_elements") == 128 * 128 and profile("fp32", arch).count("block_elements") == 256
    total = sum(m.value for m in p if m.name.endswith("_count") and m.name[:-6] in KINDS)
    assert total == p.count("instructions")
    lines = {site.line for site in p.sites["mfma"]}
    assert lines == {line_of("acc = tl.dot(x, y, acc)")}


KINDS = frozenset(
    {
        *("mfma", "valu", "transcendental", "conversion", "fp64", "accvgpr_move", "salu", "scalar_memory"),
        *("lds_load", "lds_store", "lds_atomic", "lane_permute", "global_load", "global_load_lds", "global_store"),
        *("global_atomic", "cache_maintenance", "barrier", "waitcnt", "scratch", "branch", "call", "scheduling"),
    }
)


def line_of(text: str) -> int:
    with open(__file__) as file:
        return next(n for n, line in enumerate(file, 1) if line.strip() == text)


def test_atomics_by_kind_and_fences() -> None:
    slow, fast = profile("bf16"), profile("fp32")
    assert slow.count("cas_loop_count") == 2 and slow.count("global_atomic_cmpswap_count") == 2
    assert slow.count("cache_maintenance_count") > 0
    assert fast.count("cas_loop_count") == 0 and fast.count("global_atomic_count") >= 1
    assert slow.sites["cas_loop"][0].line == line_of(
        "tl.atomic_add(out + at, tl.load(value + i, mask=i < n, other=0.0), mask=i < n)"
    )
    names = [b.name for b in classify(slow, load_target("gfx942"))]
    assert names[0] == "atomic-cas-loops" and "fences" in names
    assert "atomic-cas-loops" not in [b.name for b in classify(fast, load_target("gfx942"))]


def test_transcendental_kernel_is_named_so() -> None:
    p = profile("activation")
    assert p.count("transcendental_count") >= 3
    assert not p.count("mfma_count")


def test_limits_of_a_deep_pipeline() -> None:
    deep = compiled("gemm", "gfx942", num_warps=8, num_stages=4)
    target = load_target("gfx942")
    p = static_profile(deep, target)
    assert p.number("occupancy_waves_per_simd") == 0 and p.word("occupancy_limiter") == "lds"
    found = check_launch(target, lds_bytes=deep.lds_bytes, threads_per_workgroup=512, grid=(4, 4, 1))
    assert [f.kind for f in found] == ["lds"] and found[0].required == deep.lds_bytes == 98304
    worst = classify(p, target, LaunchShape(programs=16, num_stages=4, has_dot=True, limits=found))[0]
    assert worst.name == "lds-overflow" and worst.severity == 1.0 and "98304" in worst.statement
    assert not check_launch(load_target("gfx950"), lds_bytes=98304, threads_per_workgroup=512, grid=(4, 4, 1))


def test_more_spills_are_never_a_gain() -> None:
    calm, spilling = profile("gemm", num_warps=4), profile("gemm", num_warps=4, waves_per_eu=8)
    assert spilling.count("vgpr_spill_count") > 0 and spilling.count("scratch_count") > 0
    target = load_target("gfx942")
    assert classify(spilling, target)[0].name == "vgpr-spills"
    better = compare_static(spilling, calm, {"vgpr_spill_count": "zero"}, target)
    assert better.gain and better.statement.startswith("vgpr_spill_count ") and better.statement.endswith("-> 0")
    worse = compare_static(calm, spilling, {"vgpr_count": "down"}, target)
    assert not worse.gain and "vgpr_count" in worse.improved and "vgpr_spill_count" in worse.worsened
    assert worse.statement.startswith("worse: vgpr_spill_count 0 -> ")
    assert "scratch_bytes" in resource_gains(spilling, calm)


def test_comparison_needs_the_named_metric_to_move() -> None:
    target = load_target("gfx942")
    slow, fast = profile("bf16"), profile("fp32")
    gained = compare_static(slow, fast, {"cas_loop_count": "zero", "agpr_count": "down"}, target)
    assert gained.gain and gained.unmoved == ("agpr_count",)
    same = compare_static(slow, slow, {"cas_loop_count": "down"}, target)
    assert not same.gain and same.statement == "no expected resource moved"
    unknown = compare_static(slow, fast, {"l2_hit_rate": "up"}, target)
    assert not unknown.gain and unknown.unmoved == ("l2_hit_rate",)


@pytest.mark.parametrize(
    ("after", "gain"),
    [
        ({"instructions": 396, "valu_count_in_loops": 200}, False),
        ({"instructions": 300, "valu_count_in_loops": 200}, False),
        ({"instructions": 300, "valu_count_in_loops": 150}, True),
    ],
)
def test_a_few_instructions_less_or_less_beside_a_loop_is_no_gain(after: dict[str, int], gain: bool) -> None:
    target = load_target("gfx942")
    before = {"instructions": 400, "valu_count_in_loops": 200}
    old, new = (Profile("k", "gfx942", {n: Metric(n, v) for n, v in side.items()}) for side in (before, after))
    assert compare_static(old, new, {"instructions": "down"}, target).gain is gain


def test_lds_over_the_limit_is_worse_whatever_improved() -> None:
    target = load_target("gfx942")
    shallow = profile("gemm", num_warps=8, num_stages=2)
    deep = profile("gemm", num_warps=8, num_stages=4)
    judged = compare_static(shallow, deep, {"branch_count": "up", "vgpr_count": "down"}, target)
    assert not judged.gain and judged.worsened["lds_bytes"] == (32768, 98304)


def test_nvidia_says_what_it_does_not_know() -> None:
    p = profile("activation", "sm_90")
    assert p.count("threads_per_workgroup") == 128
    unknown = p.metrics["vgpr_count"]
    assert unknown.value is None and unknown.reason


def test_profiles_survive_json() -> None:
    p = profile("bf16").with_metrics([Metric("l2_hit_rate", 0.5, "share", "rocprofv3", "hits / requests")])
    back = Profile.from_json(p.to_json())
    assert back == p


def test_unknown_kernels_raise() -> None:
    with pytest.raises(ValueError, match="no kernel named nothing"):
        asm_profile(compiled("fp32", "gfx942").asm, "nothing", load_target("gfx942"))


@pytest.mark.parametrize(
    ("text", "kind", "width"),
    [
        ("buffer_load_dwordx4 v[0:3], v4, s[0:3], 0 offen", "global_load", 16),
        ("buffer_load_ushort v8, v2, s[4:7], 0 offen", "global_load", 2),
        ("buffer_load_dword v1, s[0:3], 0 offen lds", "global_load_lds", 4),
        ("global_load_lds_dwordx4 v[0:1], off", "global_load_lds", 16),
        ("flat_store_byte v[0:1], v2", "global_store", 1),
        ("global_load_sbyte_d16_hi v1, v[2:3], off", "global_load", 1),
        ("ds_read_b64_tr_b16 v[0:1], v2", "lds_load", 8),
        ("ds_read2st64_b32 v[0:1], v2", "lds_load", 8),
        ("ds_write_b128 v0, v[1:4]", "lds_store", 16),
        ("ds_read_u16_d16_hi v0, v1", "lds_load", 2),
        ("ds_add_rtn_f32 v0, v1, v2", "lds_atomic", 4),
        ("ds_bpermute_b32 v0, v1, v2", "lane_permute", 4),
        ("global_atomic_pk_add_bf16 v[8:9], v10, off", "global_atomic", 4),
        ("buffer_atomic_add_f32 v0, v1, s[0:3], 0 offen", "global_atomic", 4),
        ("global_atomic_add_f64 v[0:1], v[2:3], off", "global_atomic", 8),
        ("v_mfma_scale_f32_32x32x64_f8f6f4 a[0:15], v[0:7], v[8:15], a[0:15], v1, v2", "mfma", 0),
        ("v_smfmac_f32_32x32x16_f16 v[0:15], v[0:1], v[2:5], v6", "mfma", 0),
        ("v_exp_f32_e32 v0, v1", "transcendental", 0),
        ("v_cvt_pk_f16_f32 v0, v1, v2", "conversion", 0),
        ("v_fma_f64 v[0:1], v[2:3], v[4:5], v[6:7]", "fp64", 0),
        ("buffer_wbl2 sc1", "cache_maintenance", 0),
        ("s_waitcnt vmcnt(0)", "waitcnt", 0),
        ("s_load_dwordx8 s[4:11], s[0:1], 0x8", "scalar_memory", 0),
        ("s_cbranch_execz .LBB0_9", "branch", 0),
        ("s_and_saveexec_b64 s[4:5], s[2:3]", "salu", 0),
        ("scratch_load_dwordx3 v[0:2], off, off offset:16", "scratch", 12),
    ],
)
def test_instruction_classes(text: str, kind: str, width: int) -> None:
    mnemonic, _, operands = text.partition(" ")
    found, bytes_per_lane = amdgcn.classify(mnemonic, operands)
    assert found == kind
    if kind not in ("lane_permute",):
        assert bytes_per_lane == width
