#include <hip/hip_runtime.h>

__global__ void limited(const float* x, float* out, int* written, int most, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && written[0] < most) {
    atomicAdd(written, 1);
    out[i] = x[i];
  }
}
