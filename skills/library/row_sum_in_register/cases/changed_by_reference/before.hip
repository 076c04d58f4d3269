#include <hip/hip_runtime.h>

__global__ void shifted(const float* x, const int* rows, float* out, int n, int dim) {
  int column = threadIdx.x;
  int& same = column;
  for (int k = 0; k < n; ++k) {
    const int row = rows[k];
    atomicAdd(&out[row * dim + column], x[k]);
    same += 1;
  }
}
