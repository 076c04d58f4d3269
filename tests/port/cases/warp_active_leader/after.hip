// aggregated atomics over the active lanes
#include "shims/wavesmith_compat.h"
#include <hip/hip_runtime.h>
__global__ void filter(const int* x, int* out, int* total, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && x[i] > 10) {
    unsigned active = wavesmith::__activemask();
    int leader = __ffs(active) - 1;
    if ((threadIdx.x & 31) == leader) atomicAdd(total, __popc(active));
    out[i] = __popc(active);
  }
}
