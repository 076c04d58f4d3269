#include <hip/hip_runtime.h>

__global__ void columns(const double* x, double* sums, int rows, int cols) {
  for (int c = threadIdx.x; c < cols; c += blockDim.x) {
    int r = blockIdx.x;
    while (r < rows) {
      atomicAdd(&sums[c], x[r * cols + c]);
      r += gridDim.x;
    }
  }
}
