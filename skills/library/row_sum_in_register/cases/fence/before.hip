#include <hip/hip_runtime.h>

__global__ void publish(const float* x, const int* rows, float* out, int* ready, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    atomicAdd(&out[rows[i]], x[i]);
    __threadfence();
    atomicAdd(&ready[rows[i]], 1);
  }
}
