#include <hip/hip_runtime.h>

constexpr int kThreads = 192;

static __global__ __launch_bounds__(192) void square(const float* a, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = a[i] * a[i];
}

void launch(const float* a, float* out, int n) {
  square<<<(n + kThreads - 1) / kThreads, kThreads>>>(a, out, n);
  hipLaunchKernelGGL(square, dim3(1), dim3(32, 2), 0, 0, a, out, n);
}
