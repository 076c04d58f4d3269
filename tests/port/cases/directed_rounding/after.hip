// rounding modes that HIP lacks
#include "shims/wavesmith_compat.h"
#include <hip/hip_runtime.h>
__global__ void k(const float* x, const float* y, float* z, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float a = x[i], b = y[i];
  z[4 * i] = wavesmith::__fadd_rd(a, b) - wavesmith::__fadd_ru(a, b);
  z[4 * i + 1] = wavesmith::__fmul_rz(a, b);
  z[4 * i + 2] = wavesmith::__fdiv_ru(a, b + 3.f) + wavesmith::__fsqrt_rd(fabsf(a));
  z[4 * i + 3] = wavesmith::__fmaf_rd(a, b, 1.f) + wavesmith::__double2float_ru((double)a * 1.0000000001);
}
