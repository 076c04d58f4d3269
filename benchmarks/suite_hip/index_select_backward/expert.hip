#include <hip/hip_runtime.h>
#include <cstdint>

constexpr int LOOKUPS_PER_BLOCK = 32;

// As kernel.hip, by hand: the sum of a run of equal rows stays in a register.
__global__ void index_select_backward_kernel(const float* grad_out, const int* sorted_rows, float* grad_in,
                                             int lookups, int cols) {
  const int begin = blockIdx.x * LOOKUPS_PER_BLOCK;
  const int end = min(begin + LOOKUPS_PER_BLOCK, lookups);
  if (begin >= end) return;
  for (int col = threadIdx.x; col < cols; col += blockDim.x) {
    int row = sorted_rows[begin];
    float sum = 0.0f;
    for (int k = begin; k < end; ++k) {
      if (sorted_rows[k] != row) {
        atomicAdd(&grad_in[row * cols + col], sum);
        row = sorted_rows[k];
        sum = 0.0f;
      }
      sum += grad_out[k * cols + col];
    }
    atomicAdd(&grad_in[row * cols + col], sum);
  }
}

void index_select_backward(const float* grad_out, const int* sorted_rows, float* grad_in, int lookups, int cols) {
  const int chunks = (lookups + LOOKUPS_PER_BLOCK - 1) / LOOKUPS_PER_BLOCK;
  index_select_backward_kernel<<<chunks, 64>>>(grad_out, sorted_rows, grad_in, lookups, cols);
}
