#include <hip/hip_runtime.h>

__global__ void relax(const int* to, const float* weight, float* distance, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    if (distance[to[i]] < 1.0f) atomicAdd(&distance[to[i]], weight[i]);
  }
}
