// intrinsics without masks, as before CUDA 9
#include "shims/wavesmith_compat.h"
#include <hip/hip_runtime.h>
__global__ void k(const int* x, int* y) {
  int v = x[threadIdx.x];
  int s = v;
  for (int o = 16; o > 0; o >>= 1) s += wavesmith::__shfl_xor(s, o);
  y[threadIdx.x] = s + wavesmith::__shfl(v, 3) + __popc(wavesmith::__ballot(v > 20)) + wavesmith::__any(v == 5) + 2 * wavesmith::__all(v >= 0) + wavesmith::__shfl_down(v, 1);
}
