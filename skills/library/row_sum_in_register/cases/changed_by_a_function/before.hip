#include <hip/hip_runtime.h>

__device__ void advance(int& column, int by) { column += by; }

__global__ void shifted(const float* x, const int* rows, float* out, int n, int dim) {
  int column = threadIdx.x;
  for (int k = 0; k < n; ++k) {
    const int row = rows[k];
    atomicAdd(&out[row * dim + column], x[k]);
    advance(column, 1);
  }
}
