#include <hip/hip_runtime.h>

#include <cstdint>

// Out-of-range indices are set to zero and counted.
__global__ void bounds_check(int64_t* indices, const int64_t* rows, const int* offsets, int* warnings, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const int64_t index = indices[i];
  // -1 stands for a pruned row
  if (index != -1 && (index < 0 || index >= rows[blockIdx.y])) {
    indices[i] = 0;
    atomicAdd(&warnings[blockIdx.y], 1);
  }
}
