// xor reduction that starts at warpSize / 2 and broadcasts from the last lane
#include "shims/wavesmith_compat.h"
#include <hip/hip_runtime.h>
__global__ void reduce(const float* in, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float v = i < n ? in[i] : 0.f;
  for (int o = 32 / 2; o > 0; o >>= 1) v += wavesmith::__shfl_xor_sync(0xffffffff, v, o, 32);
  float last = wavesmith::__shfl_sync(0xffffffff, v + threadIdx.x % 32, 32 - 1);
  if (i < n) out[i] = v + last;
}
