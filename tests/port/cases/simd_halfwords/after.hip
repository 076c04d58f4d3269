// video intrinsics on half-words, and DPX
#include "shims/wavesmith_compat.h"
#include <hip/hip_runtime.h>
__global__ void k(const unsigned* a, const unsigned* b, unsigned* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned r = wavesmith::__vaddss2(a[i], b[i]) ^ wavesmith::__vmaxs2(a[i], b[i]) ^ wavesmith::__vcmpgts2(a[i], b[i]) ^ wavesmith::__vavgu2(a[i], b[i]);
  r += wavesmith::__vsads2(a[i], b[i]) + wavesmith::__vsetleu2(a[i], b[i]) + wavesmith::__vabs2(a[i]) + wavesmith::__vneg4(b[i]) + wavesmith::__vminu4(a[i], b[i]);
  y[i] = r + (unsigned)wavesmith::__vimax3_s32((int)a[i], (int)b[i], 5) + (unsigned)wavesmith::__viaddmin_s32((int)a[i], 3, (int)b[i]);
}
