#include <hip/hip_runtime.h>
#include <cstdint>

#define LOOKUPS 64

// Gradient of a weighted embedding bag over lookups sorted by row; Zipf-distributed indices make long runs of hot rows.
__global__ void embedding_backward_kernel(const float* grad_out, const int* sorted_rows, const int* bags,
                                          const float* weights, float* grad_weight, int lookups, int dim) {
  const int d = threadIdx.x;
  if (d >= dim) return;
  const int begin = blockIdx.x * LOOKUPS;
  for (int k = begin; k < begin + LOOKUPS && k < lookups; ++k) {
    const int64_t row = sorted_rows[k];
    const float g = grad_out[bags[k] * dim + d] * weights[k];
    atomicAdd(grad_weight + row * dim + d, g);
  }
}

void embedding_backward(const float* grad_out, const int* sorted_rows, const int* bags, const float* weights,
                        float* grad_weight, int lookups, int dim) {
  const int blocks = (lookups + LOOKUPS - 1) / LOOKUPS;
  hipLaunchKernelGGL(embedding_backward_kernel, dim3(blocks), dim3(128), 0, 0, grad_out, sorted_rows, bags, weights,
                     grad_weight, lookups, dim);
}
