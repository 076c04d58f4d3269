#include <hip/hip_runtime.h>
#include <cstdint>

// Indices of embedding tables that lie outside of their table are set to zero and counted.
// grid (chunks, tables), one index a thread.
__global__ void bounds_check_kernel(int64_t* indices, const int64_t* rows, int* warnings, int per_table) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= per_table) return;
  const int64_t index = indices[blockIdx.y * per_table + i];
  if (index < 0 || index >= rows[blockIdx.y]) {
    indices[blockIdx.y * per_table + i] = 0;
    atomicAdd(warnings, 1);
  }
}

void bounds_check(int64_t* indices, const int64_t* rows, int* warnings, int per_table, int tables) {
  bounds_check_kernel<<<dim3((per_table + 255) / 256, tables), 256>>>(indices, rows, warnings, per_table);
}
