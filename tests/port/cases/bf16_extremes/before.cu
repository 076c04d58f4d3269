// min, max and fused operations on bfloat16 pairs, directed conversion, bits
#include <cuda_bf16.h>
__global__ void k(const float* x, __nv_bfloat162* y, unsigned short* bits, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  __nv_bfloat162 a = __float2bfloat162_rn(x[i]), b = make_bfloat162(__float2bfloat16(x[i] * 2.f), __float2bfloat16(-x[i]));
  y[i] = __hmax2(a, b);
  bits[i] = __bfloat16_as_ushort(__float2bfloat16_rz(x[i])) ^ __bfloat16_as_ushort(__low2bfloat16(__hmin2(a, b)));
}
