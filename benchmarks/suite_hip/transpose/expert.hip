#include <hip/hip_runtime.h>
#include <cstdint>

// As kernel.hip, by hand, with a padding column. A 32 x 32 tile of x through LDS, so that both reads and writes of memory run along rows.
__global__ void transpose(const float* x, float* y, int rows, int cols) {
  __shared__ float tile[32][33];
  int c = blockIdx.x * 32 + threadIdx.x;
  int r = blockIdx.y * 32 + threadIdx.y;
  if (r < rows && c < cols) tile[threadIdx.y][threadIdx.x] = x[r * cols + c];
  __syncthreads();
  int tc = blockIdx.y * 32 + threadIdx.x;
  int tr = blockIdx.x * 32 + threadIdx.y;
  if (tr < cols && tc < rows) y[tr * rows + tc] = tile[threadIdx.x][threadIdx.y];
}

void launch(const float* x, float* y, int rows, int cols) {
  dim3 block(32, 32);
  transpose<<<dim3((cols + 31) / 32, (rows + 31) / 32), block>>>(x, y, rows, cols);
}
