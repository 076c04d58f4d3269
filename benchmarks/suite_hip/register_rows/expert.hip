#include <hip/hip_runtime.h>
#include <cstdint>

// As kernel.hip, by hand, with the bound that its launches keep to.
__global__ __launch_bounds__(128) void row_products(const float* a, const float* b, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float acc[160];
#pragma unroll
  for (int j = 0; j < 160; ++j) acc[j] = b[j];
  for (int k = 0; k < 8; ++k) {
    const float v = a[(i + k) % n];
#pragma unroll
    for (int j = 0; j < 160; ++j) acc[j] = acc[j] * v + acc[(j * 7 + 3) % 160];
  }
  float sum = 0.0f;
#pragma unroll
  for (int j = 0; j < 160; ++j) sum += acc[j] * acc[j];
  out[i] = sum;
}

void launch(const float* a, const float* b, float* out, int n) {
  row_products<<<(n + 127) / 128, 128>>>(a, b, out, n);
}
