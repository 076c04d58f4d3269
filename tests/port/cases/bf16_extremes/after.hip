// min, max and fused operations on bfloat16 pairs, directed conversion, bits
#include "shims/wavesmith_compat.h"
#include <hip/hip_bf16.h>
__global__ void k(const float* x, __hip_bfloat162* y, unsigned short* bits, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  __hip_bfloat162 a = wavesmith::__float2bfloat162_rn(x[i]), b = wavesmith::make_bfloat162(__float2bfloat16(x[i] * 2.f), __float2bfloat16(-x[i]));
  y[i] = wavesmith::__hmax2(a, b);
  bits[i] = __bfloat16_as_ushort(wavesmith::__float2bfloat16_rz(x[i])) ^ __bfloat16_as_ushort(__low2bfloat16(wavesmith::__hmin2(a, b)));
}
