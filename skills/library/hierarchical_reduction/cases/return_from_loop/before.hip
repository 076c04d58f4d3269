#include <hip/hip_runtime.h>

__global__ void search(const int* x, int wanted, int* found, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    if (x[i] == wanted) {
      atomicAdd(found, 1);
      return;
    }
  }
}
