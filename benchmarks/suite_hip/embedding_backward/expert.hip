#include <hip/hip_runtime.h>
#include <cstdint>

#define LOOKUPS 64

// As kernel.hip, by hand: runs of one row are summed in a register.
__global__ void embedding_backward_kernel(const float* grad_out, const int* sorted_rows, const int* bags,
                                          const float* weights, float* grad_weight, int lookups, int dim) {
  const int d = threadIdx.x;
  if (d >= dim) return;
  const int begin = blockIdx.x * LOOKUPS, end = min(begin + LOOKUPS, lookups);
  if (begin >= end) return;
  int64_t row = sorted_rows[begin];
  float sum = 0.0f;
  for (int k = begin; k < end; ++k) {
    const int64_t next = sorted_rows[k];
    if (next != row) {
      atomicAdd(grad_weight + row * dim + d, sum);
      row = next;
      sum = 0.0f;
    }
    sum += grad_out[bags[k] * dim + d] * weights[k];
  }
  atomicAdd(grad_weight + row * dim + d, sum);
}

void embedding_backward(const float* grad_out, const int* sorted_rows, const int* bags, const float* weights,
                        float* grad_weight, int lookups, int dim) {
  const int blocks = (lookups + LOOKUPS - 1) / LOOKUPS;
  hipLaunchKernelGGL(embedding_backward_kernel, dim3(blocks), dim3(128), 0, 0, grad_out, sorted_rows, bags, weights,
                     grad_weight, lookups, dim);
}
