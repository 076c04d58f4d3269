// rounding modes that HIP lacks
#include <cuda_runtime.h>
__global__ void k(const float* x, const float* y, float* z, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float a = x[i], b = y[i];
  z[4 * i] = __fadd_rd(a, b) - __fadd_ru(a, b);
  z[4 * i + 1] = __fmul_rz(a, b);
  z[4 * i + 2] = __fdiv_ru(a, b + 3.f) + __fsqrt_rd(fabsf(a));
  z[4 * i + 3] = __fmaf_rd(a, b, 1.f) + __double2float_ru((double)a * 1.0000000001);
}
