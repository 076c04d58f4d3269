// explicit widths of 8 and 16, and 64-bit values
#include "shims/wavesmith_compat.h"
#include <hip/hip_runtime.h>
__global__ void k(const long long* x, long long* y) {
  long long v = x[threadIdx.x];
  v += wavesmith::__shfl_xor_sync(0xffffffff, v, 4, 8);
  v += wavesmith::__shfl_down_sync(0xffffffff, v, 3, 16);
  v += wavesmith::__shfl_up_sync(0xffffffff, v, 2, 8);
  v ^= wavesmith::__shfl_sync(0xffffffff, v, 5, 8);
  y[threadIdx.x] = v;
}
