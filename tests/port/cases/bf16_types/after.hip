// bfloat16 under both spellings, pairs and conversions
#include "shims/wavesmith_compat.h"
#include <hip/hip_bf16.h>
#include <hip/hip_runtime.h>
__global__ void k(const nv_bfloat16* x, const __hip_bfloat162* p, nv_bfloat16* y, __hip_bfloat162* q, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float f = __bfloat162float(x[i]);
  y[i] = wavesmith::__float2bfloat16_rn(f * 1.5f + 0.25f);
  float2 v = __bfloat1622float2(p[i]);
  __hip_bfloat162 a = wavesmith::__floats2bfloat162_rn(v.x + f, v.y - f);
  q[i] = __hmul2(a, wavesmith::__float2bfloat162_rn(0.5f));
}
