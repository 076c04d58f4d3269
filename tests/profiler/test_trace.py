"""Timelines of real programs: categories, idle time, and two vendors side by side."""

import csv
import json
from pathlib import Path

import pytest

from sandbox.errors import InputError
from sandbox.profiler.categories import category
from sandbox.profiler.proton import parse_tree, read_tree, roofline_share
from sandbox.profiler.roofline import Point, least_time_us, roofline_svg
from sandbox.profiler.timeline import Span, compare, read_trace, summarize, worth_porting
from sandbox.target import load_target

DATA = Path(__file__).parent.parent / "data" / "rocprof"


def test_categories_of_the_bert_pair_agree_with_its_report() -> None:
    mi300 = read_trace(DATA / "bert" / "mi300_bert_small.json.gz")
    share = {name: us / mi300.kernel_us * 100 for name, us in mi300.categories.items()}
    rows = csv.DictReader((DATA / "bert" / "ops_summary_by_category.csv").open())
    report = {r["op category"]: float(r["Percentage (%)"]) for r in rows}
    # their "other" holds attention and index_select; the copy is outside their kernel table
    ours = {
        "GEMM": share["gemm"],
        "other": share["attention"] + share["embedding"],
        "elementwise": share["elementwise"],
        "NORM_fwd": share["norm"],
        "reduce": share["reduction"],
    }
    for name, expected in report.items():
        assert ours[name] == pytest.approx(expected, abs=2.0), name
    timeline = {r["type"]: r for r in csv.DictReader((DATA / "bert" / "gpu_timeline.csv").open())}
    assert mi300.busy_us == pytest.approx(float(timeline["busy_time"]["time ms"]) * 1e3, rel=0.01)
    assert mi300.idle_share * 100 == pytest.approx(float(timeline["idle_time"]["percent"]), abs=1.0)


def test_two_vendors_side_by_side() -> None:
    pairs = compare(
        read_trace(DATA / "bert" / "mi300_bert_small.json.gz"), read_trace(DATA / "bert" / "h100_bert_small.json.gz")
    )
    assert pairs[0].category == "attention"
    assert pairs[0].ratio == pytest.approx(3.04, abs=0.01)
    assert {p.category: p.ratio for p in pairs}["gemm"] < 1


def test_the_training_step_is_bound_by_collectives() -> None:
    step = read_trace(DATA / "mi350x_training_results.json.gz")
    assert step.launches == 43_915
    assert step.categories["collective"] / step.kernel_us == pytest.approx(0.936, abs=0.001)
    assert step.short_kernels == 35_968
    assert step.busy_us / 1e6 == pytest.approx(4.23, abs=0.01)
    assert step.span_us / 1e6 == pytest.approx(15.12, abs=0.01)
    assert all(k.category not in ("collective", "copy") for k in worth_porting(step))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", "collective"),
        ("void vllm::cross_device_reduce_1stage<half, 8>(...)", "collective"),
        ("attn_fwd", "attention"),
        ("void pytorch_flash::flash_fwd_kernel<...cutlass::bfloat16_t>", "attention"),
        ("Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT256x192x64", "gemm"),
        ("nvjet_tst_256x128_64x4_2x1_v_bz_coopA_TNN", "gemm"),
        ("triton_poi_fused__unsafe_view_mul_silu_2", "inductor pointwise"),
        ("triton_red_fused_add_mean_mul_pow_rsqrt_0", "inductor reduction"),
        ("triton_per_fused_native_layer_norm_1", "inductor persistent reduction"),
        ("triton_for_fused_3", "inductor foreach"),
        ("triton_poi_fused_embedding_0", "embedding"),
        ("void at::native::(anonymous namespace)::indexSelectLargeIndex<c10::BFloat16>", "embedding"),
        ("void at::native::vectorized_elementwise_kernel<4, {lambda(float)#1}>", "elementwise"),
        ("void at::native::reduce_kernel<512, 1, at::native::ReduceOp<{lambda(float)#1}>>", "reduction"),
        ("void at::native::multi_tensor_apply_kernel<>", "optimizer"),
        ("__amd_rocclr_copyBuffer", "copy"),
        ("_jagged_bwd_kernel", "hand-written triton"),
        ("Mystery<int>(int)", "other"),
    ],
)
def test_category_by_name(name: str, expected: str) -> None:
    assert category(name) == expected


def test_overlap_gaps_and_exposed_collectives_by_hand() -> None:
    spans = [
        Span("a", 0, 10, "0", "1", "gemm"),
        Span("b", 5, 15, "0", "2", "collective"),
        Span("c", 20, 30, "0", "1", "gemm"),
        Span("d", 0, 40, "1", "1", "gemm"),
    ]
    s = summarize(spans)
    assert (s.busy_us, s.kernel_us, s.overlap_us, s.longest_gap_us) == (65, 70, 5, 5)
    assert s.exposed_collective_us == 5
    assert s.imbalance == pytest.approx(40 / 32.5 - 1)
    assert s.idle_share == pytest.approx(1 - 65 / 80)


def test_proton_chrome_trace_is_one_object_per_line(tmp_path: Path) -> None:
    lines = [
        {"displayTimeUnit": "us", "traceEvents": [
            {"name": "k", "cat": "kernel", "ph": "X", "ts": 1.0, "dur": 2.0, "tid": s}]}
        for s in (1, 2)
    ]  # fmt: skip
    path = tmp_path / "p.chrome_trace"
    path.write_text("\n".join(json.dumps(line) for line in lines))
    assert read_trace(path).launches == 2


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.json", "{", "not complete JSON"),
        ("a.json", '{"traceEvents": []}', "holds no GPU kernel"),
        ("a.json", "7", "not a trace"),
        ("a.json", '{"traceEvents": [{"ph": "X", "cat": "kernel", "ts": "x"}, 3]}', "holds no GPU kernel"),
    ],
)
def test_bad_traces(tmp_path: Path, name: str, text: str, message: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=message):
        read_trace(tmp_path / name)


def test_proton_trees() -> None:
    hip = read_tree(DATA / "proton" / "hip.json")
    assert {(k.name, k.device, k.total_ns) for k in hip.kernels} == {
        ("foo0", "HIP 1", 204800),
        ("foo1", "HIP 0", 204800),
    }
    assert hip.devices["HIP 1"]["arch"] == "gfx942"
    board = load_target("MI300X").board
    share = roofline_share(hip.kernels[0], board.peak_tflop_per_s, board.hbm_gb_per_s)
    assert share == pytest.approx(max(1e11 / (board.peak_tflop_per_s["fp8"] * 1e3), 1e8 / 5300) / 204800)
    # a kernel Proton launched for its own metadata is not the program's
    assert [k.name for k in read_tree(DATA / "proton" / "triton.json").kernels] == ["triton_kernel"]


def test_an_empty_proton_tree_is_an_error_not_zero_time() -> None:
    empty = [{"children": [], "frame": {"name": "ROOT", "type": "function"}, "metrics": {}}, {}]
    with pytest.raises(InputError, match="saw nothing.*back end"):
        parse_tree(empty)
    for junk in ({}, [], [1], "x", None):
        with pytest.raises(InputError, match="not a Proton tree"):
            parse_tree(junk)


def test_stall_shares_of_proton_samples() -> None:
    tree = [
        {"frame": {"name": "ROOT"}, "metrics": {}, "children": [
            {"frame": {"name": "k"}, "children": [], "metrics": {
                "device_id": "0", "device_type": "CUDA", "num_samples": 10, "num_stalled_samples": 8,
                "stalled_long_scoreboard": 6, "stalled_barrier": 2}}]},
    ]  # fmt: skip
    (kernel,) = parse_tree(tree).kernels
    assert (kernel.samples, kernel.total_ns) == (10, 0.0)
    assert kernel.stall_shares() == {"long_scoreboard": 0.75, "barrier": 0.25}


def test_a_roofline_names_its_ceiling_and_evidence() -> None:
    board = load_target("MI350X").board
    points = [Point("baseline", 1e12, 1e9, 2000, "measured"), Point("patch <1>", 1e12, 5e8, 900, "measured")]
    svg = roofline_svg(board, "bf16", points, "gemm & co")
    assert "MI350X bf16 peak 2306.9 TFLOP/s" in svg
    assert "patch &lt;1&gt;" in svg
    assert "(measured)" in svg
    assert least_time_us(board, "bf16", 2306.9e12, 0) == pytest.approx(1e6)
    assert least_time_us(board, "bf16", 0, 8000e9) == pytest.approx(1e6)
