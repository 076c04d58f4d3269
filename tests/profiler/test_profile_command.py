"""`wavesmith profile` and `trace`: from a file, from rocprofv3's output, and with a stand-in for rocprofv3 itself."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from agent.profiling import rank
from api.cli import _run
from sandbox.bottleneck import Bottleneck
from sandbox.profiler.timeline import capture_regex, read_trace

DATA = Path(__file__).parent.parent / "data" / "rocprof"
SOURCE = """
import torch
import triton
import triton.language as tl


@triton.jit
def scatter(x_ptr, index_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    where = tl.load(index_ptr + i, mask=i < n, other=0)
    tl.atomic_add(out_ptr + where, tl.load(x_ptr + i, mask=i < n) * 1.5, mask=i < n)


@triton.jit
def too_wide(x_ptr, BLOCK: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, BLOCK), 1.0)


def run(x, index):
    out = torch.zeros(4, device=x.device)
    scatter[(triton.cdiv(x.numel(), 256),)](x, index, out, x.numel(), BLOCK=256)
    return out


if __name__ == "__main__":
    x = torch.randn(3000, device="cuda")
    run(x, torch.zeros(3000, device="cuda", dtype=torch.int32))
    too_wide[(1,)](x, BLOCK=1024, num_warps=32)
"""
TOOL = """#!/usr/bin/env python3
import json, os, pathlib, shutil, subprocess, sys
args = sys.argv[1:]
options, program = args[: args.index("--")], args[args.index("--") + 1 :]
out = pathlib.Path(options[options.index("-d") + 1]) / "host" / "17"
out.mkdir(parents=True)
assert options[options.index("--output-format") + 1] == "csv"
if "-i" in options:
    plan = pathlib.Path(options[options.index("-i") + 1])
    assert "scatter" in plan.read_text()
    n = int(plan.name.removesuffix(".yaml").removeprefix("pass"))
    if n == 1:
        print("error 38: Request exceeds the capabilities of the hardware to collect", file=sys.stderr)
        sys.exit(1)
    shutil.copy(f"{os.environ['DATA']}/MI350/pmc_perf_0.csv", out / "c_counter_collection.csv")
    sys.exit(0)
shutil.copy(f"{os.environ['DATA']}/kernel_trace.csv", out / "t_kernel_trace.csv")
sys.exit(subprocess.call(program))
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "kernels.py"
    path.write_text(SOURCE)
    return path


def answer(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert _run([*words, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_a_file_is_profiled_without_a_gpu(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(capsys, "profile", str(file), "--target", "gfx950")
    scatter, wide = sorted(found["kernels"], key=lambda k: k["kernel"])
    first = scatter["bottlenecks"][0]
    assert first["name"] == "atomics" and "lanes on one address" in first["statement"]
    assert first["evidence"]["atomic_contention"] >= 12 and first["speedup_at_most"] > 1
    assert [b["severity"] for b in scatter["bottlenecks"]] == sorted(
        (b["severity"] for b in scatter["bottlenecks"]), reverse=True
    )
    assert {m["source"] for m in scatter["metrics"]} == {"static", "emulated", "modelled"}
    assert wide["bottlenecks"][0]["name"] == "launch-limit" and wide["bottlenecks"][0]["severity"] == 1
    svg = Path(found["roofline"]).read_text()
    assert svg.startswith("<svg") and "scatter (least time, not measured)" in svg and "MI350X" in svg


def test_candidates_stand_beside_the_file_on_one_roofline(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    candidate = file.with_name("candidate.py")
    candidate.write_text(SOURCE.replace("BLOCK=256", "BLOCK=512").replace(", 256)", ", 512)"))
    found = answer(capsys, "profile", str(file), "--target", "gfx950", "--against", str(candidate))
    beside = {k["kernel"]: k for k in found["against"]["candidate.py"]}
    assert beside["scatter"]["grid"] == [6, 1, 1]
    assert next(k for k in found["kernels"] if k["kernel"] == "scatter")["grid"] == [12, 1, 1]
    svg = Path(found["roofline"]).read_text()
    assert "kernels.py: scatter" in svg and "candidate.py: scatter" in svg


def test_text_names_bottlenecks_and_where_the_roofline_is(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["profile", str(file), "--target", "gfx942", "--kernel", "scatter", "--out", "p"]) == 0
    said = capsys.readouterr()
    assert "scatter: 1 launch, grid 12x1x1" in said.out and "atomics" in said.out and "too_wide" not in said.out
    assert "p/roofline.svg" in said.err.replace("\n", "")


def test_counters_of_a_real_board(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    found = answer(capsys, "profile", "--from", str(DATA / "MI300X"), "--target", "MI300X", "--out", str(tmp_path))
    names = {b["name"] for k in found["kernels"] for b in k["bottlenecks"]}
    assert "uncoalesced" not in names and "l2-locality" not in names, "a perfect copy has neither"


def test_rocprofv3_runs_on_the_recorded_calls(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = tmp_path / "bin" / "rocprofv3"
    tool.parent.mkdir()
    tool.write_text(TOOL)
    tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tool.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("DATA", str(DATA))
    found = answer(capsys, "profile", str(file), "--target", "gfx950", "--rocprof", "--out", str(tmp_path / "live"))
    assert any("pass1: it ended with 1: error 38" in note for note in found["notes"])
    assert not any(note.startswith("trace") for note in found["notes"]), "the recorded calls were repeated for real"
    assert found["kernels"]
    assert (tmp_path / "live" / "rocprofv3" / "replay" / "workload.json").is_file()


def test_without_rocprofv3_and_with_wrong_options(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert _run(["profile", str(file), "--target", "gfx950", "--rocprof"]) != 0
    assert "comes with ROCm" in capsys.readouterr().err.replace("\n", " ")
    assert _run(["profile", "--target", "gfx950"]) == 2
    assert _run(["profile", str(file)]) == 2


def test_a_trace_says_what_to_capture(capsys: pytest.CaptureFixture[str]) -> None:
    path = DATA / "bert" / "mi300_bert_small.json.gz"
    assert capture_regex(read_trace(path)) == "^(attn_fwd)$"
    assert _run(["trace", str(path)]) == 0
    assert "wavesmith capture --target gfx950 --kernel '^(attn_fwd)$' -- COMMAND" in capsys.readouterr().out
    assert answer(capsys, "trace", str(path))["trace"]["capture_kernel"] == "^(attn_fwd)$"
    compiled = capture_regex(read_trace(DATA / "bert" / "mi300_torch_compile_triton.json.gz"))
    assert compiled is not None and "triton_" in compiled and "Cijk" not in compiled


def test_classifiers_are_ranked_in_one_list() -> None:
    static = [Bottleneck("atomics", 0.5, "from the code", {"a": 1}), Bottleneck("fences", 0.6, "")]
    counted = [Bottleneck("atomics", 0.8, "from a run", {"b": 2}, at_most=3.0)]
    first, second = rank(static, counted)
    assert (first.name, first.statement, first.at_most) == ("atomics", "from a run", 3.0)
    assert first.evidence == {"a": 1, "b": 2} and second.name == "fences"
