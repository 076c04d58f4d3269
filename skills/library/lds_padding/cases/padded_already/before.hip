#include <hip/hip_runtime.h>

__global__ void transpose(const float* x, float* y, int n) {
  __shared__ float tile[32][33];
  tile[threadIdx.y][threadIdx.x] = x[threadIdx.y * n + threadIdx.x];
  __syncthreads();
  y[threadIdx.y * n + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
}
