#include <hip/hip_runtime.h>
#include <cstdint>

constexpr int LOOKUPS_PER_BLOCK = 32;

// grad_in[sorted_rows[k]] += grad_out[k]: a block takes some lookups, its threads the columns.
__global__ void index_select_backward_kernel(const float* grad_out, const int* sorted_rows, float* grad_in,
                                             int lookups, int cols) {
  const int begin = blockIdx.x * LOOKUPS_PER_BLOCK;
  const int end = min(begin + LOOKUPS_PER_BLOCK, lookups);
  for (int col = threadIdx.x; col < cols; col += blockDim.x) {
    for (int k = begin; k < end; ++k) {
      atomicAdd(&grad_in[sorted_rows[k] * cols + col], grad_out[k * cols + col]);
    }
  }
}

void index_select_backward(const float* grad_out, const int* sorted_rows, float* grad_in, int lookups, int cols) {
  const int chunks = (lookups + LOOKUPS_PER_BLOCK - 1) / LOOKUPS_PER_BLOCK;
  index_select_backward_kernel<<<chunks, 64>>>(grad_out, sorted_rows, grad_in, lookups, cols);
}
