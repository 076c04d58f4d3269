"""What a comparison of a port with the original rests on: false alarms are gone, wrong ports are found."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from agent.port.assemble import assemble
from agent.port.build import build_units
from agent.port.intake import open_project
from agent.port.loop import port
from agent.port.own_arms import own_numbers
from agent.port.reference_run import ParameterInfo
from agent.port.request import PortRequest
from agent.port.result import KernelVerdict
from agent.port.trials import Expected, compare
from agent.port.validate import validate
from sandbox.toolchain import prepare_toolchain
from sandbox.verdict import Correctness

COLLECTIVES = """\
#include <cub/cub.cuh>
template <typename T, int TILE, int ITEMS>
__global__ void scale_tiles(const T* x, float* largest, T* y, int n) {
  typedef cub::BlockLoad<T, TILE / ITEMS, ITEMS, cub::BLOCK_LOAD_WARP_TRANSPOSE> Load;
  typedef cub::BlockStore<T, TILE / ITEMS, ITEMS, cub::BLOCK_STORE_WARP_TRANSPOSE> Store;
  typedef cub::BlockReduce<float, TILE / ITEMS> Reduce;
  __shared__ typename Load::TempStorage load;
  __shared__ typename Store::TempStorage store;
  __shared__ typename Reduce::TempStorage reduce;
  __shared__ float factor;
  const int base = blockIdx.x * TILE, valid = min(TILE, n - base);
  T v[ITEMS];
  Load(load).Load(x + base, v, valid, (T)0);
  float most = 0.f;
  for (int i = 0; i < ITEMS; i++) most = fmaxf(most, fabsf((float)v[i]));
  most = Reduce(reduce).Reduce(most, cub::Max());
  if (threadIdx.x == 0) {
    largest[blockIdx.x] = most;
    factor = 1.f / most;
  }
  __syncthreads();
  for (int i = 0; i < ITEMS; i++) v[i] = (T)((float)v[i] * factor);
  Store(store).Store(y + base, v, valid);
}
template __global__ void scale_tiles<float, 512, 4>(const float*, float*, float*, int);
template __global__ void scale_tiles<float, 128, 2>(const float*, float*, float*, int);
"""
UNWRITTEN = """\
__global__ void mirrored(const float* x, float* y, int n) {
  __shared__ float s[256];
  const int t = threadIdx.x;
  if (t < 100) s[t] = x[t];
  __syncthreads();
  y[t] = s[blockDim.x - 1 - t];
}
"""
LOCAL = """\
__global__ void positive(const float* x, float* y, int n) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  float last;
  if (x[t] > 0.f) last = x[t] * n;
  y[t] = last;
}
"""
CANCELLING = """\
__global__ void ratios(const float* x, const float* c, float* y, int n) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t >= n) return;
  const float p = 1.f / (1.f + 0.02f * fabsf(x[t]));
  float sum = 0.f;
  for (int k = 0; k < 64; k++) {
    const float power = pow(p, k + 1);
    sum += c[(64 * t + k) & 8191] * power;  // cancels in some threads
  }
  y[t] = 100.f * x[t] / sum;
}
"""
OWN_WIDTH = """\
#if defined(__HIP_PLATFORM_AMD__) || defined(__HIPCC__)
#define MINE 1
#else
#define MINE 0
#endif
#if MINE
#define LANES 64
#else
#define LANES 32
#endif
__global__ void rows(const float* x, float* y, int n) {
  const int row = blockDim.x / LANES * blockIdx.x + threadIdx.x / LANES;
  float sum = 0.f;
  for (int i = threadIdx.x % LANES; i < 200; i += LANES) sum += x[row * 200 + i];
  __shared__ float part[1024];
  part[threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.x % LANES == 0) {
    for (int i = 1; i < LANES; i++) sum += part[threadIdx.x + i];
    y[row] = sum;
  }
}
"""


TORCH_TYPES = """\
#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>
template <typename T> __global__ void shifted_squares(const T* x, T* y, int n) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t >= n) return;
  T v = x[t] * x[t];
  v += T(0.25f);
  y[t] = v - x[t] * 3;
}
template __global__ void shifted_squares<c10::Half>(const c10::Half*, c10::Half*, int);
template __global__ void shifted_squares<c10::BFloat16>(const c10::BFloat16*, c10::BFloat16*, int);
"""


def verdicts(tmp_path: Path, original: str, old: str = "", new: str = "") -> Sequence[KernelVerdict]:
    """Of a port in which something was changed behind its back."""
    file = tmp_path / "a.cu"
    file.write_text(original)
    request = PortRequest(file)
    text = port(replace(request, execute=False)).files[0].after
    assert old in text
    toolchain = prepare_toolchain()
    with open_project(request) as project:
        assembled = assemble({"a.cu": text.replace(old, new)}, toolchain)
        builds = build_units(["a.cu"], project, assembled, request, toolchain)
        assert all(b.ok for b in builds)
        return validate(builds, project, assembled, request, toolchain)


def test_a_collective_is_launched_with_the_block_that_it_is_for(tmp_path: Path) -> None:
    found = verdicts(tmp_path, COLLECTIVES)
    assert {k.kernel.split("(")[0]: (k.evidence, k.reason) for k in found} == {
        "void scale_tiles<float, 512, 4>": (Correctness.EMULATED, ""),
        "void scale_tiles<float, 128, 2>": (Correctness.EMULATED, ""),
    }
    assert [{t.block for t in k.trials} for k in found] == [{(128, 1, 1)}, {(64, 1, 1)}]
    assert all(any(t.grid[0] > 1 for t in k.trials) for k in found)


UNWRITTEN_ELEMENTS = "follow from what nothing has written and were not compared"


@pytest.mark.parametrize("text", [UNWRITTEN, LOCAL])
def test_what_nothing_has_written_is_not_compared(tmp_path: Path, text: str) -> None:
    (found,) = verdicts(tmp_path, text)
    assert (found.evidence, found.reason) == (Correctness.EMULATED, "")
    assert any(UNWRITTEN_ELEMENTS in t.detail for t in found.trials)


def test_a_sum_that_cancels_is_as_near_as_its_inputs_allow(tmp_path: Path) -> None:
    (found,) = verdicts(tmp_path, CANCELLING)
    assert (found.evidence, found.reason) == (Correctness.EMULATED, "")
    assert any("rounded otherwise" in t.detail for t in found.trials)


def test_a_width_that_the_file_gives_amd_is_compared_with_what_it_says_to_amd(tmp_path: Path) -> None:
    (found,) = verdicts(tmp_path, OWN_WIDTH)
    assert found.evidence is Correctness.EMULATED
    assert (
        found.reason == "as the file gives AMD another LANES, it was compared with the file's code for AMD on 64 lanes"
    )


def test_the_types_of_torch_are_run(tmp_path: Path) -> None:
    found = verdicts(tmp_path, TORCH_TYPES)
    assert [(k.evidence, k.reason) for k in found] == [(Correctness.EMULATED, "")] * 2


@pytest.mark.parametrize(
    ("text", "old", "new"),
    [
        (COLLECTIVES, "1.f / most", "1.001f / most"),
        pytest.param(COLLECTIVES, "x + base", "x + base + 1", marks=pytest.mark.long),
        (UNWRITTEN, "- 1 - t]", "- 1 - (t ^ 1)]"),
        (LOCAL, "x[t] * n", "x[t] + n"),
        (CANCELLING, "k + 1)", "k + 2)"),
        pytest.param(CANCELLING, "100.f * x[t]", "100.02f * x[t]", marks=pytest.mark.long),
        (OWN_WIDTH, "i = 1; i < LANES", "i = 2; i < LANES"),
        pytest.param(OWN_WIDTH, "x[row * 200 + i]", "x[row * 199 + i]", marks=pytest.mark.long),
        pytest.param(
            TORCH_TYPES, "T v = x[t] * x[t];", "T v = (float)x[t] * (float)x[t] * 1.2f;", marks=pytest.mark.long
        ),
    ],
)
def test_a_wrong_port_of_the_same_shape_is_found(tmp_path: Path, text: str, old: str, new: str) -> None:
    assert all(k.wrong and k.evidence is Correctness.COMPILED for k in verdicts(tmp_path, text, old, new))


def test_numbers_that_a_file_chooses_by_the_vendor() -> None:
    text = OWN_WIDTH + "#ifdef USE_ROCM\nconstexpr int kRows = 16;\n#else\nconstexpr int kRows{8};\n#endif\n"
    other = "#ifdef FAST\n#define TILE 64\n#else\n#define TILE 32\n#endif\n"
    assert own_numbers([text, other]) == {"LANES": {32, 64}, "kRows": {8, 16}}


FLOAT = ParameterInfo("pointer", 8, "float", 4, 4)
INT = ParameterInfo("pointer", 8, "int", 4, 4)


def data(*values: float, dtype: str = "float32") -> bytes:
    return np.array(values, dtype).tobytes()


def test_an_element_that_other_contents_change_says_nothing() -> None:
    expected = Expected(data(0, 0, 0), [data(1, 2, 3), data(1, 2, 9)], [data(1, 2, 48)])
    found = compare(FLOAT, expected, data(1, 2, -7))
    assert (found.difference, found.undefined, found.free, found.compared) == (None, 1, 0, 2)
    assert compare(FLOAT, expected, data(1, 2.1, 3)).difference is not None


def test_only_what_the_original_moves_itself_may_move() -> None:
    expected = Expected(data(0, 0), [data(1, 100)], (), [data(1, 99.5), data(1, 100.25)])
    found = compare(FLOAT, expected, data(1, 99.1))
    assert (found.difference, found.sensitive, found.compared) == (None, 1, 1)
    for wrong in (data(1, 98.7), data(1, 101.1), data(1.0001, 99.6)):
        assert compare(FLOAT, expected, wrong).difference is not None
    codes = Expected(data(0, 0, dtype="int32"), [data(7, 3, dtype="int32")], (), [data(7, 4, dtype="int32")])
    assert compare(INT, codes, data(7, 4, dtype="int32")).difference is None
    assert compare(INT, codes, data(7, 5, dtype="int32")).difference is not None
    assert compare(INT, codes, data(8, 4, dtype="int32")).difference is not None


def test_a_launch_is_known_by_what_headers_define(tmp_path: Path) -> None:
    (tmp_path / "sizes.h").write_text("#define WARPS 6\n#define THREADS (WARPS * (1U << 5U))\n")
    (tmp_path / "kernel.cuh").write_text(
        "__global__ void reversed(const float* x, float* y) {\n"
        "  __shared__ float s[THREADS];\n"
        "  s[threadIdx.x] = x[blockIdx.x * THREADS + threadIdx.x];\n"
        "  __syncthreads();\n"
        "  y[blockIdx.x * THREADS + threadIdx.x] = s[THREADS - 1 - threadIdx.x];\n"
        "}\n"
    )
    file = tmp_path / "a.cu"
    file.write_text(
        '#include "sizes.h"\n#include "kernel.cuh"\n'
        "void launch(const float* x, float* y, int n) { reversed<<<n / THREADS, THREADS>>>(x, y); }\n"
    )
    (found,) = port(PortRequest(file)).kernels
    assert (found.evidence, found.trials[0].block) == (Correctness.EMULATED, (192, 1, 1))
