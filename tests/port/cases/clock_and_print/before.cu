#include <cuda_runtime.h>
#include <cstdio>
__global__ void k(const float* x, float* y, long long* t) {
  long long a = clock64();
  y[threadIdx.x] = x[threadIdx.x] * 2.f;
  if (x[0] > 1e30f) printf("big %f\n", x[0]);
  if (threadIdx.x == 0) *t = clock64() - a;
}
