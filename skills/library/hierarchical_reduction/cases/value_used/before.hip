#include <hip/hip_runtime.h>

__global__ void compact(const int* x, int* out, int* count, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && x[i] > 0) {
    const int slot = atomicAdd(count, 1);
    out[slot] = x[i];
  }
}
