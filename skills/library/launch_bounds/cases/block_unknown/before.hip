#include <hip/hip_runtime.h>

__global__ void square(const float* a, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = a[i] * a[i];
}

void launch(const float* a, float* out, int n, int threads) {
  square<<<(n + threads - 1) / threads, threads>>>(a, out, n);
}
