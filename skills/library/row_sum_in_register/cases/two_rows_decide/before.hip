#include <hip/hip_runtime.h>

__global__ void pairs(const float* x, const int* rows, const int* parts, float* out, int n, int dim) {
  for (int k = 0; k < n; ++k) {
    const int row = rows[k], part = parts[k];
    atomicAdd(&out[(row * 4 + part) * dim + threadIdx.x], x[k * dim + threadIdx.x]);
  }
}
