// packed and scalar half atomics
#include "shims/wavesmith_compat.h"
#include <hip/hip_fp16.h>
__global__ void k(const float* x, half2* sums, half* one, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  atomicAdd(&sums[i & 7], __floats2half2_rn((float)(int)(x[i] * 4.f), 1.f));
  atomicAdd(one + (i & 3), __float2half(1.f));
}
