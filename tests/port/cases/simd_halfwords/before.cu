// video intrinsics on half-words, and DPX
#include <cuda_runtime.h>
__global__ void k(const unsigned* a, const unsigned* b, unsigned* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned r = __vaddss2(a[i], b[i]) ^ __vmaxs2(a[i], b[i]) ^ __vcmpgts2(a[i], b[i]) ^ __vavgu2(a[i], b[i]);
  r += __vsads2(a[i], b[i]) + __vsetleu2(a[i], b[i]) + __vabs2(a[i]) + __vneg4(b[i]) + __vminu4(a[i], b[i]);
  y[i] = r + (unsigned)__vimax3_s32((int)a[i], (int)b[i], 5) + (unsigned)__viaddmin_s32((int)a[i], 3, (int)b[i]);
}
