#include <hip/hip_runtime.h>

__device__ float first(const float* row) { return row[0]; }

__global__ void pointers(const float* x, float* y) {
  __shared__ float tile[32][32];
  tile[threadIdx.x][threadIdx.y] = x[threadIdx.x * 32 + threadIdx.y];
  __syncthreads();
  y[threadIdx.x] = first(tile[threadIdx.x]);
}
