"""Ports run as whole programs against the original on the CPU model."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from agent.port.assemble import assemble
from agent.port.build import build_units
from agent.port.intake import open_project
from agent.port.loop import port
from agent.port.program_output import difference, same_line, unstable
from agent.port.program_source import entries, with_launches_as_calls
from agent.port.program_trial import run_programs
from agent.port.reference_run import OriginalRun
from agent.port.request import PortRequest
from agent.port.result import PortResult, ProgramVerdict
from sandbox.hip_source import HipSource
from sandbox.host_program import ProgramRun
from sandbox.toolchain import prepare_toolchain
from sandbox.verdict import Correctness

STRUCTS = """\
#include <cuda_runtime.h>
#include <cstdio>
#include <vector>
struct Row { float scale; int n; const float* x; float* y; Row* next; };
__constant__ float offsets[4];
__global__ void apply(Row r) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < r.n) r.y[i] = r.x[i] * r.scale + offsets[i % 4];
}
__global__ void idle(Row r) { if (threadIdx.x == 0) r.y[r.n - 1] += 0.f; }
int main() {
  const int n = 300;
  std::vector<float> h(n);
  for (int i = 0; i < n; i++) h[i] = (float)(i % 17) / 4;
  Row r{2.5f, n};
  float off[4] = {1, 2, 3, 4};
  cudaMalloc((void**)&r.x, n * sizeof(float));
  cudaMalloc((void**)&r.y, n * sizeof(float));
  cudaMemcpy((void*)r.x, h.data(), n * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpyToSymbol(offsets, off, sizeof off);
  cudaEvent_t a, b;
  cudaEventCreate(&a); cudaEventCreate(&b);
  cudaEventRecord(a);
  apply<<<(n + 127) / 128, 128>>>(r);
  idle<<<1, 32>>>(r);
  cudaEventRecord(b);
  cudaDeviceSynchronize();
  float ms = 0;
  cudaEventElapsedTime(&ms, a, b);
  cudaMemcpy(h.data(), r.y, n * sizeof(float), cudaMemcpyDeviceToHost);
  cudaDeviceProp prop;
  cudaGetDeviceProperties(&prop, 0);
  printf("%s took %f ms\\n", prop.name, ms);
  for (int i = 0; i < n; i += 50) printf("%g ", h[i]);
  printf("\\n");
  return cudaGetLastError() == cudaSuccess ? 0 : 1;
}
"""


def ported(tmp_path: Path, text: str) -> PortResult:
    file = tmp_path / "a.cu"
    file.write_text(text)
    return port(PortRequest(file))


def test_a_program_shows_the_kernels_that_its_output_depends_on(tmp_path: Path) -> None:
    result = ported(tmp_path, STRUCTS)
    (program,) = result.programs
    assert (program.what, program.evidence, program.reason) == ("main()", Correctness.EMULATED, "")
    assert program.launched == {"gfx942": 2, "gfx950": 2}
    assert program.kernels == ("apply(Row)",)
    verdicts = {k.kernel: (k.evidence, k.reason) for k in result.kernels}
    assert verdicts["apply(Row)"] == (Correctness.EMULATED, "as launched by main(), whose output shows it")
    assert "r" in verdicts["idle(Row)"][1].split()
    assert verdicts["idle(Row)"][0] is Correctness.COMPILED  # leaving it out changes nothing that is printed
    assert result.outcome == "inconclusive"
    assert "## Programs" in result_markdown(result)


def result_markdown(result: PortResult) -> str:
    from agent.port.report import markdown

    return markdown(result)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [("r.scale +", "r.scale + 1.f +", "line 2"), ("? 0 : 1", "? 3 : 1", "ends with status 3, the original with 0")],
)
def test_a_wrong_port_is_found(tmp_path: Path, old: str, new: str, said: str) -> None:
    verdict = changed_port(tmp_path, STRUCTS, old, new)
    assert verdict.wrong
    assert said in verdict.reason


def changed_port(tmp_path: Path, original: str, old: str, new: str) -> ProgramVerdict:
    """The verdict of a port in which something was changed behind its back."""
    file = tmp_path / "a.cu"
    file.write_text(original)
    request = PortRequest(file, targets=("gfx942",))
    text = port(replace(request, execute=False)).files[0].after
    assert old in text
    toolchain = prepare_toolchain()
    with open_project(request) as project:
        assembled = assemble({"a.cu": text.replace(old, new)}, toolchain)
        builds = build_units(["a.cu"], project, assembled, request, toolchain)
        (verdict,) = run_programs(builds, project, assembled, request, toolchain, ())
    return verdict


@pytest.mark.parametrize(
    ("main", "said"),
    [
        ("cudaGraph_t g; cudaGraphCreate(&g, 0);", "cudaGraph_t"),
        ("int* p; cudaMalloc(&p, 8); p[100000] = 1;", "outside every buffer"),
        (
            "int* p; cudaMalloc(&p, 4); int v; cudaMemcpy(&v, p, 4, cudaMemcpyDeviceToHost); return v & 1;",
            "another way",
        ),
        ("", "prints nothing"),
    ],
)
def test_what_shows_nothing_is_no_pass(tmp_path: Path, main: str, said: str) -> None:
    text = f"#include <cuda_runtime.h>\n#include <cstdio>\nint main() {{ {main} }}\n"
    result = ported(tmp_path, text)
    (program,) = result.programs
    assert program.evidence is Correctness.COMPILED
    assert not program.wrong
    assert said in program.reason
    assert result.outcome == "inconclusive"


def test_host_functions_are_called_with_made_up_arguments(tmp_path: Path) -> None:
    text = """\
#include <cuda_runtime.h>
struct Opaque;
static int copied(const float* x, float* y, int n, cudaStream_t s) {
  cudaMemsetAsync(y, 0, 8, s);
  return cudaMemcpyAsync(y + 2, x, n * sizeof(float), cudaMemcpyDeviceToDevice, s) == cudaSuccess ? n : -1;
}
int idle(const float* x, int n) { return n; }
void unmade(Opaque* o, int n) {}
"""
    result = ported(tmp_path, text)
    (program,) = result.programs
    assert program.evidence is Correctness.INTERPRETED  # nothing was launched
    assert program.reason == "not called: unmade; nothing to compare: idle"
    assert program.what == "copied(), idle(), unmade()"
    assert result.outcome == "builds-now"


PRODUCT = """\
#include <cublasLt.h>
#include <cuda_runtime.h>
cublasStatus_t run(cublasLtHandle_t h, const void* a, const float* bias, float* d, int m, int n, int k) {
  cublasLtMatmulDesc_t op;
  cublasLtMatmulDescCreate(&op, CUBLAS_COMPUTE_32F, CUDA_R_32F);
  cublasLtEpilogue_t ep = CUBLASLT_EPILOGUE_RELU_BIAS;
  cublasLtMatmulDescSetAttribute(op, CUBLASLT_MATMUL_DESC_EPILOGUE, &ep, sizeof ep);
  cublasLtMatmulDescSetAttribute(op, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias);
  cublasLtMatrixLayout_t A, B, D;
  cublasLtMatrixLayoutCreate(&A, CUDA_R_16BF, m, k, m);
  cublasLtMatrixLayoutCreate(&B, CUDA_R_16BF, k, n, k);
  cublasLtMatrixLayoutCreate(&D, CUDA_R_32F, m, n, m);
  float one = 1.f, zero = 0.f;
  return cublasLtMatmul(h, op, &one, a, A, a, B, &zero, d, D, d, D, nullptr, nullptr, 0, nullptr);
}
"""


@pytest.mark.parametrize(
    ("old", "new", "right"), [pytest.param("", "", True, marks=pytest.mark.long), ("_RELU_BIAS;", "_RELU;", False)]
)
def test_products_of_a_library_are_compared_by_definition(tmp_path: Path, old: str, new: str, right: bool) -> None:
    verdict = changed_port(tmp_path, PRODUCT, old, new)
    assert verdict.wrong is not right
    if not old:
        assert verdict.evidence is Correctness.INTERPRETED
        assert "hipBLASLt" in verdict.reason


def test_launches_become_calls() -> None:
    text = "void f() { k<float, 4><<<grid, 32 * n, 0, s>>>(a, b + 1); ns::g<<<1, 2>>>(); }"
    fresh = with_launches_as_calls(text)
    assert "<<<" not in fresh
    assert "wavesmith_host::at(grid, 32 * n, 0, s).go(" in fresh
    assert re.search(r"k<float, 4>\(wavesmith_a\.\.\.\); \}; \}, a, b \+ 1\)", fresh)
    assert "ns::g(wavesmith_a...); }; })" in fresh


def test_only_plain_host_functions_are_entries() -> None:
    text = "template <class T> void a(T); __global__ void k() {}\nvoid f(int n) {}\nvoid S::m() {}\nint main() {}"
    assert [n for i in entries(HipSource(text)) for n in i.names] == ["f"]


def test_lines_are_compared_by_what_they_say() -> None:
    assert same_line("sum 1.000001 of 3", "sum 1.000002 of 3")
    assert not same_line("sum 1.000001 of 3", "sum 1.000001 of 4")
    assert not same_line("sum 1.01", "sum 1.02")
    assert not same_line("passed", "failed")
    assert not same_line("x nan", "x 1.0")
    assert same_line("v 2.2432e+06", "v 2243200")


def test_what_the_original_s_runs_disagree_about_is_not_compared() -> None:
    runs = [OriginalRun(0, "took 1.0 ms\nsum 5\n"), OriginalRun(0, "took 2.0 ms\nsum 5\n")]
    assert unstable(runs) is None
    assert difference(runs, ProgramRun("ended", 0, "took 77.0 ms\nsum 5\n")) is None
    assert "line 2" in (difference(runs, ProgramRun("ended", 0, "took 1.0 ms\nsum 6\n")) or "")
    assert "1 lines" in (difference(runs, ProgramRun("ended", 0, "sum 5\n")) or "")
    assert unstable([runs[0], OriginalRun(1, runs[0].stdout)]) is not None
    assert unstable([OriginalRun(0, "a 1\n"), OriginalRun(0, "a 2\n")]) == "it prints nothing that could be compared"
