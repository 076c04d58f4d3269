#include <hip/hip_runtime.h>

__global__ void late(const float* x, const int* rows, float* out, int n, int dim) {
  int row = rows[0];
  for (int k = 0; k < n; ++k) {
    const int at = row * dim;
    row = rows[k];
    atomicAdd(&out[at + threadIdx.x], x[k * dim + threadIdx.x]);
  }
}
