#include <hip/hip_runtime.h>

__global__ void rows(const float* x, float* y, int cols) {
  __shared__ float tile[32][32];
  tile[threadIdx.y][threadIdx.x] = x[threadIdx.y * cols + threadIdx.x];
  __syncthreads();
  y[threadIdx.y * cols + threadIdx.x] = tile[threadIdx.y ^ 1][threadIdx.x];
}
