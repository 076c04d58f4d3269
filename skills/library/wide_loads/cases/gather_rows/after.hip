#include <hip/hip_runtime.h>

__global__ void gather(const float* __restrict__ table, const int* rows, float* out, int dim) {
  const int row = rows[blockIdx.x];
  if (dim % 4 == 0 &&
      reinterpret_cast<size_t>(out + blockIdx.x * dim) % 16 == 0 &&
      reinterpret_cast<size_t>(table + row * dim) % 16 == 0) {
    for (int d = threadIdx.x; d < dim / 4; d += blockDim.x) {
      *reinterpret_cast<float4*>(&out[blockIdx.x * dim + 4 * d]) = *reinterpret_cast<const float4*>(&table[row * dim + 4 * d]);
    }
  } else {
    for (int d = threadIdx.x; d < dim; d += blockDim.x) {
      out[blockIdx.x * dim + d] = table[row * dim + d];
    }
  }
}
