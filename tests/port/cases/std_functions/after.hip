// std::min and std::max in device code stay what they are
#include "shims/wavesmith_compat.h"
#include <algorithm>
#include <hip/hip_runtime.h>
__global__ void k(const int* x, const long long* b, long long* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int m = std::max(x[i], 3);
  y[i] = std::min((long long)m, b[i]) + max(x[i], 2) + min(b[i], (long long)x[i]);
}
