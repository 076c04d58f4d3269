#include <hip/hip_runtime.h>

template <typename T>
__launch_bounds__(1024)
__global__ void square(const T* a, T* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = a[i] * a[i];
}

void launch(const float* a, float* out, int n) {
  const dim3 block(16, 16);
  square<float><<<n / 256, block>>>(a, out, n);
}
