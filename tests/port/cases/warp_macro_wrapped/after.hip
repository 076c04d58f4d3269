// the mask and the intrinsic behind macros and a template
#include "shims/wavesmith_compat.h"
#include <hip/hip_runtime.h>
#define FULL_MASK 0xffffffffu
#define SHFL_XOR(v, l) wavesmith::__shfl_xor_sync(FULL_MASK, v, l)
template <typename T, int WIDTH> __device__ T reduce(T v) {
  for (int o = WIDTH / 2; o > 0; o /= 2) v += SHFL_XOR(v, o);
  return v;
}
__global__ void k(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float s = reduce<float, 32>(i < n ? x[i] : 0.f), t = reduce<float, 4>(i < n ? x[i] : 0.f);
  if (i < n) y[i] = s * t;
}
