// inclusive scan by shuffle-up, with the lane from threadIdx
#include "shims/wavesmith_compat.h"
#include <hip/hip_runtime.h>
__global__ void scan(const int* in, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x & 0x1f;
  int v = i < n ? in[i] : 0;
#pragma unroll
  for (int d = 1; d < 32; d <<= 1) {
    int t = wavesmith::__shfl_up_sync(0xffffffffu, v, d);
    if (lane >= d) v += t;
  }
  if (i < n) out[i] = v;
}
