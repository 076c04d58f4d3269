// compare-and-swap on 16 bits, block and system scopes
#include "shims/wavesmith_compat.h"
#include <hip/hip_runtime.h>
__global__ void k(unsigned short* locks, int* counts, unsigned* wrap, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  wavesmith::atomicAdd_block(&counts[0], 1);
  atomicAdd_system(&counts[1], 2);
  wavesmith::atomicMax_block(&counts[2], i);
  atomicInc(&wrap[0], 6u);
  if (i < 64) locks[i] = 0;
  __syncthreads();
  if (i < 64) atomicCAS(&locks[i], (unsigned short)0, (unsigned short)(i + 1));
}
