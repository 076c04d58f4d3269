"""`wavesmith optimize` and `verify` on HIP and CUDA files: real compiler, real emulator, real exit codes."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from agent.report import load_report
from agent.verify import Verification
from api.cli import _run

BOUNDS_CHECK = """#include <{runtime}>
#include <cstdint>

__global__ void bounds_check(int64_t* indices, const int64_t* rows, int* warnings, int n) {{
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  if (indices[i] < 0 || indices[i] >= rows[0]) {{
    indices[i] = 0;
    atomicAdd(warnings, 1);
  }}
}}

void launch(int64_t* indices, const int64_t* rows, int* warnings, int n) {{
  bounds_check<<<(n + 255) / 256, 256>>>(indices, rows, warnings, n);
}}
"""
HIP = BOUNDS_CHECK.format(runtime="hip/hip_runtime.h")
CUDA = BOUNDS_CHECK.format(runtime="cuda_runtime.h")
HEAD = "#include <hip/hip_runtime.h>\n"


def optimize(folder: Path, name: str, text: str, *words: str, target: str = "gfx950") -> tuple[int, Any]:
    (folder / name).write_text(text)
    out = folder / "out"
    code = _run(["optimize", str(folder / name), "--target", target, "--out", str(out), "--seed", "7", *words])
    report = out / "report.json"
    return code, load_report(report.read_text()) if report.is_file() else None


def verify(folder: Path, before: str, after: str, capsys: pytest.CaptureFixture[str]) -> Verification:
    (folder / "before.hip").write_text(before)
    (folder / "after.hip").write_text(after)
    capsys.readouterr()
    words = ["verify", str(folder / "before.hip"), str(folder / "after.hip"), "--target", "gfx950", "--json"]
    code = _run(words)
    found = Verification.model_validate_json(capsys.readouterr().out)
    assert found.exit_code == code
    return found


def test_a_hip_file_comes_out_with_a_patch_that_applies(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, report = optimize(tmp_path, "bounds.hip", HIP)
    assert code == 0, report.summary
    assert (report.outcome, report.correctness.level, report.speed.level) == ("improved", "emulated", "counted")
    assert report.file.language == "hip" and report.baseline.executor == "emulator"
    atomics = next(m for m in report.speed.metrics if m.name == "lane_atomics")
    assert atomics.before >= 0.9 * 256 / 64 * atomics.after
    assert "Not timed on gfx950" in report.summary and "x faster" not in report.summary
    checks = {c.name: c.passed for c in report.correctness.checks}
    assert checks["exact"] and checks["data-race"] and checks["out-of-bounds"]
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    subprocess.run(["git", "apply", "out/wavesmith.patch"], cwd=tmp_path, check=True)
    assert (tmp_path / "bounds.hip").read_text() == (tmp_path / "out/patched/bounds.hip").read_text()
    again = _run(["replay", str(tmp_path / "out"), "--out", str(tmp_path / "again")])
    assert again == 0, capsys.readouterr()


def test_a_cuda_file_is_ported_first_and_the_report_says_so(tmp_path: Path) -> None:
    code, report = optimize(tmp_path, "bounds.cu", CUDA, target="gfx942")
    assert code == 0, report.summary
    assert any("was ported to HIP first" in note for note in report.baseline.notes)
    patch = (tmp_path / "out/wavesmith.patch").read_text()
    assert "rename to bounds.hip" in patch and "+#include <hip/hip_runtime.h>" in patch
    assert "wavesmith_block_add(warnings, warnings_sum);" in (tmp_path / "out/patched/bounds.hip").read_text()


@pytest.mark.parametrize(
    ("old", "new", "verdict", "check", "code"),
    [
        ("if (i >= n) return;", "if (n <= i) return;", "NoGain", None, 3),
        ("atomicAdd(warnings, 1)", "atomicAdd(warnings, 2)", "Incorrect", "exact", 4),
        ("if (i >= n) return;", "indices[i + 16384] = 0;", "Incorrect", "out-of-bounds", 4),
        ("bounds_check", "another_name", "Incorrect", "kernel-not-launched", 4),
        ("atomicAdd(warnings, 1);", "atomicAdd(warnings, 1);;)", "CompileFailed", None, 4),
    ],
    ids=["same-code", "wrong", "outside", "gone", "broken"],
)
def test_a_candidate_is_judged_alone(
    old: str, new: str, verdict: str, check: str | None, code: int,
    tmp_path: Path, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    found = verify(tmp_path, HIP, HIP.replace(old, new), capsys)
    assert (found.verdict, found.check, found.exit_code) == (verdict, check, code), found


def test_host_code_that_changed_is_not_called_validated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    after = HIP.replace("255) / 256, 256", "127) / 128, 128").replace(
        "if (i >= n) return;", "if (i >= n || n < 1) return;"
    )
    found = verify(tmp_path, HIP, after, capsys)
    assert (found.verdict, found.exit_code) == ("Inconclusive", 5), found
    assert "host code" in found.message and not found.correctness.validated


WAVEFRONTS = (
    HEAD
    + """
__global__ void wavefront_sums(const float* x, float* total, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float v = i < n ? x[i] : 0.0f;
  for (int offset = warpSize / 2; offset > 0; offset /= 2) v += __shfl_down(v, offset);
  if (threadIdx.x % 64 == 0) atomicAdd(total, v);
}
"""
)


def test_wavefronts_of_64_lanes_are_compared_with_64_lanes(tmp_path: Path) -> None:
    code, report = optimize(tmp_path, "sums.hip", WAVEFRONTS)
    assert code == 0 and report.correctness.level == "emulated", report.summary


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        (HEAD + "__global__ void k(float* x) { x[0] = nowhere(3); }\n", 4, "use of undeclared identifier 'nowhere'"),
        (HEAD + "int main() { return 0; }\n", 2, "no __global__ function with a body"),
        (HEAD + "__global__ void k(float* x) {\n", 2, "`{` is never closed"),
        (HEAD + "template <template <class> class F> __global__ void k(float* x) { x[0] = F<int>::value; }\n", 2,
         "no instantiation could be made up"),
        (HEAD + "struct A { const float* x; int n; };\n__global__ void k(A a, float* out) {\n"
         "  const int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i < a.n) atomicAdd(out, a.x[i]);\n}\n", 0,
         "fewer"),
        (HEAD + "__global__ void k(const float* x, float* y, int n) {\n"
         "  const int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i < n) y[i] = 2.0f * x[i];\n}\n", 3,
         "Nothing to change"),
        ("\0", 2, "NUL"),
    ],
    ids=["does-not-compile", "no-kernel", "unbalanced", "templates-only", "struct-parameter", "nothing", "binary"],
)  # fmt: skip
def test_odd_files_end_with_a_reason(
    text: str, code: int, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ended, report = optimize(tmp_path, "k.hip", text)
    said = capsys.readouterr()
    assert ended == code, (said, report and report.summary)
    assert words in said.err + said.out + (report.summary if report else ""), (said, report and report.summary)
    assert "Traceback" not in said.err


def test_a_template_alone_is_instantiated_for_the_occasion(tmp_path: Path) -> None:
    text = HEAD + (
        "template <typename T, int BLOCK>\n__global__ void total(const T* x, T* out, int n) {\n"
        "  const int i = blockIdx.x * BLOCK + threadIdx.x;\n  if (i < n) atomicAdd(out, x[i]);\n}\n"
    )
    code, report = optimize(tmp_path, "k.hip", text)
    assert code == 0, report.summary
    assert "wavesmith_instance" not in (tmp_path / "out/wavesmith.patch").read_text()


def test_what_a_hip_file_does_not_take_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "h.py").write_text("pass\n")
    for words in (["--harness", str(tmp_path / "h.py")], ["--executor", "gpu"], ["--target", "sm_90"]):
        code, _ = optimize(tmp_path, "k.hip", HIP, *words)
        assert code == 2, words
    assert json.dumps(capsys.readouterr().err).count("HIP") >= 3


TRANSPOSE = (
    HEAD
    + """
__global__ void transpose(const float* x, float* y, int rows, int cols) {
  __shared__ float tile[32][32];
  const int c = blockIdx.x * 32 + threadIdx.x, r = blockIdx.y * 32 + threadIdx.y;
  if (r < rows && c < cols) tile[threadIdx.y][threadIdx.x] = x[r * cols + c];
  __syncthreads();
  const int tc = blockIdx.y * 32 + threadIdx.x, tr = blockIdx.x * 32 + threadIdx.y;
  if (tr < cols && tc < rows) y[tr * rows + tc] = tile[threadIdx.x][threadIdx.y];
}
void launch(const float* x, float* y, int n) { transpose<<<dim3(2, 2), dim3(32, 32)>>>(x, y, n, n); }
"""
)


def test_what_only_a_model_shows_is_offered_and_not_called_a_gain(tmp_path: Path) -> None:
    code, report = optimize(tmp_path, "t.hip", TRANSPOSE)
    assert (code, report.outcome, report.artifacts.patch) == (5, "inconclusive", None), report.summary
    (offer,) = report.offers
    assert (offer.correctness, offer.speed) == ("emulated", "modelled") and "not measured" in offer.reason
    assert "[32 + 1]" in (tmp_path / "out" / offer.patch).read_text()
    code, report = optimize(tmp_path, "t.hip", TRANSPOSE, "--require", "modelled")
    assert (code, report.speed.level) == (0, "modelled") and "predicted" in report.summary.lower()


@pytest.mark.long
def test_a_scatter_of_random_rows_is_left_alone(tmp_path: Path) -> None:
    text = HEAD + (
        "__global__ void scatter(const float* x, const int* rows, float* out, int n) {\n"
        "  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += 64) atomicAdd(&out[rows[i]], x[i]);\n}\n"
        "void launch(const float* x, const int* rows, float* out) { scatter<<<1, 64>>>(x, rows, out, 4096); }\n"
    )
    code, report = optimize(tmp_path, "s.hip", text)
    assert code == 3, report.summary
    tried = {a.origin: a.reason for a in report.attempts}
    assert "no count of the emulated run moved" in tried["register-cache-for-scatter"]


@pytest.mark.long
@pytest.mark.parametrize(
    ("rows", "kept"), [("sorted_ids", "row-sum-in-register"), ("ids", "register-cache-for-scatter")]
)
def test_one_row_is_held_where_rows_come_sorted_and_two_addresses_where_they_take_turns(
    tmp_path: Path, rows: str, kept: str
) -> None:
    text = HEAD + (
        f"__global__ void bag(const double* dy, const int* {rows}, double* table, int count, int width) {{\n"
        "  for (int c = threadIdx.x; c < width; c += blockDim.x) {\n"
        "    for (int p = blockIdx.x * 48; p < count && p < (int)(blockIdx.x + 1) * 48; p++) {\n"
        f"      const int id = {rows}[p] & 3;\n"
        "      atomicAdd(table + (long)id * width + c, dy[p * width + c]);\n"
        "    }\n  }\n}\n"
        f"void launch(const double* dy, const int* {rows}, double* table, int count, int width) {{\n"
        f"  bag<<<(count + 47) / 48, 64>>>(dy, {rows}, table, count, width);\n}}\n"
    )
    code, report = optimize(tmp_path, "b.hip", text)
    assert code == 0, report.summary
    assert [a.origin for a in report.attempts if a.fate == "kept"] == [kept]
    assert report.speed.level == "counted" and report.correctness.level == "emulated"


@pytest.mark.long
def test_spills_that_go_are_told_with_their_price(tmp_path: Path) -> None:
    kernel = Path(__file__).parents[2] / "benchmarks/suite_hip/register_rows/kernel.hip"
    code, report = optimize(tmp_path, "rows.hip", kernel.read_text())
    assert code == 0 and report.speed.level == "counted"
    assert "occupancy (waves per SIMD) 4 -> 2" in report.speed.statement
    spilled = {m["vgpr_spill_count"] for m in (k.metrics for k in (*report.baseline.kernels, *report.result))}
    assert 0 in spilled and max(spilled) > 0


def test_the_candidate_of_a_cuda_file_is_hip(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "b.cu").write_text(CUDA)
    (tmp_path / "c.hip").write_text(HIP.replace("atomicAdd(warnings, 1)", "atomicAdd(warnings, 3)"))
    for candidate, code, words in (("b.cu", 2, "the candidate is cuda"), ("c.hip", 4, "rejected by the check exact")):
        given = ["verify", str(tmp_path / "b.cu"), str(tmp_path / candidate), "--target", "gfx950"]
        assert _run(given) == code
        said = capsys.readouterr()
        assert words in " ".join((said.out + said.err).split()), said


HIDDEN = (
    HEAD
    + """
// größer als null, naïve gezählt
namespace {
template <typename T, int N = 4>
__global__ __launch_bounds__(N * 64) void count_positive(const T* __restrict__ x, int* count, int n) {
  const int first = (blockIdx.x * blockDim.x + threadIdx.x) * N;
  #pragma unroll
  for (int j = 0; j < N; j++) {
    if (first + j < n && x[first + j] > T(0)) atomicAdd(count, 1);  // größer
  }
}
}  // namespace
void go(const float* x, int* count, int n) { count_positive<float><<<2, 256>>>(x, count, n); }
"""
)


def test_kernels_of_an_anonymous_namespace_are_run_and_other_letters_kept(tmp_path: Path) -> None:
    code, report = optimize(tmp_path, "k.hip", HIDDEN)
    assert code == 0 and report.baseline.launches > 0, report.summary
    patched = (tmp_path / "out/patched/k.hip").read_text()
    assert "count_sum += 1;  // größer" in patched and "naïve gezählt" in patched
