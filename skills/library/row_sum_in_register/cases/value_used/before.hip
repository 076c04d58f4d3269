#include <hip/hip_runtime.h>

__global__ void slots(const int* bins, int* counts, int* out, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    out[i] = atomicAdd(&counts[bins[i]], 1);
  }
}
