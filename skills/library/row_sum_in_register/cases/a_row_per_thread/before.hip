#include <hip/hip_runtime.h>

__global__ void by_label(const float* x, const int* labels, float* sums, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    const int label = labels[i];
    atomicAdd(&sums[label], x[i]);
  }
}
