#include <hip/hip_runtime.h>

__global__ void scatter(const float* x, const int* rows, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(&out[rows[i]], x[i]);
}
