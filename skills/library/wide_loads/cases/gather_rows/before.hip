#include <hip/hip_runtime.h>

__global__ void gather(const float* __restrict__ table, const int* rows, float* out, int dim) {
  const int row = rows[blockIdx.x];
  for (int d = threadIdx.x; d < dim; d += blockDim.x) {
    out[blockIdx.x * dim + d] = table[row * dim + d];
  }
}
