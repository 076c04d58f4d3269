#include <hip/hip_runtime.h>
#include <cstdint>

constexpr int ROWS_PER_BLOCK = 16;

// As kernel.hip, by hand: a column is summed in a register, the block's part of the total by shuffles and LDS.
__global__ void column_reduction_kernel(const float* x, float* sums, float* total, int rows, int cols) {
  __shared__ float partial[2];
  const int col = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0.0f;
  if (col < cols) {
    for (int row = blockIdx.y * ROWS_PER_BLOCK; row < rows && row < (blockIdx.y + 1) * ROWS_PER_BLOCK; ++row) {
      sum += x[row * cols + col];
    }
    if (sum != 0.0f) atomicAdd(&sums[col], sum);
  }
  for (int offset = 32; offset > 0; offset /= 2) sum += __shfl_down(sum, offset);
  if (threadIdx.x % 64 == 0) partial[threadIdx.x / 64] = sum;
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd(total, partial[0] + partial[1]);
}

void column_reduction(const float* x, float* sums, float* total, int rows, int cols) {
  const dim3 grid((cols + 127) / 128, (rows + ROWS_PER_BLOCK - 1) / ROWS_PER_BLOCK);
  column_reduction_kernel<<<grid, 128>>>(x, sums, total, rows, cols);
}
