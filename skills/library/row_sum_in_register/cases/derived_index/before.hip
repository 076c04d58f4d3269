#include <hip/hip_runtime.h>

__global__ void derived(const float* x, const int* rows, float* out, int n, int dim) {
  const int d = threadIdx.x;
  for (int k = blockIdx.x * 16; k < n && k < (blockIdx.x + 1) * 16; ++k) {
    const int row = rows[k];
    const int at = row * dim + d;
    atomicAdd(&out[at], x[k * dim + d]);
  }
}
