#include <hip/hip_runtime.h>

__global__ void copy(const double* __restrict__ x, double* __restrict__ y, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = x[i];
}
