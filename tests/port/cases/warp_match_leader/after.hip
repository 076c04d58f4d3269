// one atomic per distinct key and warp, elected by match_any
#include "shims/wavesmith_compat.h"
#include <hip/hip_runtime.h>
__global__ void histogram(const int* keys, int* counts, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int key = keys[i] & 15;
  unsigned peers = wavesmith::__match_any_sync(wavesmith::__activemask(), key);
  int leader = __ffs(peers) - 1;
  if ((threadIdx.x & 31) == leader) atomicAdd(&counts[key], __popc(peers));
}
