"""One pass of clang over a HIP source."""

from sandbox.hip import HipOptions, SourceTree, compile_hip, disassemble, kernel_resources
from sandbox.toolchain import prepare_toolchain

TEXT = """\
#include <hip/hip_runtime.h>
template <class T> __global__ void mirrored(const T* a, T* b, int n) {
  __shared__ T s[256];
  s[threadIdx.x] = a[threadIdx.x];
  __syncthreads();
  if (threadIdx.x < n) b[threadIdx.x] = s[255 - threadIdx.x] * sinf(a[threadIdx.x]);
}
template __global__ void mirrored<float>(const float*, float*, int);
"""


def test_code_that_is_kept_as_text_is_the_same_code() -> None:
    toolchain = prepare_toolchain()
    tree = SourceTree({"a.hip": TEXT})
    plain = compile_hip(tree, "a.hip", "gfx942", toolchain)
    both = compile_hip(tree, "a.hip", "gfx942", toolchain, HipOptions(assembly=True))
    assert plain.code_object is not None and both.code_object is not None
    assert plain.assembly is None and both.assembly is not None and "s_barrier" in both.assembly
    assert both.kernels == plain.kernels == kernel_resources(both.code_object, toolchain)
    assert disassemble(both.code_object, toolchain) == disassemble(plain.code_object, toolchain)
    broken = compile_hip(SourceTree({"a.hip": "int f( {"}), "a.hip", "gfx942", toolchain, HipOptions(assembly=True))
    assert not broken.ok and broken.code_object is None and broken.assembly is None
