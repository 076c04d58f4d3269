#include <hip/hip_runtime.h>

__global__ void sum(const float* x, float* total, int n) {
  if (threadIdx.x < n) {
    atomicAdd(total, x[threadIdx.x]);
  }
  return;
}
