// xor reduction that starts at warpSize / 2 and broadcasts from the last lane
#include <cuda_runtime.h>
__global__ void reduce(const float* in, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float v = i < n ? in[i] : 0.f;
  for (int o = warpSize / 2; o > 0; o >>= 1) v += __shfl_xor_sync(0xffffffff, v, o, warpSize);
  float last = __shfl_sync(0xffffffff, v + threadIdx.x % warpSize, warpSize - 1);
  if (i < n) out[i] = v + last;
}
