#include <hip/hip_runtime.h>

__global__ void shift(float* __restrict__ x, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) x[i] = x[i + 1];
}
