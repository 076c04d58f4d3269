#include <hip/hip_runtime.h>
#include <cstdint>

constexpr int ROWS_PER_BLOCK = 16;

// Sum of each column and of everything; a block takes some rows of some columns.
__global__ void column_reduction_kernel(const float* x, float* sums, float* total, int rows, int cols) {
  const int col = blockIdx.x * blockDim.x + threadIdx.x;
  if (col >= cols) return;
  for (int row = blockIdx.y * ROWS_PER_BLOCK; row < rows && row < (blockIdx.y + 1) * ROWS_PER_BLOCK; ++row) {
    const float v = x[row * cols + col];
    atomicAdd(&sums[col], v);
    atomicAdd(total, v);
  }
}

void column_reduction(const float* x, float* sums, float* total, int rows, int cols) {
  const dim3 grid((cols + 127) / 128, (rows + ROWS_PER_BLOCK - 1) / ROWS_PER_BLOCK);
  column_reduction_kernel<<<grid, 128>>>(x, sums, total, rows, cols);
}
