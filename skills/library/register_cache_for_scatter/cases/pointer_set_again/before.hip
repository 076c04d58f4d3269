#include <hip/hip_runtime.h>

__global__ void either(const int* to, const float* weight, float* one, float* other, int n) {
  float* into = one;
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    if (to[i] < 0) into = other;
    atomicAdd(&into[i & 63], weight[i]);
    if (other[i & 63] > 1.0f) break;
  }
}
