"""PyTorch extensions: ported, and compiled for the device and the host against torch's own headers, hipified."""

from pathlib import Path

import pytest

from agent.port.intake import open_project
from agent.port.loop import port
from agent.port.request import PortRequest
from agent.port.torch_headers import torch_headers
from sandbox.errors import ToolMissing

SETUP = """\
from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CUDAExtension
setup(
    name="rowscale",
    ext_modules=[CUDAExtension("rowscale", ["csrc/rowscale.cpp", "csrc/rowscale_kernel.cu"])],
    cmdclass={"build_ext": BuildExtension},
)
"""
BINDING = """\
#include <torch/extension.h>
#include <c10/cuda/CUDAGuard.h>
at::Tensor rowscale_cuda(const at::Tensor& x, const at::Tensor& s);
at::Tensor rowscale(const at::Tensor& x, const at::Tensor& s) {
  TORCH_CHECK(x.is_cuda() && s.is_cuda(), "CUDA tensors, please");
  const at::cuda::OptionalCUDAGuard guard(device_of(x));
  return rowscale_cuda(x.contiguous(), s);
}
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("rowscale", &rowscale); }
"""
KERNEL = """\
#include <ATen/ATen.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>
#include <cuda_runtime.h>
__global__ void rowscale_kernel(const float* x, const float* s, float* y, int rows, int columns) {
  const int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x & 31;
  if (row >= rows) return;
  float most = 0.f;
  for (int c = lane; c < columns; c += 32) most = fmaxf(most, fabsf(x[row * columns + c]));
  for (int d = 16; d; d >>= 1) most = fmaxf(most, __shfl_xor_sync(0xffffffff, most, d));
  for (int c = lane; c < columns; c += 32) y[row * columns + c] = x[row * columns + c] * s[row] / (most + 1.f);
}
at::Tensor rowscale_cuda(const at::Tensor& x, const at::Tensor& s) {
  auto y = at::empty_like(x);
  const int rows = x.size(0), columns = x.size(1);
  cudaStream_t stream = at::cuda::getCurrentCUDAStream();
  rowscale_kernel<<<(rows + 3) / 4, 128, 0, stream>>>(
      x.data_ptr<float>(), s.data_ptr<float>(), y.data_ptr<float>(), rows, columns);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return y;
}
"""
INLINE = '''\
import torch
from torch.utils.cpp_extension import load_inline
module = load_inline(
    name="twice", cpp_sources="torch::Tensor twice(torch::Tensor x);", functions=["twice"],
    cuda_sources=["""
__global__ void twice_kernel(float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= 2.f;
}
torch::Tensor twice(torch::Tensor x) {
  twice_kernel<<<(x.numel() + 255) / 256, 256>>>(x.data_ptr<float>(), x.numel());
  return x;
}
"""],
)
'''


def headers_or_skip() -> None:
    try:
        torch_headers()
    except ToolMissing as e:
        pytest.skip(str(e))


@pytest.mark.long
@pytest.mark.timeout(2400)
def test_an_extension_of_two_files_builds_against_torchs_headers_and_is_right(tmp_path: Path) -> None:
    headers_or_skip()
    folder = tmp_path / "rowscale"
    (folder / "csrc").mkdir(parents=True)
    (folder / "setup.py").write_text(SETUP)
    (folder / "csrc" / "rowscale.cpp").write_text(BINDING)
    (folder / "csrc" / "rowscale_kernel.cu").write_text(KERNEL)
    result = port(PortRequest(folder, targets=("gfx942",), out=tmp_path / "out"))
    assert [str(d) for d in result.diagnostics] == []
    assert {f.new_path for f in result.files} == {"csrc/rowscale.cpp", "csrc/rowscale_kernel.hip"}
    assert set(result.build_commands) == {"csrc/rowscale.cpp", "csrc/rowscale_kernel.cu"}
    assert result.rounds[-1].errors == {"gfx942": 0, "host": 0}
    binding = (tmp_path / "out" / "csrc" / "rowscale.cpp").read_text()
    assert "c10/hip/" in binding and "cuda/CUDAGuard" not in binding
    assert result.outcome == "builds-now", result.summary


def test_texts_of_load_inline_are_found_wherever_they_are_written(tmp_path: Path) -> None:
    (tmp_path / "ext.py").write_text(INLINE)
    with open_project(PortRequest(tmp_path / "ext.py")) as project:
        (unit,) = project.units
        assert unit == "ext.cuda_sources.cu"
        assert project.sources[unit].text.startswith("#include <torch/types.h>\n")


@pytest.mark.long
@pytest.mark.timeout(2400)
def test_load_inline_builds_against_torchs_headers_and_is_right(tmp_path: Path) -> None:
    headers_or_skip()
    (tmp_path / "ext.py").write_text(INLINE)
    result = port(PortRequest(tmp_path / "ext.py", targets=("gfx942",)))
    assert [str(d) for d in result.diagnostics] == []
    assert result.outcome == "builds-now", result.summary
