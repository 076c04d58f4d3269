#include <hip/hip_runtime.h>

__global__ void sum(const float* x, float* total, int n) {
  __shared__ float part[256];
  const int tid = threadIdx.x;
  const int i = blockIdx.x * 256 + tid;
  part[tid] = i < n ? x[i] : 0.0f;
  __syncthreads();
  for (int s = 128; s > 0; s >>= 1) {
    if (tid < s) part[tid] += part[tid + s];
    __syncthreads();
  }
  if (tid == 0) atomicAdd(total, part[0]);
}
