// min and max of mixed types: CUDA compares as unsigned, HIP as double on the device and as int on the host
#include "shims/wavesmith_compat.h"
#include <hip/hip_runtime.h>
__global__ void clamp(const int *x, const unsigned *u, const float *f, unsigned *y, double *z, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int v = x[i] - 30;
  y[i] = min(v, u[i]) + 3u * max(u[i], v) + min(7u, v);
  y[i] ^= (unsigned)max((long long)v, (unsigned long long)u[i]);
  z[i] = min(f[i], 0.25) + max(0.5, f[i]) + (double)x[min(n - 1, i + blockDim.x)];
}
float host(float a, float b, size_t n, unsigned long m) { return min(a, b) + max(a, 2.5f) + (float)min(n, m); }
void run(const int *x, const unsigned *u, const float *f, unsigned *y, double *z, int n) { clamp<<<2, 64>>>(x, u, f, y, z, n); }
