// __ldg on half types and vectors, streaming stores
#include "shims/wavesmith_compat.h"
#include <hip/hip_fp16.h>
__global__ void k(const half2* a, const float4* b, float4* c, half2* d, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  half2 h = wavesmith::__ldg(a + i);
  float4 v = wavesmith::__ldg(b + i);
  v.x += __low2float(h);
  wavesmith::__stcs(c + i, v);
  wavesmith::__stcg(d + i, __hadd2(h, wavesmith::__ldcs(a + i)));
}
