#include <hip/hip_runtime.h>

constexpr int CHUNK = 32;

__global__ void select_backward(const double* grad, const long long* sorted, double* out, int count, int width) {
  const int first = blockIdx.x * CHUNK;
  for (int c = threadIdx.x; c < width; c += blockDim.x) {
    for (int k = first; k < min(first + CHUNK, count); ++k) {
      atomicAdd(&out[sorted[k] * width + c], grad[k * width + c]);
    }
  }
}
