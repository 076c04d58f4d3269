"""Whole HIP programs: host code natively, kernels in the emulator."""

from pathlib import Path

import pytest

from sandbox.hip import SourceTree, compile_hip
from sandbox.host_program import ProgramRun, build_host_program
from sandbox.isolation import Limits, isolation_level
from sandbox.toolchain import prepare_toolchain

HEAD = "#include <hip/hip_runtime.h>\n#include <cstdio>\n"


def run(text: str, *, skip: tuple[str, ...] = (), seconds: float = 200.0, budget: int = 10_000_000) -> ProgramRun:
    toolchain = prepare_toolchain()
    tree = SourceTree({"a.hip": HEAD + text}, (".",))
    compiled = compile_hip(tree, "a.hip", "gfx942", toolchain)
    assert compiled.errors == ()
    assert compiled.code_object is not None
    program = build_host_program(tree, "a.hip", toolchain)
    return program.run(compiled.code_object, "gfx942", Limits(wall_s=seconds), skip=skip, budget=budget)


STATE = """
__constant__ int table[4];
__device__ int calls;
__global__ void add(int* p, const int* host, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) p[i] += table[i % 4] + host[0];
  if (i == 0) calls++;
}
int main() {
  int given[4] = {1, 20, 300, 4000}, zero = 0, *p, *managed, back[100];
  if (hipMemcpyToSymbol(HIP_SYMBOL(table), given, sizeof given)) return 1;
  if (hipMemcpyToSymbol(HIP_SYMBOL(calls), &zero, 4)) return 1;
  if (hipMalloc(&p, 400) || hipMallocManaged(&managed, 4) || hipMemset(p, 0, 400)) return 2;
  *managed = 7;
  hipStream_t s;
  if (hipStreamCreate(&s)) return 3;
  for (int i = 0; i < 3; i++) add<<<2, 64, 0, s>>>(p, managed, 100);
  if (hipGetLastError() || hipStreamSynchronize(s) || hipMemcpy(back, p, 400, hipMemcpyDeviceToHost)) return 4;
  if (hipMemcpyFromSymbol(&zero, HIP_SYMBOL(calls), 4)) return 5;
  printf("%d %d %d, %d calls\\n", back[0], back[3], back[99], zero);
  add<<<1, 2048>>>(p, managed, 100);
  printf("%s\\n", hipGetErrorString(hipGetLastError()));
  printf("%s\\n", hipGetErrorString(hipMemcpy(back, p, 404, hipMemcpyDeviceToHost)));
  printf("%s\\n", hipGetErrorString(hipMemcpy(back, p, 4, hipMemcpyHostToDevice)));
  return hipFree(p) ? 6 : 40;
}
"""


def test_variables_memory_and_errors_behave_as_the_runtime_s() -> None:
    done = run(STATE)
    assert (done.status, done.code, done.reason) == ("ended", 40, "")
    lines = done.stdout.splitlines()
    assert lines[0] == "24 12021 12021, 3 calls"
    assert lines[1:] == ["invalid configuration argument", "invalid argument", "invalid argument"]
    assert done.launched == ("_Z3addPiPKii",) * 3


def test_a_kernel_can_be_left_out() -> None:
    done = run(STATE, skip=("_Z3addPiPKii",))
    assert done.stdout.splitlines()[0] == "0 0 0, 0 calls"
    assert done.launched == ()


def test_what_the_runtime_does_not_have_is_named() -> None:
    done = run("int main() { hipGraph_t g; return hipGraphCreate(&g, 0) == hipSuccess ? 0 : 1; }\n")
    assert done.status == "unknown"
    assert "hipGraphCreate" in done.reason
    assert done.code is None
    done = run(
        "int main() { int v; (void)hipDeviceGetAttribute(&v, hipDeviceAttributeSurfaceAlignment, 0); return 0; }\n"
    )
    assert done.status == "unknown"
    assert "hipDeviceGetAttribute" in done.reason


@pytest.mark.parametrize(
    ("kernel", "status", "word"),
    [
        ("p[1 << 20] = 1;", "trapped", "out_of_bounds_global"),
        ("while (p[0] != 5) __builtin_nontemporal_store(4, p);", "stopped", ""),
    ],
)
def test_a_launch_that_goes_wrong_ends_the_program(kernel: str, status: str, word: str) -> None:
    text = (
        f"__global__ void bad(volatile int* p) {{ int* q = (int*)p; {kernel.replace('store(4, p)', 'store(4, q)')} }}\n"
    )
    main = 'int main() { int* p; (void)hipMalloc(&p, 64); bad<<<1, 64>>>(p); puts("went on"); return 0; }\n'
    done = run(text + main, budget=200_000)
    assert done.status == status
    assert word in done.reason
    assert "went on" not in done.stdout


def test_the_host_cannot_touch_device_memory_or_the_machine(tmp_path: Path) -> None:
    done = run("int main() { int* p; (void)hipMalloc(&p, 64); *p = 1; return 0; }\n")
    assert (done.status, done.code) == ("ended", -11)
    if isolation_level() != "bubblewrap":
        return
    marker = tmp_path / "written"
    done = run(f'int main() {{ FILE* f = fopen("{marker}", "w"); if (f) fputs("x", f); return f ? 1 : 0; }}\n')
    assert done.status == "ended"
    assert not marker.exists()


def test_a_program_that_does_not_end_is_stopped() -> None:
    done = run("int main() { for (volatile int i = 0;; i = 0) {} }\n", seconds=8.0)
    assert done.status == "stopped"
    assert "8 s" in done.reason
