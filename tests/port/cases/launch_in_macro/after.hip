// launches inside macros, templates with commas, lambdas
#include <hip/hip_runtime.h>
template <typename T, int N> __global__ void fill(T* x, T v) { int i = blockIdx.x * N + threadIdx.x; x[i] = v + (T)i; }
#define LAUNCH(T, N, grid, ...) fill<T, N><<<grid, N>>>(__VA_ARGS__)
void run(float* x, int* y) {
  LAUNCH(float, 64, 2, x, 1.f);
  LAUNCH(int, 128, dim3(2), y, 3);
}
