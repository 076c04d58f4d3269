// two warps of one wavefront take different branches, each with a full mask
#include "shims/wavesmith_compat.h"
#include <hip/hip_runtime.h>
__global__ void k(const int* x, int* y) {
  int wid = threadIdx.x >> 5, v = x[threadIdx.x];
  if (wid % 2 == 0) {
    for (int o = 16; o; o >>= 1) v += wavesmith::__shfl_xor_sync(0xffffffff, v, o);
  } else {
    unsigned b = wavesmith::__ballot_sync(0xffffffff, v & 1);
    v = __popc(b) * 100 + wavesmith::__shfl_sync(0xffffffff, v, 31);
  }
  y[threadIdx.x] = v;
}
