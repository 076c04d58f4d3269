// __ldg on half types and vectors, streaming stores
#include <cuda_fp16.h>
__global__ void k(const half2* a, const float4* b, float4* c, half2* d, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  half2 h = __ldg(a + i);
  float4 v = __ldg(b + i);
  v.x += __low2float(h);
  __stcs(c + i, v);
  __stcg(d + i, __hadd2(h, __ldcs(a + i)));
}
