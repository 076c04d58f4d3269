#include <hip/hip_runtime.h>

__global__ void staged(const float* x, const int* rows, float* out, int n) {
  __shared__ float stage[256];
  for (int i = threadIdx.x; i < n; i += 256) {
    stage[threadIdx.x] = x[i];
    __syncthreads();
    atomicAdd(&out[rows[i]], stage[255 - threadIdx.x]);
    __syncthreads();
  }
}
