#include <cuda_fp16.h>
#include <cuda_runtime.h>
__global__ void k(const half2* a, const half* b, half2* y, float* s, int* n) {
  int i = threadIdx.x + blockIdx.x * blockDim.x;
  half2 v = __hfma2(a[i], __half2half2(b[i]), __floats2half2_rn(0.25f, -0.25f));
  v = __hmin2(v, __float2half2_rn(8.f));
  y[i] = h2rsqrt(__habs2(__hadd2(v, __float2half2_rn(10.f))));
  s[i] = __half2float(__hadd(__low2half(v), __high2half(v))) + __half2float(hsqrt(__habs(b[i]))) + (__hisnan(b[i]) ? 5.f : 0.f);
  n[i] = __half2int_rn(b[i]) + __half_as_short(b[i]) + __hlt(b[i], __ushort_as_half(0x3c00)) + __half2ushort_rz(__habs(b[i]));
}
