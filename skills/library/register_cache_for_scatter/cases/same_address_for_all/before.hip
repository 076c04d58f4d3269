#include <hip/hip_runtime.h>

__global__ void total(const float* x, float* sum, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    atomicAdd(sum, x[i]);
  }
}
