#include <hip/hip_runtime.h>

#define TILE 32

__global__ void transpose(const float* x, float* y, int rows, int cols) {
  __shared__ float tile[TILE][TILE + 1];
  const int c = blockIdx.x * TILE + threadIdx.x, r = blockIdx.y * TILE + threadIdx.y;
  if (r < rows && c < cols) tile[threadIdx.y][threadIdx.x] = x[r * cols + c];
  __syncthreads();
  const int tc = blockIdx.y * TILE + threadIdx.x, tr = blockIdx.x * TILE + threadIdx.y;
  if (tr < cols && tc < rows) y[tr * rows + tc] = tile[threadIdx.x][threadIdx.y];
}
