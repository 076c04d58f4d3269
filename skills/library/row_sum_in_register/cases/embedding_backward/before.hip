#include <hip/hip_runtime.h>

__global__ void embedding_backward(const float* grad, const int* rows, float* weight_grad, int lookups, int dim) {
  const int d = threadIdx.x;
  if (d >= dim) return;
  const int begin = blockIdx.x * 32;
  // one lookup after the other
#pragma unroll 4
  for (int k = begin; k < begin + 32; ++k) {
    if (k >= lookups) break;
    const int row = rows[k];
    if (row < 0) continue;
    atomicAdd(&weight_grad[row * dim + d], grad[k * dim + d]);
  }
}
