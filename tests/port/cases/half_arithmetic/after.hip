// half operators, intrinsics and pairs
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
__global__ void k(const half* x, const half2* p, half* y, half2* q, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  half a = x[i], b = __float2half(0.5f);
  y[i] = __hadd(__hmul(a, b), __float2half(1.f));
  half2 s = __hfma2(p[i], __float2half2_rn(2.f), __half2half2(b));
  q[i] = __hgt(a, b) ? s : __hneg2(s);
}
