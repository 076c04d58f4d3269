#include <hip/hip_runtime.h>

__global__ void moves(const float* x, const int* rows, float* out, int n, int dim) {
  int k = 0;
  while (k < n) {
    atomicAdd(&out[rows[k++] * dim + threadIdx.x], x[threadIdx.x]);
  }
}
